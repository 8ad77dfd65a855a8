"""Everything a broker holds while it runs: what handlers work on.

Belongs to the broker's loop. Tables are plain objects that never touch sockets. `batch` collects
what must happen once the messages of this event-loop iteration are written, and `writer` writes
them. Nothing here is set later but what a feature opens when it starts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pocketmq.broker.access.account_files import AccountFiles
from pocketmq.broker.access.gate import BrokerGate
from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.broker.balancing.assignment import RequestModeTable
from pocketmq.broker.balancing.queue_locks import GroupQueueLocks
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import SendAnswers
from pocketmq.broker.core.write_batch import WriteBatch
from pocketmq.broker.delay.progress import DelayProgress
from pocketmq.broker.groups.table import GroupConfigTable
from pocketmq.broker.members.consumers import OnlineConsumers
from pocketmq.broker.members.producers import OnlineProducers
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.name_servers.announcements import TopicAnnouncements
from pocketmq.broker.name_servers.routes import RouteCache
from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pulling.suspended_pulls import SuspendedPulls
from pocketmq.broker.sending.reply_delivery import ReplyDelivery
from pocketmq.broker.static_topics.neighbours import Neighbours
from pocketmq.broker.static_topics.table import MappingTable
from pocketmq.broker.statistics.counters import BrokerTotals, TopicStatistics
from pocketmq.broker.timers.queue import TimerQueue
from pocketmq.broker.topics.table import TopicConfigTable
from pocketmq.broker.transactions.half_messages import HalfMessages
from pocketmq.broker.writing.drafts import DelayedSends, Redirect, SendTarget
from pocketmq.broker.writing.log_writer import CommitLogWriter
from pocketmq.net import Connection
from pocketmq.net.clock import WallClock
from pocketmq.protocol import Command
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.store import MessageStore, QueueIndex


class Feature(Protocol):
    """A part that works by itself while the broker runs, such as delayed messages."""

    def start(self) -> None:
        """Start; called before the first request."""
        ...

    async def stop(self) -> None:
        """Stop, leaving everything saved; called while the store is still open."""
        ...


class PopConsumption(Protocol):
    """Pop consumption as the rest of the broker sees it; `pop.pops.Pops` has it."""

    def seal(self) -> None:
        """Append to the log what changed in this batch. Raises `StoreError`."""
        ...

    def arrived(self, queue: QueueIndex) -> None:
        """Serve pops that wait for messages of a queue."""
        ...

    def topics_changed(self) -> None:
        """Check again what waits: topics were created, changed or deleted."""
        ...

    def drop(self, connection: Connection) -> None:
        """Forget what a closed connection waited for."""
        ...

    def leave(self, connection: Connection, group: str) -> None:
        """Forget what a client that leaves a group waited for."""
        ...

    def forget(self, *, topic: str | None = None, group: str | None = None) -> None:
        """Forget a topic or a group that is deleted."""
        ...

    def clock_was_set_back(self) -> None:
        """Shorten what would last too long by the wall clock."""
        ...

    def close(self) -> None:
        """Answer everything that waits."""
        ...


@dataclass(slots=True, kw_only=True)
class BrokerState:
    """The parts of one broker."""

    config: BrokerConfig
    """Replaced by `apply` when settings change."""
    store: MessageStore
    clock: WallClock
    address: str
    """Where clients reach the broker, as it registers with name servers."""
    topics: TopicConfigTable
    groups: GroupConfigTable
    offsets: ConsumerOffsetTable
    send_answers: SendAnswers
    unique_ids: UniqueIds
    waiting: SuspendedPulls
    batch: WriteBatch
    """Collects what the requests of this event-loop iteration append."""
    writer: CommitLogWriter
    """Writes `batch`, and lets the answers of stored messages go."""
    consumers: OnlineConsumers = field(default_factory=OnlineConsumers)
    producers: OnlineProducers = field(default_factory=OnlineProducers)
    locks: GroupQueueLocks = field(default_factory=GroupQueueLocks)
    modes: RequestModeTable = field(default_factory=RequestModeTable)
    users: UserTable = field(default_factory=UserTable)
    acls: AclTable = field(default_factory=AclTable)
    mappings: MappingTable = field(default_factory=MappingTable)
    """Static topics."""
    neighbours: Neighbours = field(default_factory=Neighbours)
    """Other brokers that hold queues of this broker's static topics."""
    routes: RouteCache = field(default_factory=RouteCache)
    announcements: TopicAnnouncements = field(default_factory=TopicAnnouncements)
    delay_progress: DelayProgress = field(default_factory=DelayProgress)
    traffic: BrokerTotals = field(default_factory=BrokerTotals)
    stats: TopicStatistics = field(default_factory=TopicStatistics)
    booted_ms: int = 0
    stamp: str = ""
    """The properties every single message gets: region, trace switch and cluster."""
    targets: dict[tuple[str, int], SendTarget] = field(default_factory=dict)
    """Queues that sends may go to, checked already; see `sending.targets`."""
    redirects: dict[str, Redirect] = field(default_factory=dict)
    """By the property that asks for it: what sends a message elsewhere first."""
    steady: Callable[[], float] = time.monotonic
    """Seconds for measuring waits: the loop's own clock."""
    short_ways: dict[bytes, "ShortWay"] = field(default_factory=dict)
    """By code, in digits: handlers of usual requests that come alone; see `serving.lanes`."""
    features: list[Feature] = field(default_factory=list)
    """What works by itself, in the order of starting."""
    measures: Measures | None = None
    """Figures for Prometheus, on a broker that exports them."""
    # Opened by the features they belong to, when these start:
    delayed: DelayedSends | None = None
    """Delay levels, for sends that take the lane."""
    halves: HalfMessages | None = None
    """Open transactions."""
    timed: TimerQueue | None = None
    """Messages that wait for their delivery time."""
    pops: PopConsumption | None = None
    """Messages that were popped and are not acknowledged."""
    replies: ReplyDelivery | None = None
    """Delivers replies to the clients that sent the requests."""
    gate: BrokerGate | None = None
    """Checks every request; None on a broker without access control."""
    account_files: AccountFiles | None = None
    """The accounts of 4.x, if the broker uses them."""

    def apply(self, config: BrokerConfig) -> None:
        """Use other settings from now on."""
        self.config = self.writer.config = config
        self.targets.clear()

    def save_documents(self, kind: str, changed: dict[str, bytes | None]) -> None:
        """Save settings; raises `StoreError` if they cannot be kept."""
        self.store.metadata.save_documents(kind, dict(changed))


Answer: TypeAlias = Command | bytes | None
"""What a handler returns: a response, a whole frame, or None if it answers later."""
Handler: TypeAlias = Callable[[BrokerState, Connection, Command], Answer]
ShortWay: TypeAlias = Callable[[BrokerState, Connection, bytes, bytes], bool]
"""Gets the header and the body of a request, carries it out and answers; returns False if it is
unusual: then nothing was done, or what was done may be done again."""
HeaderHandler: TypeAlias = Callable[[BrokerState, Connection, Command, Any], Answer]
"""A handler that also receives the request's header, of the type its row in the catalogue has."""
AnyHandler: TypeAlias = Handler | HeaderHandler
"""What features list in their `HANDLERS`; `by_code` makes a `Handler` of each."""
