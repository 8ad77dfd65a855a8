"""Lite topics (5.5): many small topics inside one, subscribed one by one."""

from enum import Enum

from pocketmq.model import WireValue
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
