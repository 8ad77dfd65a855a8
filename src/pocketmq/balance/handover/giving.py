"""How a queue leaves this member: to the heir that claimed it, or to no member.

Owns the giver's half of the hand-over, from the claim to the last unlock. Whether a claim is
answered at all is decided in `decisions`.
"""

from msgspec.structs import replace

from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import RUN, HandoverKind
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Pending, Phase, Stay, Step
from pocketmq.balance.handover.steps import close, go_on_closing, unlock_own

_GIVING = frozenset({Phase.STOPPING, Phase.UNLOCKING_RUN, Phase.DRAINING, Phase.CLOSING})


def can_release(stay: Stay) -> bool:
    """Return whether a queue can be stopped: what was finished may be committed."""
    return (
        stay.phase is Phase.RUNNING
        and stay.fenced is None
        and stay.barrier is None
        and not stay.pending
        and not stay.freeing
    )


def can_give(stay: Stay) -> bool:
    """Return whether a queue can be given: the tail's lock is needed to protect its last messages.

    Without it, or behind a barrier, a third member could come between two hand-overs.
    """
    return can_release(stay) and LockPart.TAIL in stay.locks


def claimed(stay: Stay, heir: str, number: int, now: float) -> Step:
    """Hand the queue to the heir that the caller's target names, or answer the same heir again."""
    if can_give(stay):
        return _stop(replace(stay, peer=heir, number=number), now)
    if stay.phase not in _GIVING or stay.peer != heir or stay.offset is None:
        if stay.phase is Phase.STOPPING and stay.peer == heir:
            return Step(replace(stay, number=number))
        return Step(stay)
    again = replace(stay, number=number, told=False)
    if _was_given(stay):
        give = Give(heir, stay.queue, stay.offset, number)
        return Step(again, (do.Tell(stay.queue.broker_name, give),))
    return Step(again)


def release(stay: Stay, kind: HandoverKind, now: float) -> Step:
    """Stop an unclaimed queue: drain, commit and unlock it, if it can be stopped now."""
    if stay.phase in (Phase.WANTED, Phase.CLAIMED):
        return Step(None)
    if can_release(stay):
        return _stop(replace(stay, peer=None, kind=kind), now)
    return Step(stay)


def _stop(stay: Stay, now: float) -> Step:
    stopping = replace(
        stay,
        phase=Phase.STOPPING,
        since=now,
        tries=0,
        retry_at=None,
        offset=None,
        pending=frozenset({Pending.STOP}),
    )
    foreign = stay.peer is None and stay.kind is HandoverKind.FOREIGN
    return Step(stopping, (do.StopStarting(stay.queue, foreign),))


def starting_stopped(stay: Stay, offset: int, settings: HandoverSettings, now: float) -> Step:
    """Let the heir in at `offset` if it need not wait, else finish what was started first."""
    if stay.phase is not Phase.STOPPING or Pending.STOP not in stay.pending:
        return Step(stay)
    stopped = replace(stay, offset=offset, since=now, pending=stay.pending - {Pending.STOP})
    if stay.peer is None or not settings.overlap:
        # One wait for all: handlers may have been waited for before starting was said to stop.
        return drain(replace(stopped, phase=Phase.DRAINING, since=stay.since))
    unlocking = replace(stopped, phase=Phase.UNLOCKING_RUN, locks=stay.locks - RUN, releasing=RUN)
    step = unlock_own(unlocking, settings)
    if not step.instructions:  # a renewal is under way, and the unlock comes after it
        return step
    # The GIVE travels beside the unlock, not after its answer. An heir that is quicker than the
    # unlock is refused the lock, and asks again soon.
    assert step.stay is not None
    give = Give(stay.peer, stay.queue, offset, stay.number)
    told = replace(step.stay, told=True)
    return Step(told, (*step.instructions, do.Tell(stay.queue.broker_name, give)))


def drain(stay: Stay) -> Step:
    """Wait for the messages in flight."""
    waiting = replace(stay, pending=stay.pending | {Pending.DRAIN}, retry_at=None)
    return Step(waiting, (do.Drain(stay.queue),))


def unlocked(
    stay: Stay, parts: frozenset[LockPart], settings: HandoverSettings, now: float, *, done: bool
) -> Step:
    """Go on when the broker has taken back this member's locks; without an answer, ask again.

    Locks that were not renewed for as long as a lease lasts are free without it. A stay that was
    dropped meanwhile has more to give back than these.
    """
    if Pending.UNLOCK not in stay.pending:
        return Step(stay)
    stay = replace(stay, pending=stay.pending - {Pending.UNLOCK})
    if not done and now < stay.since + settings.times.lease:
        retry_at = now + settings.times.claim_again
        return Step(replace(stay, doubtful=True, retry_at=retry_at))
    stay = replace(stay, releasing=stay.releasing - parts)
    if stay.phase is not Phase.UNLOCKING_RUN:
        return go_on_closing(stay, settings, now)
    draining = drain(replace(stay, phase=Phase.DRAINING, since=now))
    if stay.peer is None or stay.offset is None or stay.told:
        return draining
    give = Give(stay.peer, stay.queue, stay.offset, stay.number)
    return Step(draining.stay, (do.Tell(stay.queue.broker_name, give), *draining.instructions))


def drained(stay: Stay, settings: HandoverSettings, now: float, *, stored: bool) -> Step:
    """Unlock when all started messages are finished and stored; a failed commit is repeated."""
    if stay.phase is not Phase.DRAINING or Pending.DRAIN not in stay.pending:
        return Step(stay)
    stay = replace(stay, pending=stay.pending - {Pending.DRAIN})
    if not stored:
        return Step(replace(stay, retry_at=now + settings.times.claim_again))
    return _finish(stay, settings, now)


def watch_drain(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    """Give up waiting for handlers that do not end; the heir handles their messages again.

    Orderly and pull consumers wait for them before they say that starting has stopped.
    """
    if now >= stay.since + settings.drain_wait:
        queue = stay.queue
        warning = do.Warn(
            f"handlers did not finish in time: group={settings.group} topic={queue.topic} "
            f"queue={queue.broker_name}:{queue.queue_id} drain_wait_s={settings.drain_wait:g}; "
            f"the queue is released, its next owner handles their messages again"
        )
        step = _finish(stay, settings, now)
        return Step(step.stay, (warning, *step.instructions))
    if stay.phase is Phase.STOPPING:
        return Step(stay)
    if Pending.DRAIN not in stay.pending and stay.retry_at is not None and now >= stay.retry_at:
        return drain(stay)
    return Step(replace(stay, retry_at=None) if Pending.DRAIN in stay.pending else stay)


def kind_of(stay: Stay, settings: HandoverSettings) -> HandoverKind:
    """Return how a queue leaves this member."""
    if stay.peer is None:
        return stay.kind
    return HandoverKind.OVERLAP if settings.overlap else HandoverKind.DRAIN


def _finish(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    kind = kind_of(stay, settings)
    report = do.ReportChange(stay.queue, kind, settings.client_id, stay.peer, stay.offset)
    # After a hand-over by overlap the heir has its GIVE long since.
    ending = replace(stay, peer=None) if _was_given(stay) else stay
    step = close(ending, settings, now)
    return Step(step.stay, (do.Drop(stay.queue), report, *step.instructions))


def _was_given(stay: Stay) -> bool:
    return stay.phase is Phase.DRAINING and stay.peer is not None and LockPart.RUN not in stay.locks
