"""What a shell reports to the hand-over machine. Times are the loop's, in seconds."""

from enum import Enum

import msgspec

from pocketmq.balance.handover.messages import BusMessage
from pocketmq.model import MessageQueue


class LockPart(Enum):
    """One of the two locks of a queue; leased by the broker for 60 seconds."""

    RUN = "run"
    """Who has it may start handlers."""
    TAIL = "tail"
    """Started messages of who has it may be unfinished."""


class Started(msgspec.Struct, frozen=True):
    """The member listens to the bus, and brokers have its heartbeat."""


class MembersListed(msgspec.Struct, frozen=True):
    """The group's members: the union of what all masters list, an id as often as one lists it."""

    members: tuple[str, ...]
    complete: bool = True
    """False: a broker did not answer, so no member may be taken for gone."""
    shown_by: frozenset[str] = frozenset()
    """The brokers whose lists have this member."""
    asked_at: float = float("inf")
    """When they were asked."""


class Routed(msgspec.Struct, frozen=True):
    """The queues of all subscribed topics, the retry topic included."""

    queues: frozenset[MessageQueue]


class Heard(msgspec.Struct, frozen=True):
    """A broker's bus has a message of another member; another one is one with another boot.

    Of this member's own messages its goodbye is reported.
    """

    broker: str
    sender: str
    boot: str
    message: BusMessage
    age: float = 0.0
    """Seconds for which the broker has had it, as far as the shell can tell; never too many."""


class Locked(msgspec.Struct, frozen=True):
    """The answer to `Lock`; None: there was none, and the locks may be granted all the same."""

    queue: MessageQueue
    granted: frozenset[LockPart] | None


class Unlocked(msgspec.Struct, frozen=True):
    """The answer to `Unlock`; `done` is False if there was none."""

    queue: MessageQueue
    parts: frozenset[LockPart]
    owner: str
    done: bool


class StartRead(msgspec.Struct, frozen=True):
    """The answer to `ReadOffset`: the stored offset, or where a queue without one starts.

    None: it could not be read.
    """

    queue: MessageQueue
    offset: int | None
    stored: bool = True
    """False: nothing is stored for the group yet."""


class OffsetStored(msgspec.Struct, frozen=True):
    """The answer to `StoreOffset`; `done` is False if the broker did not confirm it."""

    queue: MessageQueue
    done: bool


class Overtaken(msgspec.Struct, frozen=True):
    """`Recheck` or `Resume` found an offset above all that this stay ever committed.

    Another member had the queue meanwhile, or an operator skipped messages.
    """

    queue: MessageQueue


class StartingStopped(msgspec.Struct, frozen=True):
    """The answer to `StopStarting`: every message below `offset` was started or settled."""

    queue: MessageQueue
    offset: int


class Drained(msgspec.Struct, frozen=True):
    """The answer to `Drain`: all started messages are finished, and their offset is stored.

    `stored` is False where the commit failed; the broker may have it or not.
    """

    queue: MessageQueue
    stored: bool = True


class HoleFilled(msgspec.Struct, frozen=True):
    """The answer to `FillHole`: its messages are finished."""

    queue: MessageQueue


class Renewed(msgspec.Struct, frozen=True):
    """The answer to `Renew`: what was granted; None without an answer."""

    broker: str
    sent_at: float
    granted: frozenset[tuple[MessageQueue, LockPart]] | None


class Connected(msgspec.Struct, frozen=True):
    """A broker has the member's heartbeat again, over a fresh connection."""

    broker: str


class Disconnected(msgspec.Struct, frozen=True):
    """The connection to a broker closed."""

    broker: str


class TimerElapsed(msgspec.Struct, frozen=True):
    """The time of `WakeAt` has come."""


class Stopping(msgspec.Struct, frozen=True):
    """The application closes the member; it has `wait` seconds to give its queues away."""

    wait: float


HandoverEvent = (
    Started
    | MembersListed
    | Routed
    | Heard
    | Locked
    | Unlocked
    | StartRead
    | OffsetStored
    | Overtaken
    | StartingStopped
    | Drained
    | HoleFilled
    | Renewed
    | Connected
    | Disconnected
    | TimerElapsed
    | Stopping
)
