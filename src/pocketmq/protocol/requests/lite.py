"""Lite topics (5.5): many small topics below one parent, consumed by pop."""

from pocketmq.protocol.header import Header, Int32, Int64, RpcHeader


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
