"""Options of push, pull and POP consumers, with Java's defaults and Java's ranges.

Times are seconds, sizes bytes; flow control is in `balance.consumer.limits`.
"""

from typing import Literal, get_args

import msgspec

from pocketmq.balance.allocation import Strategy, StrategySettings
from pocketmq.balance.consumer.limits import LitePullLimits, PullLimits
from pocketmq.balance.consumer.popping import POP_BATCH, POP_INVISIBLE, POP_LIMIT
from pocketmq.balance.consumer.pulling import RETRY_AFTER_ERROR
from pocketmq.balance.sticky import Sticky
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.client import checks
from pocketmq.client.options import DEFAULT_INSTANCE, ClientOptions, ClientSettings
from pocketmq.errors import InvalidInput
from pocketmq.model import ConsumeFromWhere, MessageModel, OnDamage
from pocketmq.model.names import TRACE_TOPIC, check_consumer_group, check_topic

LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
MOST_MESSAGES = 32
"""The most messages that a broker returns for one pop."""
HandoverWord = Literal["auto", "overlap", "drain", "java"]
LATEST = 1e11
"""No start is later than the year 5138: a larger number is most likely milliseconds."""


class ConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of push and pull consumers. Raises `InvalidInput` for values that can never work."""

    group: str
    """The consumer group: its members share the work."""
    model: MessageModel = MessageModel.CLUSTERING
    """`clustering`: each message to one member; `broadcasting`: to all."""
    consume_from: ConsumeFromWhere = LAST
    """Where a group without a stored offset starts: `first`, `last` or `timestamp`."""
    start_at: float | None = None
    """With `timestamp`: the time, in seconds since 1970. None: half an hour before the start."""
    strategy: str | Strategy = "AVG"
    """The allocation strategy, by Java's name, `STICKY`, or one of your own."""
    strategy_settings: StrategySettings = StrategySettings()
    """What some strategies need besides their name: machine rooms, or the queues of CONFIG."""
    handover: str = "auto"
    """How queues change hands with STICKY: `overlap` lets the next owner start while the last
    messages of the one before are being handled, `drain` waits for them. `auto` overlaps, except
    for orderly and pull consumers. With Java's strategies it is Java's way, `java`."""
    commit_interval: float = 0.1
    """STICKY: seconds between two commits of a queue's offset, if it has changed."""
    settle: float = 0.2
    """STICKY: seconds for which a new member waits for others that join with it."""
    drain_wait: float = 60.0
    """STICKY: seconds for the last handlers of a queue that was given away. Then the next owner
    handles their messages as well."""
    return_within: float = 0.0
    """STICKY: seconds for which the queues of a member that was closed wait for it to be back.
    Needs an `instance_name` of its own, by which the group recognises it."""
    unit_mode: bool = False
    """Mark the group as part of a unit in heartbeats."""
    offsets_dir: str = ""
    """Directory of a broadcasting consumer's offsets. Empty: `.rocketmq_offsets` in the home."""
    damaged: OnDamage = OnDamage.SKIP
    """What to do about a damaged message: `skip` it, or `stop` its queue.

    Either is logged as an error, after a few tries. Popped messages are always skipped."""
    history_size: int = 256
    """The number of rebalances kept in memory."""

    def __post_init__(self) -> None:
        checks.settle_kinds(self)
        check_consumer_group(self.group)
        self._check_start()
        checks.check_range("history_size", self.history_size, 1, 100_000)
        checks.check_seconds("commit_interval", self.commit_interval, at_least=0.001)
        checks.check_seconds("settle", self.settle)
        checks.check_seconds("drain_wait", self.drain_wait)
        checks.check_seconds("return_within", self.return_within)
        self._check_handover(sticky=isinstance(self.allocation(), Sticky))

    @property
    def sticky(self) -> Sticky | None:
        """The strategy, if it is STICKY."""
        strategy = self.allocation()
        return strategy if isinstance(strategy, Sticky) else None

    @property
    def drains(self) -> bool:
        """Whether STICKY gives a queue away only when its last messages are done."""
        return self.handover == "drain"

    def allocation(self) -> Strategy:
        """Return the strategy; raises `StrategyUnknown` or `AllocationInputInvalid`."""
        if isinstance(self.strategy, str):
            return strategy_by_name(self.strategy, self.strategy_settings)
        if not callable(getattr(self.strategy, "allocate", None)):
            raise InvalidInput(f"strategy must be a name such as 'AVG', not {self.strategy!r}")
        return self.strategy

    def _check_handover(self, *, sticky: bool) -> None:
        if self.handover not in get_args(HandoverWord):
            words = ", ".join(repr(word) for word in get_args(HandoverWord))
            raise InvalidInput(f"handover must be one of {words}, not {self.handover!r}")
        if not sticky:
            if self.handover not in ("auto", "java"):
                raise InvalidInput(
                    f"handover={self.handover!r} needs strategy='STICKY'; with Java's strategies "
                    "queues change hands as in Java"
                )
            if self.return_within:
                raise InvalidInput("return_within needs strategy='STICKY'")
            return
        if self.handover == "java":
            raise InvalidInput(
                "handover='java' is for Java's strategies; STICKY takes 'auto', 'overlap' or "
                "'drain'"
            )
        if self.model is MessageModel.BROADCASTING:
            raise InvalidInput(
                "strategy='STICKY' needs model='clustering'; with 'broadcasting' every member has "
                "all queues"
            )

    def _check_start(self) -> None:
        at = self.start_at
        if at is None:
            return
        if self.consume_from is not ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            raise InvalidInput("start_at needs consume_from='timestamp'")
        if not 0 <= at <= LATEST:
            raise InvalidInput(f"start_at must be in seconds since 1970, not {at!r}")


class PushConsumerOptions(ConsumerOptions, frozen=True, kw_only=True):
    """Options of a push consumer (Java: DefaultMQPushConsumer)."""

    orderly: bool = False
    """One message of a queue at a time, in order, under the broker's lock."""
    limits: PullLimits = PullLimits()
    """How much may wait for handlers before pulls pause (back-pressure)."""
    pull_interval: float = 0.0
    """Seconds between two pulls of a queue that found messages."""
    pull_retry: float = RETRY_AFTER_ERROR
    """Seconds to wait after a pull that failed."""
    pull_batch: int | None = None
    """The most messages of one pull; None: 32, and up to 512 while more than that wait."""
    pull_batch_bytes: int | None = None
    """The most bytes of one pull (5.x); None: 256 KiB, and 1 MiB while many messages wait."""
    handler_batch: int = 1
    """The most messages of one handler call."""
    threads: int = 20
    """Threads for plain handlers; for coroutine handlers, the most calls in flight."""
    max_reconsume_times: int = -1
    """The most retries of a message; -1: 16, and without limit for orderly consumers."""
    suspend_queue: float = 1.0
    """Seconds for which an orderly consumer waits before it retries a message."""
    consume_timeout: float = 900.0
    """Handler timeout in seconds: a message that takes longer is requeued."""
    subscription_in_pull: bool = False
    """Send the subscription with each pull (Java: postSubscriptionWhenPull)."""
    client_rebalance: bool = True
    """False: let the broker assign the queues (5.x)."""
    pop_batch: int = POP_BATCH
    """The most messages of one pop, where the broker assigns queues to be popped."""
    pop_invisible: float = POP_INVISIBLE
    """Seconds for which popped messages are hidden from other consumers, to be handled."""
    pop_limit: int = POP_LIMIT
    """With more messages of a queue in flight nothing is popped."""
    stop_wait: float = 10.0
    """Seconds that `close` gives handlers in flight to finish. Java's default is 0."""
    trace: bool = False
    """Trace every handled message."""
    trace_topic: str = TRACE_TOPIC
    """The topic that traces are sent to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_seconds("pull_interval", self.pull_interval)
        checks.check_seconds("pull_retry", self.pull_retry, at_least=0.001)
        if self.pull_batch is not None:
            checks.check_range("pull_batch", self.pull_batch, 1, 1024)
        if self.pull_batch_bytes is not None:
            checks.check_range("pull_batch_bytes", self.pull_batch_bytes, 1, 2**31 - 1)
        checks.check_range("handler_batch", self.handler_batch, 1, 1024)
        checks.check_range("threads", self.threads, 1, 1000)
        checks.check_range("max_reconsume_times", self.max_reconsume_times, -1, 2**31 - 1)
        checks.check_seconds("suspend_queue", self.suspend_queue)
        checks.check_seconds("consume_timeout", self.consume_timeout, at_least=0.001)
        checks.check_range("pop_batch", self.pop_batch, 1, 32)
        checks.check_seconds("pop_invisible", self.pop_invisible, at_least=0.001)
        checks.check_range("pop_limit", self.pop_limit, 1, 1000)
        checks.check_seconds("stop_wait", self.stop_wait)
        check_topic(self.trace_topic)
        if self.sticky is not None:
            if not self.client_rebalance:
                raise InvalidInput(
                    "strategy='STICKY' needs client_rebalance=True: the members assign the queues, "
                    "not the broker"
                )
            if self.orderly and self.handover == "overlap":
                raise InvalidInput(
                    "handover='overlap' lets two members handle messages of a queue at the same "
                    "time; orderly=True needs 'auto' or 'drain'"
                )

    @property
    def drains(self) -> bool:
        """Whether STICKY gives a queue away only when its last messages are done."""
        return self.orderly or super().drains


class ConsumerSettings(ClientSettings, total=False):
    """The fields of `ConsumerOptions`, and of `ClientOptions`, as keywords of a consumer."""

    model: MessageModel | checks.ModelWord
    consume_from: ConsumeFromWhere | checks.StartWord
    start_at: float | None
    strategy: str | Strategy
    strategy_settings: StrategySettings
    handover: HandoverWord
    commit_interval: float
    settle: float
    drain_wait: float
    return_within: float
    unit_mode: bool
    damaged: OnDamage | checks.DamageWord


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
    """Options of a pull consumer (Java: DefaultLitePullConsumer)."""

    limits: LitePullLimits = LitePullLimits()
    """How much may wait to be polled before pulls pause (back-pressure)."""
    pull_batch: int = 10
    """The most messages of one pull, and so of one poll."""
    poll_timeout: float = 5.0
    """Seconds for which a poll waits by default."""
    auto_commit: bool = True
    """Commit polled messages automatically at the next poll."""
    auto_commit_interval: float = 5.0
    """The least seconds between two automatic commits."""
    suspend: float = 20.0
    """Seconds for which a broker may hold a pull that finds nothing."""
    pull_timeout: float = 30.0
    """Seconds for a pull's answer; longer than `suspend`."""
    topic_check_interval: float = 30.0
    """Seconds between two checks for listeners of changed queues."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.check_range("pull_batch", self.pull_batch, 1, 1024)
        checks.check_seconds("poll_timeout", self.poll_timeout)
        checks.check_seconds("auto_commit_interval", self.auto_commit_interval, at_least=1.0)
        checks.check_seconds("suspend", self.suspend)
        checks.check_seconds("pull_timeout", self.pull_timeout, at_least=self.suspend)
        checks.check_seconds("topic_check_interval", self.topic_check_interval, at_least=0.001)
        if self.handover == "overlap":
            raise InvalidInput("handover='overlap' is for push consumers; pull consumers drain")

    @property
    def drains(self) -> bool:
        """Whether STICKY gives a queue away only when its last messages are done."""
        return True


class PullSettings(ConsumerSettings, total=False):
    """The fields of `PullConsumerOptions`, and those of the client."""

    offsets_dir: str
    history_size: int
    limits: LitePullLimits
    pull_batch: int
    poll_timeout: float
    auto_commit: bool
    auto_commit_interval: float
    suspend: float
    pull_timeout: float
    topic_check_interval: float


class PopConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a POP consumer. Raises `InvalidInput` for values that can never work."""

    group: str
    """The consumer group: its members share the work."""
    consume_from: ConsumeFromWhere = LAST
    """Where a group starts that never took a message of the topic: `first` or `last`."""
    ordered: bool = False
    """Take a queue's messages in order: none before earlier ones are acknowledged."""
    max_messages: int = MOST_MESSAGES
    """The most messages of one `receive` by default."""
    invisible: float = 60.0
    """Seconds for which a message is hidden from other consumers, to be acknowledged."""
    receive_timeout: float = 15.0
    """Seconds for which `receive` waits for a message by default."""

    def __post_init__(self) -> None:
        checks.settle_kinds(self)
        check_consumer_group(self.group)
        if self.consume_from not in (FIRST, LAST):
            raise InvalidInput("consume_from of a POP consumer must be 'first' or 'last'")
        checks.check_range("max_messages", self.max_messages, 1, MOST_MESSAGES)
        checks.check_seconds("invisible", self.invisible, at_least=0.001)
        checks.check_seconds("receive_timeout", self.receive_timeout)


class PopSettings(ClientSettings, total=False):
    """The keywords of a POP consumer."""

    consume_from: ConsumeFromWhere | checks.StartWord
    ordered: bool
    max_messages: int
    invisible: float
    receive_timeout: float


def check_return(client: ClientOptions, own: ConsumerOptions) -> None:
    """Raise `InvalidInput` if a member is to be waited for that cannot be recognised."""
    if own.return_within and client.instance_name == DEFAULT_INSTANCE:
        raise InvalidInput(
            "return_within needs an instance_name of your own: without one, a consumer has "
            "another client id after a restart, and no member recognises it"
        )
