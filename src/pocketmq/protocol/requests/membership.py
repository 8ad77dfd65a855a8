"""Who is there: heartbeats, leaving, members of a group, locks on queues."""

from msgspec import field

from pocketmq.protocol.bodies.groups import ConsumerIds
from pocketmq.protocol.bodies.heartbeat import ClientCheck, Heartbeat
from pocketmq.protocol.bodies.locks import LockedQueues, LockQueues, UnlockQueues
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import EmptyResponse, Header, RpcHeader
from pocketmq.protocol.request import CLIENT, NoHeader, RequestQueue, request


class HeartbeatRequest(RpcHeader, frozen=True, kw_only=True):
    """Tells a broker which groups a client belongs to; the groups are the body."""


class HeartbeatResponse(Header, frozen=True, kw_only=True):
    """What a 5.x broker says of heartbeats that leave out known subscriptions."""

    is_support_heart_beat_v2: bool = field(name="IS_SUPPORT_HEART_BEAT_V2", default=False)
    is_sub_change: bool = field(name="IS_SUB_CHANGE", default=False)


class UnregisterClientRequest(RpcHeader, frozen=True, kw_only=True):
    """Takes a client out of its groups, one call for each."""

    client_id: str = field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks for the client ids of a group's members."""

    consumer_group: str


class NotifyConsumerIdsChangedRequest(RpcHeader, frozen=True, kw_only=True):
    """Tells a client that its group's members have changed."""

    consumer_group: str


class LockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Locks queues for one member of a group; the queues are the body."""


class UnlockQueuesRequest(RpcHeader, frozen=True, kw_only=True):
    """Gives locked queues back; the queues are the body."""


HEART_BEAT = request(
    Code.HEART_BEAT,
    HeartbeatRequest,
    HeartbeatResponse,
    body=json_of(Heartbeat),
    queue=RequestQueue.HEARTBEAT,
    main_port=True,
)
UNREGISTER_CLIENT = request(
    Code.UNREGISTER_CLIENT,
    UnregisterClientRequest,
    EmptyResponse,
    queue=RequestQueue.UNLIMITED,
    main_port=True,
)
GET_CONSUMER_LIST_BY_GROUP = request(
    Code.GET_CONSUMER_LIST_BY_GROUP,
    GetConsumerListRequest,
    EmptyResponse,
    result=json_of(ConsumerIds),
    queue=RequestQueue.UNLIMITED,
)
NOTIFY_CONSUMER_IDS_CHANGED = request(
    Code.NOTIFY_CONSUMER_IDS_CHANGED, NotifyConsumerIdsChangedRequest, NoHeader, served_by=CLIENT
)
LOCK_BATCH_MQ = request(
    Code.LOCK_BATCH_MQ,
    LockQueuesRequest,
    NoHeader,
    body=json_of(LockQueues),
    result=json_of(LockedQueues),
)
UNLOCK_BATCH_MQ = request(
    Code.UNLOCK_BATCH_MQ, UnlockQueuesRequest, NoHeader, body=json_of(UnlockQueues)
)
CHECK_CLIENT_CONFIG = request(
    Code.CHECK_CLIENT_CONFIG,
    NoHeader,
    NoHeader,
    body=json_of(ClientCheck),
    queue=RequestQueue.UNLIMITED,
    main_port=True,
)
