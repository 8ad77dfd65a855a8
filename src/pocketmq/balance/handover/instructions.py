"""What the hand-over machine wants its shell to do.

Instructions of one answer are carried out in order as far as they start: a request is written
before the next instruction is looked at, its answer comes later as an event. Requests of the same
kind to the same broker may travel together. A shell reports exactly one answer for each instruction
that has one, also when the request fails; only `Drop` voids `StopStarting`, `Drain` and `FillHole`
of its queue, which are not answered after it.
"""

from enum import Enum

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.messages import BusMessage
from pocketmq.model import MessageQueue

RUN = frozenset({LockPart.RUN})
TAIL = frozenset({LockPart.TAIL})
BOTH = RUN | TAIL


class Tell(Instruction, frozen=True):
    """Send a message on a broker's bus; nothing depends on its success."""

    broker: str
    message: BusMessage


class AskMembers(Instruction, frozen=True):
    """Ask all masters for the group's members; report `Listed`."""


class Lock(Instruction, frozen=True):
    """Ask a queue's master for locks, in this member's name and boot; report `Locked`."""

    queue: MessageQueue
    parts: frozenset[LockPart]


class Unlock(Instruction, frozen=True):
    """Release locks, in `owner`'s name (`client id#boot`), and report `Unlocked`."""

    queue: MessageQueue
    parts: frozenset[LockPart]
    owner: str


class Renew(Instruction, frozen=True):
    """Ask again for all locks held at a broker, in one request; report `Renewed`."""

    broker: str
    locks: frozenset[tuple[MessageQueue, LockPart]]


class ReadStart(Instruction, frozen=True):
    """Read where a queue starts; report `OffsetRead`."""

    queue: MessageQueue


class StoreOffset(Instruction, frozen=True):
    """Store where a queue starts that has no offset yet, and wait for it; report `OffsetStored`.

    Otherwise an heir that comes before the first commit would start at the end of the queue.
    """

    queue: MessageQueue
    offset: int


class Recheck(Instruction, frozen=True):
    """Read the stored offset, after the commit in flight, and compare it with this stay's commits.

    Lower than the last one: commit that again. Higher than any, failed ones included, and higher
    than where the stay started: report `Overtaken`. Otherwise nothing is reported.
    """

    queue: MessageQueue


class Run(Instruction, frozen=True):
    """Take a queue: pull from `offset`, start handlers.

    With `barrier`, messages below it belong to the giver until it has finished them: nothing is
    committed before `LiftBarrier` or `FillHole`.
    """

    queue: MessageQueue
    offset: int
    barrier: int | None = None


class LiftBarrier(Instruction, frozen=True):
    """Messages below the barrier are finished and stored: commit from now on."""

    queue: MessageQueue


class FillHole(Instruction, frozen=True):
    """The giver is gone: handle its messages `first` to `end` - 1; report `HoleFilled`.

    Commit from now on, never past an unfinished message of the hole.
    """

    queue: MessageQueue
    first: int
    end: int


class StopStarting(Instruction, frozen=True):
    """Start no more messages; report `StartingStopped`. Messages in flight go on."""

    queue: MessageQueue
    foreign: bool = False
    """The next owner does not speak this protocol and may be at work already: commit nothing but
    the last offset, and that only if it is above what is stored by then."""


class Drain(Instruction, frozen=True):
    """Wait for messages in flight, commit, and report `Drained`; the queue stays in the table.

    A fenced queue's commit waits for `Resume`. `Drain` may come again after a commit that failed.
    """

    queue: MessageQueue


class Drop(Instruction, frozen=True):
    """End the stay of a queue: late results are ignored, nothing is committed any more."""

    queue: MessageQueue


class Fence(Instruction, frozen=True):
    """The lease is in doubt: start and commit nothing; cached messages stay."""

    queue: MessageQueue


class Resume(Instruction, frozen=True):
    """The lease is granted again: read the stored offset, then go on.

    If it is above where the stay started, its barrier and all its commits, failed ones included,
    another member had the queue meanwhile: report `Overtaken` and stay fenced.
    """

    queue: MessageQueue


class WakeAt(Instruction, frozen=True):
    """Report `TimerElapsed` at this time, not in the same call; the timer set before is void."""

    when: float


class HandoverKind(Enum):
    """How a queue came to this member, or left it."""

    OVERLAP = "overlap"
    """The giver finishes its last messages while the heir starts the next."""
    DRAIN = "drain"
    """The giver finishes its messages, then the heir starts."""
    ORPHAN = "orphan"
    """It had no owner, or its owner was gone."""
    FOREIGN = "foreign"
    """From or to a member that does not speak this protocol."""
    LOST = "lost"
    """The lock was refused at a renewal."""


class ReportChange(Instruction, frozen=True):
    """A queue came or went; for events, metrics and logs."""

    queue: MessageQueue
    kind: HandoverKind
    giver: str | None
    heir: str | None
    offset: int | None


class Warn(Instruction, frozen=True):
    """An operator should know; a shell says the same text once."""

    text: str


class LeaveGroup(Instruction, frozen=True):
    """No queue is held any more: unregister."""
