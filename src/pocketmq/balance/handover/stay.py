"""The stay of one queue at one member: a value, and the steps that all ways have in common.

A stay begins when the member wants the queue and ends when it has nothing of it any more. It knows
nothing of other queues, of members' tables or of targets: who decides what is wanted and given is
its caller's business, and no decision of the caller can break the invariants. The model check in
the tests explores these very functions under arbitrary decisions. The invariants:

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
from pocketmq.balance.handover.instructions import (
    Drop,
    HandoverKind,
    Lock,
    ReadStart,
    ReportChange,
    Tell,
    Unlock,
)
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
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


VOID_AFTER_DROP = frozenset({Pending.STOP, Pending.DRAIN, Pending.FILL})


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


def backoff(times: HandoverTimes, tries: int) -> float:
    """Return the pause before the next attempt."""
    return min(times.slow_retry, times.retry * 2.0 ** min(tries, 10))


def holds_queue(stay: Stay) -> bool:
    """Return whether this member is the queue's owner: it runs it, or will at once."""
    return stay.phase in (Phase.READING, Phase.STORING, Phase.RUNNING)


def ask_locks(stay: Stay, parts: frozenset[LockPart], now: float) -> Step:
    """Ask for locks."""
    asked = msgspec.structs.replace(
        stay, pending=stay.pending | {Pending.LOCK}, asked_at=now, retry_at=None
    )
    return Step(asked, (Lock(stay.queue, parts),))


def read_offset(stay: Stay) -> Step:
    """Ask for the stored offset."""
    asked = msgspec.structs.replace(stay, pending=stay.pending | {Pending.READ}, retry_at=None)
    return Step(asked, (ReadStart(stay.queue),))


def unlock_own(stay: Stay, settings: HandoverSettings) -> Step:
    """Release the locks that are to go, as soon as no other request can interfere."""
    if stay.renewing or Pending.UNLOCK in stay.pending:
        return Step(msgspec.structs.replace(stay, retry_at=None))
    asked = msgspec.structs.replace(stay, pending=stay.pending | {Pending.UNLOCK}, retry_at=None)
    return Step(asked, (Unlock(stay.queue, stay.releasing, settings.owner),))


def wanted_again(stay: Stay, settings: HandoverSettings, now: float) -> Stay:
    """Return the stay after an attempt to take the queue failed."""
    times = settings.times
    pause = times.slow_retry if stay.doubtful else backoff(times, stay.tries)
    return Stay(queue=stay.queue, since=now, retry_at=now + pause, tries=stay.tries + 1)


def close(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    """Release all locks; where the shell has the queue, it was dropped before."""
    closing = msgspec.structs.replace(
        stay,
        phase=Phase.CLOSING,
        since=now,
        retry_at=None,
        pending=stay.pending - VOID_AFTER_DROP,
        locks=NONE,
        releasing=stay.locks | stay.releasing,
        barrier=None,
        fenced=None,
    )
    return go_on_closing(closing, settings, now)


def go_on_closing(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    """Do the next thing of a stay that ends; it waits for every answer, so that none comes late."""
    if stay.pending or stay.freeing:
        return Step(msgspec.structs.replace(stay, retry_at=None))
    if stay.releasing:
        return unlock_own(stay, settings)
    if stay.renewing:
        return Step(stay)
    if stay.peer is not None and stay.offset is not None:
        give = Give(stay.peer, stay.queue, stay.offset, stay.number)
        return Step(None, (Tell(stay.queue.broker_name, give),))
    if stay.tries or stay.doubtful:
        return Step(wanted_again(stay, settings, now))
    return Step(None)


def drop(stay: Stay, settings: HandoverSettings, now: float, kind: HandoverKind) -> Step:
    """End a stay without another word: late results are ignored, nothing more is committed."""
    step = close(msgspec.structs.replace(stay, peer=None), settings, now)
    if stay.phase not in IN_SHELL:
        return step
    report = ReportChange(stay.queue, kind, settings.client_id, stay.peer, stay.offset)
    return Step(step.stay, (Drop(stay.queue), report, *step.instructions))
