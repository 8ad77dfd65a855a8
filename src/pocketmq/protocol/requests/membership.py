"""Which clients are connected: heartbeats, leaving, members of a group, checks before a start."""

import msgspec

from pocketmq.model import ConsumerData, ProducerData, Subscription, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import EmptyResponse, Header, RpcHeader
from pocketmq.protocol.peers import CLIENT
from pocketmq.protocol.request import NoHeader, RequestQueue, json_of, request


class Heartbeat(WireValue, frozen=True, kw_only=True):
    """Everything a client is to a broker (Java: HeartbeatData).

    The last two fields are version 2 of the heartbeat (5.x): a body `without_sub` only says that a
    client whose full heartbeat had this fingerprint is alive.
    """

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


class ClientCheck(WireValue, frozen=True, kw_only=True):
    """A subscription a broker is asked to accept (Java: CheckClientRequestBody)."""

    client_id: str | None = None
    group: str | None = None
    namespace: str | None = None
    subscription_data: Subscription | None = None


class ConsumerIds(WireValue, frozen=True, kw_only=True):
    """The members of a group (Java: GetConsumerListByGroupResponseBody)."""

    consumer_id_list: list[str] = []


class HeartbeatRequest(RpcHeader, frozen=True, kw_only=True):
    """Registers a client's groups at a broker; the groups are the body."""


class HeartbeatResponse(Header, frozen=True, kw_only=True):
    """What a 5.x broker says of heartbeats that leave out known subscriptions."""

    is_support_heart_beat_v2: bool = msgspec.field(name="IS_SUPPORT_HEART_BEAT_V2", default=False)
    is_sub_change: bool = msgspec.field(name="IS_SUB_CHANGE", default=False)


class UnregisterClientRequest(RpcHeader, frozen=True, kw_only=True):
    """Takes a client out of its groups, one call for each."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks for the client ids of a group's members."""

    consumer_group: str


class NotifyConsumerIdsChangedRequest(RpcHeader, frozen=True, kw_only=True):
    """Notifies a client that its group's members have changed."""

    consumer_group: str


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
CHECK_CLIENT_CONFIG = request(
    Code.CHECK_CLIENT_CONFIG,
    NoHeader,
    NoHeader,
    body=json_of(ClientCheck),
    queue=RequestQueue.UNLIMITED,
    main_port=True,
)
