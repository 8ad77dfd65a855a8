"""The stay of one queue at one member, as a value.

A stay begins when the member wants the queue and ends when it has nothing of it any more. It knows
nothing of other queues, of members' tables or of targets: who decides what is wanted and given is
its caller's business, and no decision of the caller can break the invariants. The model check in
the tests explores the very functions that make a stay of another one, under arbitrary decisions.
The invariants:

- two members never start handlers of a queue under fresh leases;
- every message below the stored offset was finished;
- without a fault no message is started twice, and the stored offset never goes back;
- an heir commits only what is past its barrier.

| phase | locks of this member | the shell has the queue |
|---|---|---|
| WANTED, CLAIMED, FREEING | none | no |
| LOCKING | none, or run while it waits for tail | no |
| READING, STORING | run, and tail unless the giver still has it | no |
| RUNNING | run; tail as soon as the giver has finished | yes |
| STOPPING | both | yes |
| UNLOCKING_RUN, DRAINING (overlap) | tail | yes |
| DRAINING (drain) | both | yes |
| CLOSING | being released | no |
"""

from enum import Enum

import msgspec

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import HandoverKind
from pocketmq.model import MessageQueue

NONE: frozenset[LockPart] = frozenset()


class Phase(Enum):
    """How far a stay is."""

    WANTED = "wanted"
    CLAIMED = "claimed"
    FREEING = "freeing"
    """Locks are given back in the names of members that are gone."""
    LOCKING = "locking"
    READING = "reading"
    STORING = "storing"
    """The start offset of a queue that never had one is stored."""
    RUNNING = "running"
    STOPPING = "stopping"
    UNLOCKING_RUN = "unlocking run"
    """The run lock is given back, for the heir."""
    DRAINING = "draining"
    CLOSING = "closing"


IN_SHELL = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.UNLOCKING_RUN, Phase.DRAINING})


class Pending(Enum):
    """A request of a stay that is not answered yet."""

    LOCK = "lock"
    UNLOCK = "unlock"
    READ = "read"
    STORE = "store"
    STOP = "stop"
    DRAIN = "drain"
    FILL = "fill"


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """One queue at this member."""

    queue: MessageQueue
    phase: Phase = Phase.WANTED
    since: float = 0.0
    """When the phase began."""
    retry_at: float | None = None
    """When `poll` has something to do."""
    recheck_at: float = 0.0
    tries: int = 0
    """Attempts that failed, in a row."""
    pending: frozenset[Pending] = frozenset()
    freeing: frozenset[str] = frozenset()
    """In whose names an unlock is not answered yet."""
    locks: frozenset[LockPart] = NONE
    """Granted and to be renewed."""
    releasing: frozenset[LockPart] = NONE
    """To be given back; perhaps not granted at all."""
    renewing: bool = False
    """A renewal is not answered yet. Locks are not given back meanwhile: the broker might carry out
    the renewal last and grant them to this member again."""
    doubtful: bool = False
    """An unlock was not confirmed and may take effect late."""
    asked_at: float = 0.0
    leased: float = 0.0
    """When the last request was sent that the broker granted."""
    fenced: float | None = None
    """A renewal sent at this time or later ends the fence."""
    peer: str | None = None
    """The giver, until its messages are finished; or the heir, from the claim on."""
    number: int = 0
    """The number of the claim, sent or to be answered."""
    offset: int | None = None
    """The first message of the heir; or the start offset that is being stored."""
    told: bool = False
    """A GIVE has answered the last claim that was heard."""
    barrier: int | None = None
    abandoned: bool = False
    """The giver will not finish what is before the barrier: it is gone, or has given up."""
    kind: HandoverKind = HandoverKind.ORPHAN


class Step(msgspec.Struct, frozen=True):
    """A stay after something happened, None if it is over; and what to do."""

    stay: Stay | None
    instructions: tuple[Instruction, ...] = ()


def holds_queue(stay: Stay) -> bool:
    """Return whether this member is the queue's owner: it runs it, or will at once."""
    return stay.phase in (Phase.READING, Phase.STORING, Phase.RUNNING)
