"""What consumers can be told, with Java's defaults and Java's ranges.

Times are seconds, sizes bytes; flow control is in `balance.consumer.limits`.
"""

import msgspec

from pocketmq.balance.allocation import Strategy, StrategySettings, strategy_by_name
from pocketmq.balance.consumer.limits import LitePullLimits, PullLimits
from pocketmq.balance.consumer.popping import POP_BATCH, POP_INVISIBLE, POP_LIMIT
from pocketmq.balance.consumer.pulling import RETRY_AFTER_ERROR
from pocketmq.client.checks import (
    DamageWord,
    ModelWord,
    StartWord,
    check_range,
    check_seconds,
    settle_kinds,
)
from pocketmq.client.options import ClientSettings
from pocketmq.errors import InvalidInput
from pocketmq.model.kinds import ConsumeFromWhere, MessageModel, OnDamage
from pocketmq.model.names import TRACE_TOPIC, check_consumer_group, check_topic

LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
LATEST = 1e11
"""No start is later than the year 5138: a larger number is most likely milliseconds."""


class ConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What all consumers have in common. Raises `InvalidInput` for what can never work."""

    group: str
    """The name that members share who share the work."""
    model: MessageModel = MessageModel.CLUSTERING
    """`clustering`: each message to one member; `broadcasting`: to all."""
    consume_from: ConsumeFromWhere = LAST
    """Where a group begins that has no offset stored: `first`, `last` or `timestamp`."""
    start_at: float | None = None
    """With `timestamp`: when, in seconds since 1970. None: half an hour before the start."""
    strategy: str | Strategy = "AVG"
    """The allocation strategy, by Java's name, or one of your own."""
    strategy_settings: StrategySettings = StrategySettings()
    """What some strategies need besides their name: rooms, or the queues of CONFIG."""
    unit_mode: bool = False
    """Tell brokers that the group is one of a unit."""
    offsets_dir: str = ""
    """Where a broadcasting consumer keeps its offsets. Empty: `.rocketmq_offsets` in the home."""
    damaged: OnDamage = OnDamage.SKIP
    """What to do about a message whose record is damaged: `skip` it, or `stop` at it.

    Either is logged as an error, after a few tries. Popped messages are skipped in any case."""
    history_size: int = 256
    """How many rebalances the consumer remembers."""

    def __post_init__(self) -> None:
        settle_kinds(self)
        check_consumer_group(self.group)
        self._check_start()
        check_range("history_size", self.history_size, 1, 100_000)
        self.allocation()

    def allocation(self) -> Strategy:
        """Give the strategy; raises `StrategyUnknown` or `AllocationInputInvalid`."""
        if isinstance(self.strategy, str):
            return strategy_by_name(self.strategy, self.strategy_settings)
        if not callable(getattr(self.strategy, "allocate", None)):
            raise InvalidInput(f"strategy is a name such as 'AVG', not {self.strategy!r}")
        return self.strategy

    def _check_start(self) -> None:
        at = self.start_at
        if at is None:
            return
        if self.consume_from is not ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            raise InvalidInput("start_at counts only with consume_from='timestamp'")
        if not 0 <= at <= LATEST:
            raise InvalidInput(f"start_at is in seconds since 1970, not {at!r}")


class PushConsumerOptions(ConsumerOptions, frozen=True, kw_only=True):
    """How a consumer with handlers works (Java: DefaultMQPushConsumer)."""

    orderly: bool = False
    """One message of a queue at a time, in order, under the broker's lock."""
    limits: PullLimits = PullLimits()
    """How much may be waiting for handlers before pulls pause."""
    pull_interval: float = 0.0
    """How long to rest between two pulls of a queue that found something."""
    pull_retry: float = RETRY_AFTER_ERROR
    """How long to wait after a pull that failed."""
    pull_batch: int | None = None
    """Messages of one pull, at most; not given: 32, and up to 256 while more than that wait."""
    pull_batch_bytes: int | None = None
    """At most so many bytes a pull (5.x); not given: 256 KiB, and 1 MiB while many wait."""
    handler_batch: int = 1
    """Messages a handler gets at once, at most."""
    threads: int = 20
    """For handlers that are not coroutines, and how many calls of those that are run at once."""
    max_reconsume_times: int = -1
    """-1: 16 times, and without end for orderly consumers."""
    suspend_queue: float = 1.0
    """How long an orderly consumer waits after a failure before it tries the message again."""
    consume_timeout: float = 900.0
    """A message that is being handled for longer is sent back and forgotten."""
    subscription_in_pull: bool = False
    """Send the subscription with each pull (Java: postSubscriptionWhenPull)."""
    client_rebalance: bool = True
    """False: let the broker say which queues are ours (5.x)."""
    pop_batch: int = POP_BATCH
    """Messages of a pop, where the broker says that queues are popped."""
    pop_invisible: float = POP_INVISIBLE
    """How long popped messages are hidden from others, to be handled."""
    pop_limit: int = POP_LIMIT
    """With more messages of a queue under handlers nothing is popped."""
    stop_wait: float = 10.0
    """How long `close` lets handlers that are at work finish. Java's default is 0."""
    trace: bool = False
    """Tell the trace topic about every message handled."""
    trace_topic: str = TRACE_TOPIC
    """Where the trace goes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("pull_interval", self.pull_interval)
        check_seconds("pull_retry", self.pull_retry, at_least=0.001)
        if self.pull_batch is not None:
            check_range("pull_batch", self.pull_batch, 1, 1024)
        if self.pull_batch_bytes is not None:
            check_range("pull_batch_bytes", self.pull_batch_bytes, 1, 2**31 - 1)
        check_range("handler_batch", self.handler_batch, 1, 1024)
        check_range("threads", self.threads, 1, 1000)
        check_range("max_reconsume_times", self.max_reconsume_times, -1, 2**31 - 1)
        check_seconds("suspend_queue", self.suspend_queue)
        check_seconds("consume_timeout", self.consume_timeout, at_least=0.001)
        check_range("pop_batch", self.pop_batch, 1, 32)
        check_seconds("pop_invisible", self.pop_invisible, at_least=0.001)
        check_range("pop_limit", self.pop_limit, 1, 1000)
        check_seconds("stop_wait", self.stop_wait)
        check_topic(self.trace_topic)


class ConsumerSettings(ClientSettings, total=False):
    """The fields of `ConsumerOptions`, and of `ClientOptions`, as keywords of a consumer."""

    model: MessageModel | ModelWord
    consume_from: ConsumeFromWhere | StartWord
    start_at: float | None
    strategy: str | Strategy
    strategy_settings: StrategySettings
    unit_mode: bool
    damaged: OnDamage | DamageWord


class PushConsumerSettings(ConsumerSettings, total=False):
    """The fields of `PushConsumerOptions`, and of `ClientOptions`, as keywords."""

    orderly: bool
    limits: PullLimits
    pull_interval: float
    pull_retry: float
    pull_batch: int | None
    pull_batch_bytes: int | None
    handler_batch: int
    threads: int
    max_reconsume_times: int
    suspend_queue: float
    consume_timeout: float
    subscription_in_pull: bool
    client_rebalance: bool
    pop_batch: int
    pop_invisible: float
    pop_limit: int
    stop_wait: float
    trace: bool
    trace_topic: str
    offsets_dir: str
    history_size: int


class PullConsumerOptions(ConsumerOptions, frozen=True, kw_only=True):
    """How a consumer works that is polled (Java: DefaultLitePullConsumer)."""

    limits: LitePullLimits = LitePullLimits()
    """How much may be waiting to be polled before pulls pause."""
    pull_batch: int = 10
    """Messages of one pull, and so of one poll, at most."""
    poll_timeout: float = 5.0
    """How long a poll waits if it is not told."""
    auto_commit: bool = True
    """Whether what was polled is committed by itself when the next poll comes."""
    auto_commit_interval: float = 5.0
    """How often, at most."""
    suspend: float = 20.0
    """How long a broker may hold a pull that finds nothing."""
    pull_timeout: float = 30.0
    """For a pull that may be held; longer than `suspend`."""
    topic_check_interval: float = 30.0
    """How often listeners for changed queues are served."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("pull_batch", self.pull_batch, 1, 1024)
        check_seconds("poll_timeout", self.poll_timeout)
        check_seconds("auto_commit_interval", self.auto_commit_interval, at_least=1.0)
        check_seconds("suspend", self.suspend)
        check_seconds("pull_timeout", self.pull_timeout, at_least=self.suspend)
        check_seconds("topic_check_interval", self.topic_check_interval, at_least=0.001)
