"""What an heir does until the giver's last messages are finished: barrier, tail and hole.

Behind the barrier nothing is committed: an offset stored there would say that the giver's messages
are finished, and if it died they would be lost. The barrier ends in one of two ways:

- The giver stores the barrier's offset, so its messages are finished. Then the tail's lock follows.
- The giver is gone, or has given up. Then this member gets the tail's lock first, so that no other
  member is at work there; reads the offset after that; and handles what is left, the hole.
"""

import msgspec
from msgspec.structs import replace

from pocketmq.balance.handover import instructions
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Pending, Stay, Step
from pocketmq.balance.handover.steps import ask_locks, backoff, read_offset


class Others(msgspec.Struct, frozen=True):
    """What a stay must know of other members to get the tail."""

    gone: frozenset[str] = frozenset()
    """Lock owners that are on no list."""
    peer_away: bool = False
    """The giver is gone, or does not tell any more that it finishes messages of the queue."""


def watch_tail(stay: Stay, others: Others, settings: HandoverSettings, now: float) -> Step:
    """Do what a running queue needs next."""
    if stay.fenced is not None:
        return Step(replace(stay, retry_at=None))
    if stay.barrier is None and now >= stay.recheck_at:
        checked = replace(stay, recheck_at=now + settings.times.recheck)
        return Step(checked, (instructions.Recheck(stay.queue),))
    if stay.retry_at is None or now < stay.retry_at:
        return Step(stay)
    if stay.pending or stay.freeing:  # their answers go on from here
        return Step(replace(stay, retry_at=None))
    if stay.barrier is not None and others.peer_away:
        stay = replace(stay, abandoned=True)
    if LockPart.TAIL in stay.locks:
        return read_offset(stay) if stay.barrier is not None else Step(replace(stay, retry_at=None))
    if stay.barrier is not None and not others.peer_away:
        return read_offset(stay)
    # Freeing names alternates with attempts to lock: names come first where the giver is away, and
    # after the first refusal where it has finished, since then the lock is usually free.
    names = others.gone
    if names and stay.tries % 2 == (stay.barrier is None):
        unlocks = tuple(
            instructions.Unlock(stay.queue, instructions.TAIL, name) for name in sorted(names)
        )
        return Step(replace(stay, freeing=names, tries=stay.tries + 1, retry_at=None), unlocks)
    return ask_locks(stay, instructions.TAIL, now)


def tail_locked(
    stay: Stay, granted: frozenset[LockPart] | None, settings: HandoverSettings, now: float
) -> Step:
    """Go on with the answer to the request for the tail's lock."""
    if granted is not None and LockPart.TAIL in granted:
        stay = replace(
            stay,
            locks=stay.locks | instructions.TAIL,
            releasing=stay.releasing - instructions.TAIL,
            tries=0,
        )
        # The offset is read after the lock is granted: what the giver stored before it let go is
        # seen, so its messages are not handled again.
        return read_offset(stay) if stay.barrier is not None else Step(stay)
    if granted is None:
        stay = replace(stay, releasing=stay.releasing | instructions.TAIL)
    pause = backoff(settings.times, stay.tries)
    return Step(replace(stay, tries=stay.tries + 1, retry_at=now + pause))


def barrier_read(
    stay: Stay, offset: int | None, settings: HandoverSettings, now: float, *, stored: bool
) -> Step:
    """Lift the barrier if the giver has finished; fill the hole if it never will."""
    barrier = stay.barrier
    if barrier is None:
        return Step(stay)
    if offset is None or stay.fenced is not None:
        return Step(replace(stay, retry_at=now + settings.times.poll_barrier))
    has_tail = LockPart.TAIL in stay.locks
    # A tail's lock alone says little while the giver is there: a broker that was started anew has
    # forgotten that the giver has it.
    left = has_tail and stay.abandoned
    if offset >= barrier and (stored or left):
        lifted = replace(stay, barrier=None, peer=None, tries=0, retry_at=None if has_tail else now)
        return Step(lifted, (instructions.LiftBarrier(stay.queue),))
    if not left:
        return Step(replace(stay, retry_at=now + settings.times.poll_barrier))
    filling = replace(
        stay, barrier=None, peer=None, retry_at=None, pending=stay.pending | {Pending.FILL}
    )
    return Step(filling, (instructions.FillHole(stay.queue, offset, barrier),))


def hole_filled(stay: Stay, now: float) -> Step:
    """Note that the messages of the hole are finished."""
    return Step(replace(stay, pending=stay.pending - {Pending.FILL}, retry_at=now))
