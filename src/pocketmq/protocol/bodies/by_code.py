"""Which body each request and each successful response carries.

The tables hold every request code. A type is read and written by `json_values`; a `BodyForm` says
that the body is something else, or that there is none.
"""

from enum import Enum, auto
from typing import Any

from pocketmq.model.data_version import DataVersion
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.route import TopicRoute
from pocketmq.model.topic_config import MappedTopicConfig
from pocketmq.model.topic_mapping import TopicMappingDetail
from pocketmq.protocol.bodies.access import AccountTable, Acl, User
from pocketmq.protocol.bodies.assignment import (
    AssignmentQuery,
    Assignments,
    RequestMode,
    RequestModes,
)
from pocketmq.protocol.bodies.cluster import ClusterInfo, KVTable, MemberGroupAnswer
from pocketmq.protocol.bodies.connections import (
    ConsumerConnections,
    ProducerConnections,
    ProducerTable,
)
from pocketmq.protocol.bodies.consume_queue import ConsumeQueuePage
from pocketmq.protocol.bodies.groups import (
    ConsumerIds,
    GroupConfigs,
    GroupForbidden,
    GroupNames,
    GroupSubscription,
    GroupTable,
)
from pocketmq.protocol.bodies.heartbeat import ClientCheck, Heartbeat
from pocketmq.protocol.bodies.lite import (
    LiteBrokerInfo,
    LiteClientInfo,
    LiteGroupInfo,
    LiteParentInfo,
    LiteSubscriptions,
    LiteTopicInfo,
)
from pocketmq.protocol.bodies.locks import LockedQueues, LockQueues, UnlockQueues
from pocketmq.protocol.bodies.offsets import (
    ConsumerOffsets,
    ConsumerStatus,
    CorrectionOffsets,
    DelayOffsets,
    ResetOffset,
)
from pocketmq.protocol.bodies.pop import BatchAcks
from pocketmq.protocol.bodies.replication import (
    BrokerReplicas,
    ElectedMaster,
    EpochCache,
    HAStatus,
    SyncStateSet,
)
from pocketmq.protocol.bodies.running import DirectConsumeResult, RunningInfo
from pocketmq.protocol.bodies.stats import (
    BrokerConsumeStats,
    BrokerStats,
    ConsumeStats,
    TimeSpans,
    TopicStats,
)
from pocketmq.protocol.bodies.store_check import StoreCheck
from pocketmq.protocol.bodies.timer import TimerMetrics
from pocketmq.protocol.bodies.topics import TopicConfigs, TopicNames, TopicTable
from pocketmq.protocol.codes import RequestCode as Code


class BodyForm(Enum):
    """A body that is not one JSON value of a known type."""

    NONE = auto()  # no body: everything is in the header's fields
    RAW = auto()  # an application's bytes, perhaps compressed
    BATCH = auto()  # messages of a batch, one after the other
    STORED_MESSAGES = auto()  # records as the commit log has them, one after the other
    PROPERTIES_TEXT = auto()  # `bodies.properties_text`
    TEXT = auto()  # one name, as UTF-8
    REGISTRATION = auto()  # `bodies.registration`: JSON, or compressed if the header says so
    TIMER_CHECKPOINT = auto()  # `bodies.timer`
    JSON = auto()  # JSON without a fixed shape: `fastjson.loads`


Body = Any
"""A class, a `list[...]` of one, or a `BodyForm`."""

_REQUESTS: dict[Code, Body] = {
    Code.SEND_MESSAGE: BodyForm.RAW,
    Code.SEND_MESSAGE_V2: BodyForm.RAW,
    Code.SEND_BATCH_MESSAGE: BodyForm.BATCH,
    Code.SEND_REPLY_MESSAGE: BodyForm.RAW,
    Code.SEND_REPLY_MESSAGE_V2: BodyForm.RAW,
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT: BodyForm.RAW,
    Code.REGISTER_MESSAGE_FILTER_CLASS: BodyForm.RAW,
    Code.CHECK_TRANSACTION_STATE: BodyForm.STORED_MESSAGES,
    Code.CONSUME_MESSAGE_DIRECTLY: BodyForm.STORED_MESSAGES,  # from the broker on to the client
    Code.HEART_BEAT: Heartbeat,
    Code.CHECK_CLIENT_CONFIG: ClientCheck,
    Code.LOCK_BATCH_MQ: LockQueues,
    Code.UNLOCK_BATCH_MQ: UnlockQueues,
    Code.QUERY_ASSIGNMENT: AssignmentQuery,
    Code.SET_MESSAGE_REQUEST_MODE: RequestMode,
    Code.BATCH_ACK_MESSAGE: BatchAcks,
    Code.LITE_SUBSCRIPTION_CTL: LiteSubscriptions,
    Code.RESET_CONSUMER_CLIENT_OFFSET: ResetOffset,
    Code.REGISTER_BROKER: BodyForm.REGISTRATION,
    Code.REGISTER_TOPIC_IN_NAMESRV: TopicRoute,
    Code.QUERY_DATA_VERSION: DataVersion,
    Code.UPDATE_AND_CREATE_TOPIC_LIST: TopicConfigs,
    Code.UPDATE_AND_CREATE_STATIC_TOPIC: TopicMappingDetail,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: GroupConfig,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: GroupConfigs,
    Code.UPDATE_BROKER_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.UPDATE_NAMESRV_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.UPDATE_CONTROLLER_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: BodyForm.TEXT,
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: SyncStateSet,
    Code.CONTROLLER_GET_SYNC_STATE_DATA: list[str],
    Code.NOTIFY_BROKER_ROLE_CHANGED: SyncStateSet,
    Code.AUTH_CREATE_USER: User,
    Code.AUTH_UPDATE_USER: User,
    Code.AUTH_CREATE_ACL: Acl,
    Code.AUTH_UPDATE_ACL: Acl,
}

_RESPONSES: dict[Code, Body] = {
    Code.PULL_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.LITE_PULL_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.POP_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.POP_LITE_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.PEEK_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.QUERY_MESSAGE: BodyForm.STORED_MESSAGES,
    Code.VIEW_MESSAGE_BY_ID: BodyForm.STORED_MESSAGES,
    Code.GET_CONSUMER_LIST_BY_GROUP: ConsumerIds,
    Code.LOCK_BATCH_MQ: LockedQueues,
    Code.QUERY_ASSIGNMENT: Assignments,
    Code.GET_ALL_MESSAGE_REQUEST_MODE: RequestModes,
    Code.REGISTER_BROKER: KVTable,
    Code.GET_ROUTEINFO_BY_TOPIC: TopicRoute,
    Code.GET_BROKER_CLUSTER_INFO: ClusterInfo,
    Code.GET_KVLIST_BY_NAMESPACE: KVTable,
    Code.GET_BROKER_MEMBER_GROUP: MemberGroupAnswer,
    Code.QUERY_DATA_VERSION: DataVersion,
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicNames,
    Code.GET_TOPICS_BY_CLUSTER: TopicNames,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: TopicNames,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: TopicNames,
    Code.GET_UNIT_TOPIC_LIST: TopicNames,
    Code.GET_HAS_UNIT_SUB_TOPIC_LIST: TopicNames,
    Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: TopicNames,
    Code.QUERY_TOPICS_BY_CONSUMER: TopicNames,
    Code.QUERY_TOPIC_CONSUME_BY_WHO: GroupNames,
    Code.GET_ALL_TOPIC_CONFIG: TopicTable,
    Code.GET_TOPIC_CONFIG: MappedTopicConfig,
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: GroupTable,
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: GroupConfig,
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: GroupForbidden,
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: GroupSubscription,
    Code.GET_ALL_CONSUMER_OFFSET: ConsumerOffsets,
    Code.GET_ALL_DELAY_OFFSET: DelayOffsets,
    Code.GET_TOPIC_STATS_INFO: TopicStats,
    Code.GET_CONSUME_STATS: ConsumeStats,
    Code.GET_BROKER_CONSUME_STATS: BrokerConsumeStats,
    Code.VIEW_BROKER_STATS_DATA: BrokerStats,
    Code.QUERY_CONSUME_TIME_SPAN: TimeSpans,
    Code.QUERY_CORRECTION_OFFSET: CorrectionOffsets,
    Code.QUERY_CONSUME_QUEUE: ConsumeQueuePage,
    Code.GET_CONSUMER_CONNECTION_LIST: ConsumerConnections,
    Code.GET_PRODUCER_CONNECTION_LIST: ProducerConnections,
    Code.GET_ALL_PRODUCER_INFO: ProducerTable,
    Code.GET_CONSUMER_STATUS_FROM_CLIENT: ConsumerStatus,
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: ConsumerStatus,
    Code.INVOKE_BROKER_TO_RESET_OFFSET: ResetOffset,
    Code.GET_CONSUMER_RUNNING_INFO: RunningInfo,
    Code.CONSUME_MESSAGE_DIRECTLY: DirectConsumeResult,
    Code.GET_BROKER_RUNTIME_INFO: KVTable,
    Code.GET_BROKER_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.GET_NAMESRV_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.GET_CONTROLLER_CONFIG: BodyForm.PROPERTIES_TEXT,
    Code.GET_COLD_DATA_FLOW_CTR_INFO: BodyForm.JSON,
    Code.GET_TIMER_CHECK_POINT: BodyForm.TIMER_CHECKPOINT,
    Code.GET_TIMER_METRICS: TimerMetrics,
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: StoreCheck,
    Code.GET_BROKER_HA_STATUS: HAStatus,
    Code.GET_BROKER_EPOCH_CACHE: EpochCache,
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: SyncStateSet,
    Code.CONTROLLER_ELECT_MASTER: ElectedMaster,
    Code.CONTROLLER_REGISTER_BROKER: SyncStateSet,
    Code.CONTROLLER_GET_REPLICA_INFO: SyncStateSet,
    Code.CONTROLLER_GET_SYNC_STATE_DATA: BrokerReplicas,
    Code.GET_BROKER_CLUSTER_ACL_CONFIG: AccountTable,
    Code.AUTH_GET_USER: User,
    Code.AUTH_LIST_USER: list[User],
    Code.AUTH_GET_ACL: Acl,
    Code.AUTH_LIST_ACL: list[Acl],
    Code.GET_BROKER_LITE_INFO: LiteBrokerInfo,
    Code.GET_PARENT_TOPIC_INFO: LiteParentInfo,
    Code.GET_LITE_TOPIC_INFO: LiteTopicInfo,
    Code.GET_LITE_CLIENT_INFO: LiteClientInfo,
    Code.GET_LITE_GROUP_INFO: LiteGroupInfo,
}

REQUEST_BODIES: dict[Code, Body] = dict.fromkeys(Code, BodyForm.NONE) | _REQUESTS
RESPONSE_BODIES: dict[Code, Body] = dict.fromkeys(Code, BodyForm.NONE) | _RESPONSES
