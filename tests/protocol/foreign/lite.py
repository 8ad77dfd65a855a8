"""Lite topics (5.5): many small topics below one parent, consumed by pop."""

from enum import Enum

from pocketmq.model import WireValue
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64, RpcHeader
from pocketmq.protocol.peers import CLIENT
from pocketmq.protocol.request import STORED_MESSAGES, NoHeader, json_of, request
from pocketmq.protocol.requests.stats import OffsetRange, QueueProgress


class LiteAction(Enum):
    """What a client does to its set of lite topics (Java: LiteSubscriptionAction)."""

    PARTIAL_ADD = "PARTIAL_ADD"
    PARTIAL_REMOVE = "PARTIAL_REMOVE"
    COMPLETE_ADD = "COMPLETE_ADD"
    COMPLETE_REMOVE = "COMPLETE_REMOVE"


class LiteStartKind(Enum):
    """How the start in a lite topic is given."""

    POLICY = "POLICY"
    OFFSET = "OFFSET"
    TAIL_N = "TAIL_N"
    TIMESTAMP = "TIMESTAMP"


class LiteStart(WireValue, frozen=True, kw_only=True):
    """Where to begin in a lite topic (Java: OffsetOption)."""

    type: LiteStartKind | None = None
    value: int = 0


class LiteSubscription(WireValue, frozen=True, kw_only=True):
    """A change of one client's lite topics (Java: LiteSubscriptionDTO)."""

    action: LiteAction | None = None
    client_id: str | None = None
    group: str | None = None
    topic: str | None = None
    lite_topic_set: list[str] | None = None
    offset_option: LiteStart | None = None
    version: int = 0


class LiteSubscriptions(WireValue, frozen=True, kw_only=True):
    """Several such changes (Java: LiteSubscriptionCtlRequestBody)."""

    subscription_set: list[LiteSubscription] | None = None


class LiteBrokerInfo(WireValue, frozen=True, kw_only=True):
    """A broker's lite topics in figures (Java: GetBrokerLiteInfoResponseBody)."""

    store_type: str | None = None
    max_lmq_num: int = 0
    current_lmq_num: int = 0
    lite_subscription_count: int = 0
    order_info_count: int = 0
    cq_table_size: int = 0
    offset_table_size: int = 0
    event_map_size: int = 0
    topic_meta: dict[str, int] | None = None
    group_meta: dict[str, list[str]] | None = None


class LiteParentInfo(WireValue, frozen=True, kw_only=True):
    """A topic that holds lite topics (Java: GetParentTopicInfoResponseBody)."""

    topic: str | None = None
    ttl: int = 0
    groups: list[str] | None = None
    lmq_num: int = 0
    lite_topic_count: int = 0


class LiteSubscriber(WireValue, frozen=True, kw_only=True):
    """A client of a group (Java: ClientGroup)."""

    client_id: str | None = None
    group: str | None = None


class LiteTopicInfo(WireValue, frozen=True, kw_only=True):
    """One lite topic (Java: GetLiteTopicInfoResponseBody)."""

    parent_topic: str | None = None
    lite_topic: str | None = None
    subscriber: list[LiteSubscriber] | None = None
    topic_offset: OffsetRange | None = None
    sharding_to_broker: bool = False


class LiteClientInfo(WireValue, frozen=True, kw_only=True):
    """One client's lite topics (Java: GetLiteClientInfoResponseBody)."""

    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    last_access_time: int = 0
    last_consume_time: int = 0
    lite_topic_count: int = 0
    lite_topic_set: list[str] | None = None


class LiteLag(WireValue, frozen=True, kw_only=True):
    """How far a group is behind in a lite topic (Java: LiteLagInfo)."""

    lite_topic: str | None = None
    lag_count: int = 0
    earliest_unconsumed_timestamp: int = -1


class LiteGroupInfo(WireValue, frozen=True, kw_only=True):
    """How far a group is behind in all its lite topics (Java: GetLiteGroupInfoResponseBody)."""

    group: str | None = None
    parent_topic: str | None = None
    lite_topic: str | None = None
    earliest_unconsumed_timestamp: int = -1
    total_lag_count: int = 0
    lite_topic_offset_wrapper: QueueProgress | None = None
    lag_count_top_k: list[LiteLag] | None = None
    lag_timestamp_top_k: list[LiteLag] | None = None


class PopLiteRequest(RpcHeader, frozen=True, kw_only=True):
    """Takes messages of the lite topics a client has subscribed to."""

    client_id: str
    consumer_group: str
    topic: str
    max_msg_num: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    attempt_id: str | None = None


class PopLiteResponse(Header, frozen=True, kw_only=True):
    """When and how the messages were taken."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class LiteSubscriptionRequest(RpcHeader, frozen=True, kw_only=True):
    """Changes what lite topics a client subscribes to; the changes are the body."""


class NotifyUnsubscribeLiteRequest(RpcHeader, frozen=True, kw_only=True):
    """Tells a client that its subscription to a lite topic has ended."""

    lite_topic: str
    consumer_group: str
    client_id: str


class GetParentTopicInfoRequest(Header, frozen=True, kw_only=True):
    """Asks about the lite topics below a topic."""

    topic: str


class GetLiteTopicInfoRequest(Header, frozen=True, kw_only=True):
    """Asks about one lite topic."""

    parent_topic: str | None = None
    lite_topic: str | None = None


class GetLiteClientInfoRequest(Header, frozen=True, kw_only=True):
    """Asks for the lite topics of one client."""

    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    max_count: Int32 = 1000


class GetLiteGroupInfoRequest(Header, frozen=True, kw_only=True):
    """Asks how far a group lags behind in its lite topics."""

    group: str
    lite_topic: str | None = None
    top_k: Int32 = 0


class TriggerLiteDispatchRequest(Header, frozen=True, kw_only=True):
    """Has waiting messages of lite topics offered to a group again."""

    group: str
    client_id: str | None = None


POP_LITE_MESSAGE = request(
    Code.POP_LITE_MESSAGE, PopLiteRequest, PopLiteResponse, result=STORED_MESSAGES
)
LITE_SUBSCRIPTION_CTL = request(
    Code.LITE_SUBSCRIPTION_CTL,
    LiteSubscriptionRequest,
    NoHeader,
    body=json_of(LiteSubscriptions),
)
NOTIFY_UNSUBSCRIBE_LITE = request(
    Code.NOTIFY_UNSUBSCRIBE_LITE, NotifyUnsubscribeLiteRequest, NoHeader, served_by=CLIENT
)
GET_BROKER_LITE_INFO = request(
    Code.GET_BROKER_LITE_INFO, NoHeader, NoHeader, result=json_of(LiteBrokerInfo)
)
GET_PARENT_TOPIC_INFO = request(
    Code.GET_PARENT_TOPIC_INFO,
    GetParentTopicInfoRequest,
    NoHeader,
    result=json_of(LiteParentInfo),
)
GET_LITE_TOPIC_INFO = request(
    Code.GET_LITE_TOPIC_INFO,
    GetLiteTopicInfoRequest,
    NoHeader,
    result=json_of(LiteTopicInfo),
)
GET_LITE_CLIENT_INFO = request(
    Code.GET_LITE_CLIENT_INFO,
    GetLiteClientInfoRequest,
    NoHeader,
    result=json_of(LiteClientInfo),
)
GET_LITE_GROUP_INFO = request(
    Code.GET_LITE_GROUP_INFO,
    GetLiteGroupInfoRequest,
    NoHeader,
    result=json_of(LiteGroupInfo),
)
TRIGGER_LITE_DISPATCH = request(Code.TRIGGER_LITE_DISPATCH, TriggerLiteDispatchRequest, NoHeader)
