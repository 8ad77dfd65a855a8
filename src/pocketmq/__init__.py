"""PocketMQ: RocketMQ in Python.

    import pocketmq as mq

    with mq.Producer("127.0.0.1:9876", group="shop") as producer:
        producer.send(mq.Message("orders", b"42 EUR", tag="paid"))

The clients here block; `pocketmq.aio` has the same names for asyncio.

PYTEST_DONT_REWRITE: pytest wants to rewrite the asserts of packages that bring a plugin, and warns
about those imported before it starts. There is none here, so there is nothing to warn about.
"""

from typing import TYPE_CHECKING, Any

from pocketmq.aio import VALUES, lazily

if TYPE_CHECKING:
    from pocketmq import errors
    from pocketmq.aio import (
        V4,
        V5,
        ClientOptions,
        Consumed,
        ConsumeFromWhere,
        Credentials,
        Filter,
        Message,
        MessageModel,
        MessageQueue,
        MQError,
        RebalanceEvent,
        ReceivedMessage,
        RetryLater,
        SendContext,
        SendHook,
        SendReceipt,
        SendStatus,
        Tls,
        TransactionReceipt,
        TransactionState,
        by_sql,
        by_tags,
    )
    from pocketmq.blocking.pop_consumer import PopConsumer
    from pocketmq.blocking.producer import Producer
    from pocketmq.blocking.pull_consumer import PullConsumer
    from pocketmq.blocking.push_consumer import PushConsumer
    from pocketmq.embedded import Cluster

__version__ = "0.1.0"
__all__ = [
    "V4",
    "V5",
    "ClientOptions",
    "Cluster",
    "ConsumeFromWhere",
    "Consumed",
    "Credentials",
    "Filter",
    "MQError",
    "Message",
    "MessageModel",
    "MessageQueue",
    "PopConsumer",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "RebalanceEvent",
    "ReceivedMessage",
    "RetryLater",
    "SendContext",
    "SendHook",
    "SendReceipt",
    "SendStatus",
    "Tls",
    "TransactionReceipt",
    "TransactionState",
    "__version__",
    "by_sql",
    "by_tags",
    "errors",
]

# name -> module; imported when first asked for, so that each user pays for what they use
_LAZY = VALUES | {
    "Cluster": "pocketmq.embedded.cluster",
    "PopConsumer": "pocketmq.blocking.pop_consumer",
    "Producer": "pocketmq.blocking.producer",
    "PullConsumer": "pocketmq.blocking.pull_consumer",
    "PushConsumer": "pocketmq.blocking.push_consumer",
}


def __getattr__(name: str) -> Any:
    return lazily(name, _LAZY, globals(), __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
