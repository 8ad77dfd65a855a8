"""How a consumer group is set up on one broker."""

from enum import Enum

from pocketmq.model.value import WireValue


class RetryPolicyKind(Enum):
    """How the pauses between retries grow (5.x)."""

    EXPONENTIAL = "EXPONENTIAL"
    CUSTOMIZED = "CUSTOMIZED"


class ExponentialRetry(WireValue, frozen=True, kw_only=True):
    """Pauses in milliseconds that grow by a factor up to a limit."""

    initial: int = 5000
    max: int = 7_200_000
    multiplier: int = 2


class CustomizedRetry(WireValue, frozen=True, kw_only=True):
    """Pauses in milliseconds, one by one."""

    next: tuple[int, ...] = (
        1000, 5000, 10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000,
        480_000, 540_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000,
    )  # fmt: skip


class RetryPolicy(WireValue, frozen=True, kw_only=True):
    """A group's choice of pauses between retries (5.x)."""

    type: RetryPolicyKind = RetryPolicyKind.CUSTOMIZED
    exponential_retry_policy: ExponentialRetry | None = None
    customized_retry_policy: CustomizedRetry | None = None


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
