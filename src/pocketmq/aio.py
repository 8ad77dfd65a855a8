"""PocketMQ for asyncio: the names of `pocketmq`, with coroutines for methods.

    from pocketmq import aio

    async with aio.Producer("127.0.0.1:9876", group="shop") as producer:
        await producer.send(aio.Message("orders", b"42 EUR", tag="paid"))

The embedded cluster for asyncio is `pocketmq.embedded.aio.Cluster`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq import errors
    from pocketmq.admin.admin import Admin
    from pocketmq.balance.allocation import Strategy, StrategySettings
    from pocketmq.balance.consumer.limits import LitePullLimits, PullLimits, QueueLimits
    from pocketmq.balance.profile import V4, V5
    from pocketmq.client.codecs import BodyCodec, JsonCodec
    from pocketmq.client.consumer_options import (
        PopConsumerOptions,
        PullConsumerOptions,
        PushConsumerOptions,
    )
    from pocketmq.client.dedup_stores import Claim, DedupStore, MemoryDedup, SqliteDedup
    from pocketmq.client.filters import Filter, by_sql, by_tags
    from pocketmq.client.group.warnings import MembershipWarning
    from pocketmq.client.interceptors import (
        HandlerCall,
        HandlerInterceptor,
        SendCall,
        SendInterceptor,
        SendKind,
    )
    from pocketmq.client.options import ClientOptions, Credentials
    from pocketmq.client.pop.consumer import PopConsumer
    from pocketmq.client.producer.hooks import SendContext, SendHook
    from pocketmq.client.producer.producer import Producer
    from pocketmq.client.producer.transactions import TransactionReceipt
    from pocketmq.client.producer_options import ProducerOptions
    from pocketmq.client.pull.consumer import PullConsumer
    from pocketmq.client.push.consume_hooks import ConsumeContext, ConsumeHook
    from pocketmq.client.push.consumer import PushConsumer
    from pocketmq.client.push.deduplication import Deduplicate
    from pocketmq.client.push.handlers import Consumed, DeadLetter, RetryLater
    from pocketmq.client.push.retry_rule import RetryRule
    from pocketmq.errors import MQError
    from pocketmq.model.kinds import ConsumeFromWhere, MessageModel, TransactionState
    from pocketmq.model.message import Message, SendReceipt, SendStatus
    from pocketmq.model.queue import MessageQueue
    from pocketmq.model.rebalance_event import RebalanceEvent
    from pocketmq.net.tls import Tls
    from pocketmq.protocol.compression import Codec
    from pocketmq.protocol.received import ReceivedMessage

__all__ = [
    "V4",
    "V5",
    "Admin",
    "BodyCodec",
    "Claim",
    "ClientOptions",
    "Codec",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeHook",
    "Consumed",
    "Credentials",
    "DeadLetter",
    "DedupStore",
    "Deduplicate",
    "Filter",
    "HandlerCall",
    "HandlerInterceptor",
    "JsonCodec",
    "LitePullLimits",
    "MQError",
    "MembershipWarning",
    "MemoryDedup",
    "Message",
    "MessageModel",
    "MessageQueue",
    "PopConsumer",
    "PopConsumerOptions",
    "Producer",
    "ProducerOptions",
    "PullConsumer",
    "PullConsumerOptions",
    "PullLimits",
    "PushConsumer",
    "PushConsumerOptions",
    "QueueLimits",
    "RebalanceEvent",
    "ReceivedMessage",
    "RetryLater",
    "RetryRule",
    "SendCall",
    "SendContext",
    "SendHook",
    "SendInterceptor",
    "SendKind",
    "SendReceipt",
    "SendStatus",
    "SqliteDedup",
    "Strategy",
    "StrategySettings",
    "Tls",
    "TransactionReceipt",
    "TransactionState",
    "by_sql",
    "by_tags",
    "errors",
]

VALUES = {
    "BodyCodec": "pocketmq.client.codecs",
    "Claim": "pocketmq.client.dedup_stores",
    "ClientOptions": "pocketmq.client.options",
    "Codec": "pocketmq.protocol.compression",
    "ConsumeContext": "pocketmq.client.push.consume_hooks",
    "ConsumeFromWhere": "pocketmq.model.kinds",
    "ConsumeHook": "pocketmq.client.push.consume_hooks",
    "Consumed": "pocketmq.client.push.handlers",
    "Credentials": "pocketmq.client.options",
    "DeadLetter": "pocketmq.client.push.handlers",
    "DedupStore": "pocketmq.client.dedup_stores",
    "Deduplicate": "pocketmq.client.push.deduplication",
    "Filter": "pocketmq.client.filters",
    "HandlerCall": "pocketmq.client.interceptors",
    "HandlerInterceptor": "pocketmq.client.interceptors",
    "JsonCodec": "pocketmq.client.codecs",
    "LitePullLimits": "pocketmq.balance.consumer.limits",
    "MQError": "pocketmq.errors",
    "MembershipWarning": "pocketmq.client.group.warnings",
    "MemoryDedup": "pocketmq.client.dedup_stores",
    "Message": "pocketmq.model.message",
    "MessageModel": "pocketmq.model.kinds",
    "MessageQueue": "pocketmq.model.queue",
    "PopConsumerOptions": "pocketmq.client.consumer_options",
    "ProducerOptions": "pocketmq.client.producer_options",
    "PullConsumerOptions": "pocketmq.client.consumer_options",
    "PullLimits": "pocketmq.balance.consumer.limits",
    "PushConsumerOptions": "pocketmq.client.consumer_options",
    "QueueLimits": "pocketmq.balance.consumer.limits",
    "RebalanceEvent": "pocketmq.model.rebalance_event",
    "ReceivedMessage": "pocketmq.protocol.received",
    "RetryLater": "pocketmq.client.push.handlers",
    "RetryRule": "pocketmq.client.push.retry_rule",
    "SendCall": "pocketmq.client.interceptors",
    "SendContext": "pocketmq.client.producer.hooks",
    "SendHook": "pocketmq.client.producer.hooks",
    "SendInterceptor": "pocketmq.client.interceptors",
    "SendKind": "pocketmq.client.interceptors",
    "SendReceipt": "pocketmq.model.message",
    "SendStatus": "pocketmq.model.message",
    "SqliteDedup": "pocketmq.client.dedup_stores",
    "Strategy": "pocketmq.balance.allocation",
    "StrategySettings": "pocketmq.balance.allocation",
    "Tls": "pocketmq.net.tls",
    "TransactionReceipt": "pocketmq.client.producer.transactions",
    "TransactionState": "pocketmq.model.kinds",
    "V4": "pocketmq.balance.profile",
    "V5": "pocketmq.balance.profile",
    "by_sql": "pocketmq.client.filters",
    "by_tags": "pocketmq.client.filters",
    "errors": "pocketmq.errors",
}
"""What both ways to use PocketMQ share: the module of each name, imported when it is asked for."""

_LAZY = VALUES | {
    "Admin": "pocketmq.admin.admin",
    "PopConsumer": "pocketmq.client.pop.consumer",
    "Producer": "pocketmq.client.producer.producer",
    "PullConsumer": "pocketmq.client.pull.consumer",
    "PushConsumer": "pocketmq.client.push.consumer",
}


def lazily(name: str, where: dict[str, str], names: dict[str, Any], module: str) -> Any:
    """Import what a name stands for, and keep it among a module's own names."""
    if name not in where:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    from importlib import import_module

    found = import_module(where[name])
    names[name] = value = found if name == "errors" else getattr(found, name)
    return value


def __getattr__(name: str) -> Any:
    return lazily(name, _LAZY, globals(), __name__)


def __dir__() -> list[str]:
    return list(__all__)
