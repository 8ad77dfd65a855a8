"""Consumer groups: what they subscribe to, their set-up on a broker, and what heartbeats carry."""

from pocketmq.model.delay import RetryPolicy
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.value import WireValue

TAG = "TAG"
SQL92 = "SQL92"
ALL = "*"


class Subscription(WireValue, frozen=True, kw_only=True):
    """A topic and the expression that selects its messages (Java: SubscriptionData).

    Build one with `pocketmq.protocol.filter.subscribe`, which reads the expression.
    """

    topic: str
    sub_string: str = ALL
    expression_type: str = TAG
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    class_filter_mode: bool = False


class SimpleSubscription(WireValue, frozen=True, kw_only=True):
    """A subscription fixed in the group's set-up (Java: SimpleSubscriptionData)."""

    topic: str | None = None
    expression_type: str | None = None
    expression: str | None = None
    version: int = 0


class GroupConfig(WireValue, frozen=True, kw_only=True):
    """What a group may do and how its retries go; the defaults are Java's.

    (Java: SubscriptionGroupConfig.)
    """

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: RetryPolicy = RetryPolicy()
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: list[SimpleSubscription] | None = None
    attributes: dict[str, str] = {}


class ProducerData(WireValue, frozen=True, kw_only=True):
    """One producer group of a client."""

    group_name: str


class ConsumerData(WireValue, frozen=True, kw_only=True):
    """One consumer group of a client: how it consumes, and what."""

    group_name: str
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False
