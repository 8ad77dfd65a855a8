"""The values RocketMQ is made of: queues, messages, routes, names, flags.

Pure data and the small rules that belong to it. Independent of bytes, sockets and clocks. Import
the values from here, the rules about names, delays, Java's strings and secrets from their modules.
"""

from pocketmq.model.groups import ConsumerData, GroupConfig, ProducerData, Subscription
from pocketmq.model.kinds import (
    ConsumeFromWhere,
    ConsumeResult,
    ConsumeType,
    MessageModel,
    MessageRequestMode,
    OnDamage,
    Permission,
    PullFlag,
    SysFlag,
    TopicFilterType,
    TransactionState,
)
from pocketmq.model.message import Message, SendReceipt, SendStatus
from pocketmq.model.queue import MessageQueue, QueueName, sort_queues
from pocketmq.model.route import BrokerData, QueueData, TopicRoute
from pocketmq.model.topics import TopicConfig
from pocketmq.model.value import DataVersion, WireValue

__all__ = [
    "BrokerData",
    "ConsumeFromWhere",
    "ConsumeResult",
    "ConsumeType",
    "ConsumerData",
    "DataVersion",
    "GroupConfig",
    "Message",
    "MessageModel",
    "MessageQueue",
    "MessageRequestMode",
    "OnDamage",
    "Permission",
    "ProducerData",
    "PullFlag",
    "QueueData",
    "QueueName",
    "SendReceipt",
    "SendStatus",
    "Subscription",
    "SysFlag",
    "TopicConfig",
    "TopicFilterType",
    "TopicRoute",
    "TransactionState",
    "WireValue",
    "sort_queues",
]
