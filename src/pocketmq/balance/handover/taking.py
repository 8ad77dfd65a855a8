"""How a queue comes to this member: claimed from its owner, or taken because it has none.

Owns the heir's half of the hand-over, from the claim to the first message.
"""

from collections.abc import Collection

from msgspec.structs import replace

from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover import steps
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import BOTH, RUN, HandoverKind
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import NONE, Pending, Phase, Stay, Step
from pocketmq.balance.handover.tail import barrier_read, tail_locked


def claim(stay: Stay, owner: str, number: int, now: float) -> Stay:
    """Return the stay of a queue that is claimed from its owner; earlier claims are void."""
    return replace(stay, phase=Phase.CLAIMED, since=now, peer=owner, number=number, retry_at=None)


def take(stay: Stay, names: Collection[str], kind: HandoverKind, now: float) -> Step:
    """Take a queue without an owner, freeing the locks of those that are gone first.

    Both locks are asked for at once: with the run lock alone, messages that a former owner has
    started and not finished would be started a second time.
    """
    taking = replace(stay, phase=Phase.FREEING, since=now, peer=None, offset=None, kind=kind)
    if not names:
        return steps.ask_locks(replace(taking, phase=Phase.LOCKING), BOTH, now)
    queue = stay.queue
    unlocks = tuple(do.Unlock(queue, BOTH, name) for name in sorted(names))
    return Step(replace(taking, freeing=frozenset(names), retry_at=None), unlocks)


def freed(stay: Stay, owner: str, settings: HandoverSettings, now: float) -> Step:
    """Go on when the locks of all that are gone are free, or could not be freed."""
    waiting = replace(stay, freeing=stay.freeing - {owner})
    if waiting.freeing:
        return Step(waiting)
    if waiting.phase is Phase.FREEING:
        return steps.ask_locks(replace(waiting, phase=Phase.LOCKING), BOTH, now)
    if waiting.phase is Phase.CLOSING:
        return steps.go_on_closing(waiting, settings, now)
    return Step(replace(waiting, retry_at=now))


def given(stay: Stay, giver: str, give: Give, settings: HandoverSettings, now: float) -> Step:
    """Ask for the lock that the owner has released; a give for another claim is void.

    A give that is not tied to the open claim may be an old one: the giver may have got the queue
    again meanwhile, and its offset says nothing any more.
    """
    if stay.phase is not Phase.CLAIMED or stay.peer != giver or stay.number != give.number:
        return Step(stay)
    kind = HandoverKind.OVERLAP if settings.overlap else HandoverKind.DRAIN
    taking = replace(stay, phase=Phase.LOCKING, since=now, offset=give.offset, kind=kind, tries=0)
    # Both: a giver whose handlers are quick has released the tail as well by now, and to ask for it
    # later would take two more requests before the first message.
    return steps.ask_locks(taking, BOTH, now)


def needed_parts(stay: Stay) -> frozenset[LockPart]:
    """Return the locks that a stay needs to go on: first not the tail, if the giver may have it."""
    return RUN if stay.kind is HandoverKind.OVERLAP and not stay.locks else BOTH


def locked(
    stay: Stay, granted: frozenset[LockPart] | None, settings: HandoverSettings, now: float
) -> Step:
    """Go on with the answer to a request for locks; None: they may be granted or not."""
    if Pending.LOCK not in stay.pending:
        return Step(stay)
    stay = replace(stay, pending=stay.pending - {Pending.LOCK})
    if stay.phase is Phase.RUNNING:
        return tail_locked(stay, granted, settings, now)
    parts = needed_parts(stay)
    got = BOTH if granted is None else granted & BOTH
    if stay.phase is Phase.CLOSING:
        return steps.go_on_closing(replace(stay, releasing=stay.releasing | got), settings, now)
    if granted is not None and granted >= parts:
        reading = replace(stay, phase=Phase.READING, since=now, locks=got, leased=stay.asked_at)
        return steps.read_offset(reading)
    again = now + settings.times.lock_given_again
    patient = again <= stay.since + settings.times.lock_given
    if stay.kind is HandoverKind.OVERLAP and patient and granted == stay.locks:
        return Step(replace(stay, retry_at=again))
    got |= stay.locks
    if got:
        back = replace(stay, locks=NONE, releasing=got, tries=stay.tries + 1, peer=None)
        return steps.close(back, settings, now)
    return Step(steps.wanted_again(stay, settings, now))


def offset_read(
    stay: Stay, offset: int | None, settings: HandoverSettings, now: float, *, stored: bool
) -> Step:
    """Go on with the stored offset, or with where a queue without one starts."""
    if Pending.READ not in stay.pending:
        return Step(stay)
    stay = replace(stay, pending=stay.pending - {Pending.READ})
    if stay.phase is Phase.CLOSING:
        return steps.go_on_closing(stay, settings, now)
    if stay.phase is Phase.RUNNING:
        return barrier_read(stay, offset, settings, now, stored=stored)
    if offset is None or stay.fenced is not None:
        pause = steps.backoff(settings.times, stay.tries)
        return Step(replace(stay, tries=stay.tries + 1, retry_at=now + pause))
    return _started(stay, offset, settings, now, stored=stored)


def _started(
    stay: Stay, offset: int, settings: HandoverSettings, now: float, *, stored: bool
) -> Step:
    given_offset = stay.offset
    if stay.kind is HandoverKind.OVERLAP and given_offset is not None:
        # What the giver started is below `given_offset`, and it stores that when it is finished. A
        # queue without a stored offset is only one where that has not happened: to start where the
        # settings let a new group start, at the end perhaps, would lose messages.
        if not stored or offset < given_offset:
            return run(stay, given_offset, given_offset, settings, now)
        if LockPart.TAIL in stay.locks:
            return run(stay, offset, None, settings, now)
        # The giver has finished, so a third member may have had the queue since, and may have given
        # it away again: then the tail is its, and this give is out of date. With the tail's lock,
        # which the giver is about to give back, the stored offset is the truth.
        return steps.ask_locks(replace(stay, phase=Phase.LOCKING, since=now), BOTH, now)
    if stored:
        return run(stay, offset, None, settings, now)
    start = offset if given_offset is None else given_offset
    storing = replace(
        stay, phase=Phase.STORING, since=now, offset=start, pending=stay.pending | {Pending.STORE}
    )
    return Step(storing, (do.StoreOffset(stay.queue, start),))


def offset_stored(stay: Stay, settings: HandoverSettings, now: float, *, done: bool) -> Step:
    """Start, now that heirs will find where."""
    if Pending.STORE not in stay.pending:
        return Step(stay)
    stay = replace(stay, pending=stay.pending - {Pending.STORE})
    if stay.phase is Phase.CLOSING:
        return steps.go_on_closing(stay, settings, now)
    if done and stay.fenced is None and stay.offset is not None:
        return run(stay, stay.offset, None, settings, now)
    pause = steps.backoff(settings.times, stay.tries)
    reading = replace(stay, phase=Phase.READING, tries=stay.tries + 1, retry_at=now + pause)
    return Step(reading)


def run(
    stay: Stay, offset: int, barrier: int | None, settings: HandoverSettings, now: float
) -> Step:
    """Start to run a queue; the tail's lock is asked for when there is no barrier (any more)."""
    times = settings.times
    if barrier is not None:
        retry_at: float | None = now + times.poll_barrier
    else:
        retry_at = None if LockPart.TAIL in stay.locks else now
    running = replace(
        stay,
        phase=Phase.RUNNING,
        since=now,
        tries=0,
        offset=None,
        barrier=barrier,
        retry_at=retry_at,
        recheck_at=now + times.first_recheck,
    )
    report = do.ReportChange(stay.queue, stay.kind, stay.peer, settings.client_id, offset)
    return Step(running, (do.Run(stay.queue, offset, barrier), report))
