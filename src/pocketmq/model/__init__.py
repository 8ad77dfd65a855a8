"""The values RocketMQ is made of: queues, messages, routes, names, flags.

Pure data and the small rules that belong to it. Independent of bytes, sockets and clocks. Import
the values from here, the rules about names, delays, Java's strings and secrets from their modules.
"""

from pocketmq.model.group_balance import BalanceMode, QueueStage, handover_version
from pocketmq.model.groups import ConsumerData, GroupConfig, ProducerData, Subscription
from pocketmq.model.kinds import (
    COMPRESSION_MASK,
    TRANSACTION_MASK,
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
    TopicKind,
    TransactionState,
)
from pocketmq.model.message import Message, SendReceipt, SendStatus
from pocketmq.model.queue import MessageQueue, QueueName, sort_queues
from pocketmq.model.route import MASTER_ID, BrokerData, QueueData, TopicRoute
from pocketmq.model.topics import MappedTopicConfig, TopicConfig, TopicMapping, TopicMappingDetail
from pocketmq.model.value import DataVersion, WireValue

__all__ = [
    "COMPRESSION_MASK",
    "MASTER_ID",
    "TRANSACTION_MASK",
    "BalanceMode",
    "BrokerData",
    "ConsumeFromWhere",
    "ConsumeResult",
    "ConsumeType",
    "ConsumerData",
    "DataVersion",
    "GroupConfig",
    "MappedTopicConfig",
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
    "QueueStage",
    "SendReceipt",
    "SendStatus",
    "Subscription",
    "SysFlag",
    "TopicConfig",
    "TopicFilterType",
    "TopicKind",
    "TopicMapping",
    "TopicMappingDetail",
    "TopicRoute",
    "TransactionState",
    "WireValue",
    "handover_version",
    "sort_queues",
]
