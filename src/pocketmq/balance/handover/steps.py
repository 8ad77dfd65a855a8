"""The steps of a stay that all ways have in common: ask, release, end, begin again.

As everything that is done to a `Stay`, they know nothing of other queues and members.
"""

from msgspec.structs import replace

from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
from pocketmq.balance.handover.stay import IN_SHELL, NONE, Pending, Phase, Stay, Step

_VOID_AFTER_DROP = frozenset({Pending.STOP, Pending.DRAIN, Pending.FILL})


def backoff(times: HandoverTimes, tries: int) -> float:
    """Return the pause before the next attempt."""
    return min(times.slow_retry, times.retry * 2.0 ** min(tries, 10))


def ask_locks(stay: Stay, parts: frozenset[LockPart], now: float) -> Step:
    """Ask for locks."""
    asked = replace(stay, pending=stay.pending | {Pending.LOCK}, asked_at=now, retry_at=None)
    return Step(asked, (do.Lock(stay.queue, parts),))


def read_offset(stay: Stay) -> Step:
    """Ask for the stored offset."""
    asked = replace(stay, pending=stay.pending | {Pending.READ}, retry_at=None)
    return Step(asked, (do.ReadStart(stay.queue),))


def unlock_own(stay: Stay, settings: HandoverSettings) -> Step:
    """Release the locks that are to go, as soon as no other request can interfere."""
    if stay.renewing or Pending.UNLOCK in stay.pending:
        return Step(replace(stay, retry_at=None))
    asked = replace(stay, pending=stay.pending | {Pending.UNLOCK}, retry_at=None)
    return Step(asked, (do.Unlock(stay.queue, stay.releasing, settings.owner),))


def wanted_again(stay: Stay, settings: HandoverSettings, now: float) -> Stay:
    """Return the stay after an attempt to take the queue failed."""
    times = settings.times
    pause = times.slow_retry if stay.doubtful else backoff(times, stay.tries)
    return Stay(queue=stay.queue, since=now, retry_at=now + pause, tries=stay.tries + 1)


def close(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    """Release all locks; where the shell has the queue, it was dropped before."""
    closing = replace(
        stay,
        phase=Phase.CLOSING,
        since=now,
        retry_at=None,
        pending=stay.pending - _VOID_AFTER_DROP,
        locks=NONE,
        releasing=stay.locks | stay.releasing,
        barrier=None,
        fenced=None,
    )
    return go_on_closing(closing, settings, now)


def go_on_closing(stay: Stay, settings: HandoverSettings, now: float) -> Step:
    """Do the next thing of a stay that ends; it waits for every answer, so that none comes late."""
    if stay.pending or stay.freeing:
        return Step(replace(stay, retry_at=None))
    if stay.releasing:
        return unlock_own(stay, settings)
    if stay.renewing:
        return Step(stay)
    if stay.peer is not None and stay.offset is not None:
        give = Give(stay.peer, stay.queue, stay.offset, stay.number)
        return Step(None, (do.Tell(stay.queue.broker_name, give),))
    if stay.tries or stay.doubtful:
        return Step(wanted_again(stay, settings, now))
    return Step(None)


def drop(stay: Stay, settings: HandoverSettings, now: float, kind: do.HandoverKind) -> Step:
    """End a stay without another word: late results are ignored, nothing more is committed."""
    step = close(replace(stay, peer=None), settings, now)
    if stay.phase not in IN_SHELL:
        return step
    report = do.ReportChange(stay.queue, kind, settings.client_id, stay.peer, stay.offset)
    return Step(step.stay, (do.Drop(stay.queue), report, *step.instructions))
