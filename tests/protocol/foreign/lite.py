"""Lite topics (5.5): many small topics below one parent, consumed by pop."""

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64, RpcHeader
from pocketmq.protocol.request import CLIENT, STORED_MESSAGES, NoHeader, json_of, request
from tests.protocol.foreign import lite_bodies


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
    body=json_of(lite_bodies.LiteSubscriptions),
)
NOTIFY_UNSUBSCRIBE_LITE = request(
    Code.NOTIFY_UNSUBSCRIBE_LITE, NotifyUnsubscribeLiteRequest, NoHeader, served_by=CLIENT
)
GET_BROKER_LITE_INFO = request(
    Code.GET_BROKER_LITE_INFO, NoHeader, NoHeader, result=json_of(lite_bodies.LiteBrokerInfo)
)
GET_PARENT_TOPIC_INFO = request(
    Code.GET_PARENT_TOPIC_INFO,
    GetParentTopicInfoRequest,
    NoHeader,
    result=json_of(lite_bodies.LiteParentInfo),
)
GET_LITE_TOPIC_INFO = request(
    Code.GET_LITE_TOPIC_INFO,
    GetLiteTopicInfoRequest,
    NoHeader,
    result=json_of(lite_bodies.LiteTopicInfo),
)
GET_LITE_CLIENT_INFO = request(
    Code.GET_LITE_CLIENT_INFO,
    GetLiteClientInfoRequest,
    NoHeader,
    result=json_of(lite_bodies.LiteClientInfo),
)
GET_LITE_GROUP_INFO = request(
    Code.GET_LITE_GROUP_INFO,
    GetLiteGroupInfoRequest,
    NoHeader,
    result=json_of(lite_bodies.LiteGroupInfo),
)
TRIGGER_LITE_DISPATCH = request(Code.TRIGGER_LITE_DISPATCH, TriggerLiteDispatchRequest, NoHeader)
