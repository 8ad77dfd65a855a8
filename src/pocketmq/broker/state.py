"""Everything a broker knows while it runs: what handlers work on.

Belongs to the broker's loop. Tables are plain objects that never touch sockets; `turn` is where
handlers leave what must happen once the messages of this turn of the loop are safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.broker.answers import SendAnswers
from pocketmq.broker.assignment import RequestModeTable
from pocketmq.broker.clock import Clock
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.consumers import ConsumerTable
from pocketmq.broker.delay_progress import DelayProgress
from pocketmq.broker.flows import Flows
from pocketmq.broker.groups import GroupTable
from pocketmq.broker.long_polling import SuspendedPulls
from pocketmq.broker.offsets import OffsetTable
from pocketmq.broker.producers import ProducerTable
from pocketmq.broker.queue_locks import QueueLocks
from pocketmq.broker.routes import RouteTable
from pocketmq.broker.topics import TopicTable
from pocketmq.broker.traffic import Traffic
from pocketmq.broker.turn import Turn
from pocketmq.net import Connection
from pocketmq.protocol.command import Command
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.store import MessageStore

if TYPE_CHECKING:
    from pocketmq.broker.access.account_files import AccountFiles
    from pocketmq.broker.access.gate import Gate
    from pocketmq.broker.appending import Redirect
    from pocketmq.broker.half_messages import HalfMessages
    from pocketmq.broker.metrics.measures import Measures
    from pocketmq.broker.pop.pops import Pops
    from pocketmq.broker.replies import Replies
    from pocketmq.broker.targets import Target
    from pocketmq.broker.timer_queue import TimerQueue


def _nobody(_: list[str]) -> None:
    """Tell no name server."""


def _nothing() -> None:
    """Nothing is collected."""


def _at_once(then: Callable[[], None]) -> None:
    then()


@dataclass(slots=True, kw_only=True)
class BrokerState:
    """The parts of one broker."""

    config: BrokerConfig
    store: MessageStore
    clock: Clock
    address: str
    """Where clients find the broker, as name servers are told."""
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    send_answers: SendAnswers
    unique_ids: UniqueIds
    waiting: SuspendedPulls
    consumers: ConsumerTable = field(default_factory=ConsumerTable)
    producers: ProducerTable = field(default_factory=ProducerTable)
    locks: QueueLocks = field(default_factory=QueueLocks)
    modes: RequestModeTable = field(default_factory=RequestModeTable)
    users: UserTable = field(default_factory=UserTable)
    acls: AclTable = field(default_factory=AclTable)
    routes: RouteTable = field(default_factory=RouteTable)
    delay_progress: DelayProgress = field(default_factory=DelayProgress)
    traffic: Traffic = field(default_factory=Traffic)
    stats: Flows = field(default_factory=Flows)
    turn: Turn = field(default_factory=Turn)
    booted_ms: int = 0
    stamp: str = ""
    """The properties every single message gets: region, trace switch and cluster."""
    targets: dict[tuple[str, int], Target] = field(default_factory=dict)
    """Where sends may go, checked already; see `targets`."""
    redirects: dict[str, Redirect] = field(default_factory=dict)
    """By the property that asks for it: what sends a message elsewhere first; see `appending`."""
    halves: HalfMessages | None = None
    """Open transactions, once the broker has read which there are."""
    timed: TimerQueue | None = None
    """Messages that wait for their moment, while the broker runs."""
    measures: Measures | None = None
    """Figures for Prometheus, on a broker that shows them."""
    pops: Pops | None = None
    """Who has popped what, once the broker has read it."""
    replies: Replies | None = None
    """Brings replies to those who asked, while the broker runs."""
    gate: Gate | None = None
    """Whom requests have to pass; None on a broker without access control."""
    account_files: AccountFiles | None = None
    """The accounts of 4.x, if they count."""
    steady: Callable[[], float] = time.monotonic
    """Seconds for measuring waits: the loop's own clock."""
    end_turn: Callable[[], None] = _nothing
    """Writes and answers what this turn has collected, before work on the store itself."""
    begin_popping: Callable[[], None] = _nothing
    """Sets `pops`, when they are first asked for."""
    call_soon: Callable[[Callable[[], None]], object] = _at_once
    """Has something done in a later turn of the loop."""
    register_topics: Callable[[list[str]], None] = _nobody
    """Tells name servers of new and changed topics, soon."""

    def save_documents(self, kind: str, changed: dict[str, bytes | None]) -> None:
        """Save settings; raises `StoreError` if they cannot be kept."""
        self.store.metadata.save_documents(kind, dict(changed))


Answer: TypeAlias = Command | bytes | None
"""What a handler gives: a response, a whole frame, or nothing (yet)."""
Handler: TypeAlias = Callable[[BrokerState, Connection, Command], Answer]
