"""The Java body classes, the class that models each here, and what Java itself wrote of them."""

import json
from pathlib import Path
from typing import Any

from pocketmq.model.data_version import DataVersion
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.members import ConsumerData, ProducerData
from pocketmq.model.queue import MessageQueue
from pocketmq.model.route import BrokerData, QueueData, TopicRoute
from pocketmq.model.subscription import Subscription
from pocketmq.model.topic_config import MappedTopicConfig, TopicConfig
from pocketmq.model.topic_mapping import MappedRange, TopicMapping, TopicMappingDetail
from pocketmq.protocol.bodies import (
    access,
    assignment,
    cluster,
    connections,
    consume_queue,
    groups,
    heartbeat,
    locks,
    offsets,
    pop,
    registration,
    replication,
    running,
    stats,
    store_check,
    timer,
    topics,
)
from tests.protocol.foreign import lite_bodies as lite
from tests.protocol.foreign import replica_bodies as replicas

MODELS: dict[str, Any] = {
    "AclConfig": access.AccountTable,
    "AclInfo": access.Acl,
    "BatchAck": pop.BatchAck,
    "BatchAckMessageRequestBody": pop.BatchAcks,
    "BrokerData": BrokerData,
    "BrokerMemberGroup": cluster.MemberGroup,
    "BrokerReplicasInfo": replicas.BrokerReplicas,
    "BrokerStatsData": stats.BrokerStats,
    "BrokerStatsItem": stats.StatsItem,
    "CheckClientRequestBody": heartbeat.ClientCheck,
    "CheckRocksdbCqWriteResult": store_check.StoreCheck,
    "ClusterInfo": cluster.ClusterInfo,
    "Connection": connections.ClientConnection,
    "ConsumeByWho": groups.ConsumedBy,
    "ConsumeMessageDirectlyResult": running.DirectConsumeResult,
    "ConsumeQueueData": consume_queue.ConsumeQueueEntry,
    "ConsumeStats": stats.ConsumeStats,
    "ConsumeStatsList": stats.BrokerConsumeStats,
    "ConsumeStatus": running.ConsumeStatus,
    "ConsumerConnection": connections.ConsumerConnections,
    "ConsumerData": ConsumerData,
    "ConsumerOffsetSerializeWrapper": offsets.ConsumerOffsets,
    "ConsumerRunningInfo": running.RunningInfo,
    "CreateTopicListRequestBody": topics.TopicConfigs,
    "DataVersion": DataVersion,
    "DelayOffsetSerializeWrapper": offsets.DelayOffsets,
    "ElectMasterResponseBody": replicas.ElectedMaster,
    "EpochEntry": replicas.Epoch,
    "EpochEntryCache": replicas.EpochCache,
    "GetBrokerLiteInfoResponseBody": lite.LiteBrokerInfo,
    "GetBrokerMemberGroupResponseBody": cluster.MemberGroupAnswer,
    "GetConsumerListByGroupResponseBody": groups.ConsumerIds,
    "GetConsumerStatusBody": offsets.ConsumerStatus,
    "GetLiteClientInfoResponseBody": lite.LiteClientInfo,
    "GetLiteGroupInfoResponseBody": lite.LiteGroupInfo,
    "GetLiteTopicInfoResponseBody": lite.LiteTopicInfo,
    "GetParentTopicInfoResponseBody": lite.LiteParentInfo,
    "GroupForbidden": groups.GroupForbidden,
    "GroupList": groups.GroupNames,
    "HARuntimeInfo": replication.HAStatus,
    "HeartbeatData": heartbeat.Heartbeat,
    "KVTable": cluster.KVTable,
    "LiteLagInfo": lite.LiteLag,
    "LiteSubscriptionCtlRequestBody": lite.LiteSubscriptions,
    "LiteSubscriptionDTO": lite.LiteSubscription,
    "LockBatchRequestBody": locks.LockQueues,
    "LockBatchResponseBody": locks.LockedQueues,
    "LogicQueueMappingItem": MappedRange,
    "MessageQueue": MessageQueue,
    "MessageQueueAssignment": assignment.QueueAssignment,
    "MessageQueueForC": offsets.QueueOffset,
    "MessageRequestModeSerializeWrapper": assignment.RequestModes,
    "Metric": timer.TimerMetric,
    "OffsetMovedEvent": offsets.OffsetMoved,
    "OffsetWrapper": stats.QueueProgress,
    "PlainAccessConfig": access.Account,
    "PopProcessQueueInfo": running.PopProcessQueueInfo,
    "ProcessQueueInfo": running.ProcessQueueInfo,
    "ProducerConnection": connections.ProducerConnections,
    "ProducerData": ProducerData,
    "ProducerInfo": connections.ProducerInfo,
    "ProducerTableInfo": connections.ProducerTable,
    "QueryAssignmentRequestBody": assignment.AssignmentQuery,
    "QueryAssignmentResponseBody": assignment.Assignments,
    "QueryConsumeQueueResponseBody": consume_queue.ConsumeQueuePage,
    "QueryConsumeTimeSpanBody": stats.TimeSpans,
    "QueryCorrectionOffsetBody": offsets.CorrectionOffsets,
    "QuerySubscriptionResponseBody": groups.GroupSubscription,
    "QueueData": QueueData,
    "QueueTimeSpan": stats.QueueTimeSpan,
    "RegisterBrokerBody": registration.Registration,
    "ResetOffsetBody": offsets.ResetOffset,
    "ResetOffsetBodyForC": offsets.ListedResetOffset,
    "SetMessageRequestModeRequestBody": assignment.RequestMode,
    "SubscriptionData": Subscription,
    "SubscriptionGroupConfig": GroupConfig,
    "SubscriptionGroupList": groups.GroupConfigs,
    "SubscriptionGroupWrapper": groups.GroupTable,
    "SyncStateSet": replicas.SyncStateSet,
    "TimerMetricsSerializeWrapper": timer.TimerMetrics,
    "TopicConfig": TopicConfig,
    "TopicConfigAndMappingSerializeWrapper": topics.TopicTable,
    "TopicConfigAndQueueMapping": MappedTopicConfig,
    "TopicConfigSerializeWrapper": topics.TopicTable,
    "TopicList": topics.TopicNames,
    "TopicOffset": stats.OffsetRange,
    "TopicQueueMappingDetail": TopicMappingDetail,
    "TopicQueueMappingInfo": TopicMapping,
    "TopicRouteData": TopicRoute,
    "TopicStatsTable": stats.TopicStats,
    "UnlockBatchRequestBody": locks.UnlockQueues,
    "UserInfo": access.User,
}

_VECTORS = Path(__file__).parent.parent / "vectors"
LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (_VECTORS / "java-bodies.jsonl").read_text().splitlines()
]
JSON_LINES = [line for line in LINES if "json" in line]
FRAMES: list[dict[str, Any]] = [
    json.loads(line) for line in (_VECTORS / "java-frames.jsonl").read_text().splitlines()
]


def named(line: dict[str, Any]) -> str:
    return f"{line['release']}-{line['name']}-{line['variant']}"


def one(release: str, name: str, variant: str) -> dict[str, Any]:
    (line,) = (
        line
        for line in LINES
        if (line["release"], line["name"], line.get("variant")) == (release, name, variant)
    )
    return line
