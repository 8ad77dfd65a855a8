"""The Java body classes, the class that models each here, and what Java itself wrote of them."""

import json
from pathlib import Path
from typing import Any

from pocketmq.model.groups import ConsumerData, GroupConfig, ProducerData, Subscription
from pocketmq.model.queue import MessageQueue
from pocketmq.model.route import BrokerData, QueueData, TopicRoute
from pocketmq.model.topics import (
    MappedRange,
    MappedTopicConfig,
    TopicConfig,
    TopicMapping,
    TopicMappingDetail,
)
from pocketmq.model.value import DataVersion
from pocketmq.protocol import registration
from pocketmq.protocol.requests import (
    access,
    assignment,
    broker_admin,
    client_calls,
    groups,
    key_values,
    membership,
    nameserver,
    offsets,
    pop,
    reading,
    stats,
    topics,
)
from tests.protocol.foreign import lite
from tests.protocol.foreign import replication as replicas

MODELS: dict[str, Any] = {
    "AclConfig": access.AccountTable,
    "AclInfo": access.Acl,
    "BatchAck": pop.BatchAck,
    "BatchAckMessageRequestBody": pop.BatchAcks,
    "BrokerData": BrokerData,
    "BrokerMemberGroup": nameserver.MemberGroup,
    "BrokerReplicasInfo": replicas.BrokerReplicas,
    "BrokerStatsData": stats.BrokerStats,
    "BrokerStatsItem": stats.StatsItem,
    "CheckClientRequestBody": membership.ClientCheck,
    "CheckRocksdbCqWriteResult": broker_admin.StoreCheck,
    "ClusterInfo": nameserver.ClusterInfo,
    "Connection": groups.ClientConnection,
    "ConsumeByWho": groups.ConsumedBy,
    "ConsumeMessageDirectlyResult": client_calls.DirectConsumeResult,
    "ConsumeQueueData": reading.ConsumeQueueEntry,
    "ConsumeStats": stats.ConsumeStatsBody,
    "ConsumeStatsList": stats.BrokerConsumeStats,
    "ConsumeStatus": client_calls.ConsumeStatus,
    "ConsumerConnection": groups.ConsumerConnections,
    "ConsumerData": ConsumerData,
    "ConsumerOffsetSerializeWrapper": offsets.ConsumerOffsets,
    "ConsumerRunningInfo": client_calls.RunningInfo,
    "CreateTopicListRequestBody": topics.TopicConfigs,
    "DataVersion": DataVersion,
    "DelayOffsetSerializeWrapper": offsets.DelayOffsets,
    "ElectMasterResponseBody": replicas.ElectedMaster,
    "EpochEntry": replicas.Epoch,
    "EpochEntryCache": replicas.EpochCache,
    "GetBrokerLiteInfoResponseBody": lite.LiteBrokerInfo,
    "GetBrokerMemberGroupResponseBody": nameserver.MemberGroupAnswer,
    "GetConsumerListByGroupResponseBody": membership.ConsumerIds,
    "GetConsumerStatusBody": offsets.ConsumerStatus,
    "GetLiteClientInfoResponseBody": lite.LiteClientInfo,
    "GetLiteGroupInfoResponseBody": lite.LiteGroupInfo,
    "GetLiteTopicInfoResponseBody": lite.LiteTopicInfo,
    "GetParentTopicInfoResponseBody": lite.LiteParentInfo,
    "GroupForbidden": groups.GroupForbidden,
    "GroupList": topics.GroupNames,
    "HARuntimeInfo": broker_admin.HAStatus,
    "HeartbeatData": membership.Heartbeat,
    "KVTable": key_values.KVTable,
    "LiteLagInfo": lite.LiteLag,
    "LiteSubscriptionCtlRequestBody": lite.LiteSubscriptions,
    "LiteSubscriptionDTO": lite.LiteSubscription,
    "LockBatchRequestBody": assignment.LockQueues,
    "LockBatchResponseBody": assignment.LockedQueues,
    "LogicQueueMappingItem": MappedRange,
    "MessageQueue": MessageQueue,
    "MessageQueueAssignment": assignment.QueueAssignment,
    "MessageQueueForC": offsets.QueueOffset,
    "MessageRequestModeSerializeWrapper": assignment.RequestModes,
    "Metric": broker_admin.TimerMetric,
    "OffsetMovedEvent": offsets.OffsetMovedBody,
    "OffsetWrapper": stats.QueueProgress,
    "PlainAccessConfig": access.Account,
    "PopProcessQueueInfo": client_calls.PopProcessQueueInfo,
    "ProcessQueueInfo": client_calls.ProcessQueueBody,
    "ProducerConnection": groups.ProducerConnections,
    "ProducerData": ProducerData,
    "ProducerInfo": groups.ProducerInfo,
    "ProducerTableInfo": groups.ProducerTableBody,
    "QueryAssignmentRequestBody": assignment.AssignmentQuery,
    "QueryAssignmentResponseBody": assignment.Assignments,
    "QueryConsumeQueueResponseBody": reading.ConsumeQueuePage,
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
    "SubscriptionGroupWrapper": groups.GroupTableBody,
    "SyncStateSet": replicas.SyncStateSet,
    "TimerMetricsSerializeWrapper": broker_admin.TimerMetrics,
    "TopicConfig": TopicConfig,
    "TopicConfigAndMappingSerializeWrapper": topics.TopicTableBody,
    "TopicConfigAndQueueMapping": MappedTopicConfig,
    "TopicConfigSerializeWrapper": topics.TopicTableBody,
    "TopicList": topics.TopicNames,
    "TopicOffset": stats.OffsetRange,
    "TopicQueueMappingDetail": TopicMappingDetail,
    "TopicQueueMappingInfo": TopicMapping,
    "TopicRouteData": TopicRoute,
    "TopicStatsTable": stats.TopicStatsBody,
    "UnlockBatchRequestBody": assignment.UnlockQueues,
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
