"""PocketMQ: RocketMQ in Python.

    import pocketmq as mq

    with mq.Producer("127.0.0.1:9876", group="shop") as producer:
        producer.send(mq.Message("orders", b"42 EUR", tag="paid"))

The clients here block; `pocketmq.aio` has the same names for asyncio.

PYTEST_DONT_REWRITE: pytest wants to rewrite the asserts of packages that bring a plugin, and warns
about those imported before it starts. There is none here, so there is nothing to warn about.
"""

from typing import TYPE_CHECKING, Any

from pocketmq import aio
from pocketmq.aio import VALUES, lazily

if TYPE_CHECKING:
    from pocketmq import errors
    from pocketmq.aio import (
        V4,
        V5,
        BodyCodec,
        Claim,
        ClientOptions,
        Codec,
        ConsumeContext,
        Consumed,
        ConsumeFromWhere,
        ConsumeHook,
        Credentials,
        DeadLetter,
        Deduplicate,
        DedupStore,
        Filter,
        HandlerCall,
        HandlerInterceptor,
        JsonCodec,
        LitePullLimits,
        MembershipWarning,
        MemoryDedup,
        Message,
        MessageModel,
        MessageQueue,
        MQError,
        PopConsumerOptions,
        ProducerOptions,
        PullConsumerOptions,
        PullLimits,
        PushConsumerOptions,
        QueueLimits,
        RebalanceEvent,
        ReceivedMessage,
        RetryLater,
        RetryRule,
        SendCall,
        SendContext,
        SendHook,
        SendInterceptor,
        SendKind,
        SendReceipt,
        SendStatus,
        SqliteDedup,
        Strategy,
        StrategySettings,
        Tls,
        TransactionReceipt,
        TransactionState,
        by_sql,
        by_tags,
    )
    from pocketmq.blocking.admin import Admin
    from pocketmq.blocking.pop_consumer import PopConsumer
    from pocketmq.blocking.producer import Producer
    from pocketmq.blocking.pull_consumer import PullConsumer
    from pocketmq.blocking.push_consumer import PushConsumer
    from pocketmq.embedded import Cluster

__version__ = "0.1.0"
__all__ = [
    "V4",
    "V5",
    "Admin",
    "BodyCodec",
    "Claim",
    "ClientOptions",
    "Cluster",
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
    "__version__",
    "aio",
    "by_sql",
    "by_tags",
    "errors",
]

# name -> module; imported when first asked for, so that each user pays for what they use
_LAZY = VALUES | {
    "Admin": "pocketmq.blocking.admin",
    "Cluster": "pocketmq.embedded.cluster",
    "PopConsumer": "pocketmq.blocking.pop_consumer",
    "Producer": "pocketmq.blocking.producer",
    "PullConsumer": "pocketmq.blocking.pull_consumer",
    "PushConsumer": "pocketmq.blocking.push_consumer",
}


def __getattr__(name: str) -> Any:
    return lazily(name, _LAZY, globals(), __name__)


def __dir__() -> list[str]:
    return list(__all__)
