"""Leases: how a member notices that a queue may not be its own any more.

A broker keeps a lock for 60 s after the last request. The member stops 15 s after it, and at once
when the connection closes, because the others may be told then that it is gone and free its locks.
"""

from msgspec.structs import replace

from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.instructions import Fence, HandoverKind, Resume
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import IN_SHELL, Phase, Stay, Step
from pocketmq.balance.handover.steps import drop, go_on_closing, unlock_own


def fence(stay: Stay, since: float) -> Step:
    """Stop a queue whose lease is in doubt, until a renewal is granted that was sent since."""
    if not stay.locks:
        return Step(stay)
    fenced = replace(stay, fenced=max(since, stay.fenced or since))
    if stay.fenced is not None or stay.phase not in IN_SHELL:
        return Step(fenced)
    return Step(fenced, (Fence(stay.queue),))


def lease_ends(stay: Stay, settings: HandoverSettings) -> float | None:
    """Return when the lease is in doubt; None if there is none, or it is already."""
    if not stay.locks or stay.fenced is not None:
        return None
    return stay.leased + settings.times.fence_after


def renewing(stay: Stay) -> Stay:
    """Return the stay while a renewal of its locks is not answered."""
    return replace(stay, renewing=True)


def renewed(
    stay: Stay,
    asked: frozenset[LockPart],
    granted: frozenset[LockPart] | None,
    settings: HandoverSettings,
    now: float,
    *,
    sent_at: float,
) -> Step:
    """Go on with the answer to a renewal of the `asked` locks; None: there was none."""
    stay = replace(stay, renewing=False)
    if stay.phase is Phase.CLOSING:
        return go_on_closing(stay, settings, now)
    if granted is None or not stay.locks & asked:
        return _unlock_now(stay, settings)
    refused = stay.locks & asked - granted
    if refused:
        stay = replace(stay, locks=stay.locks - refused)
        if LockPart.RUN in refused or stay.phase is not Phase.RUNNING or stay.fenced is not None:
            # Also if the tail alone is refused after a fence: another member had the queue, has
            # given it away and finishes messages that this one would start again.
            return drop(stay, settings, now, HandoverKind.LOST)
        # The tail alone was lost: the queue runs on, and cannot be given before it is locked again.
        stay = replace(stay, retry_at=now, tries=0)
    stay = replace(stay, leased=max(stay.leased, sent_at))
    step = _unlock_now(stay, settings)
    if stay.fenced is None or sent_at < stay.fenced or step.stay is None:
        return step
    resumed = replace(step.stay, fenced=None, retry_at=now)
    if stay.phase not in IN_SHELL:
        return Step(resumed, step.instructions)
    # Between two grants another member may have had the queue, for example after a restart of the
    # broker. Then the stored offset is above all commits of this member, which `Resume` checks.
    return Step(resumed, (Resume(stay.queue), *step.instructions))


def _unlock_now(stay: Stay, settings: HandoverSettings) -> Step:
    return unlock_own(stay, settings) if stay.phase is Phase.UNLOCKING_RUN else Step(stay)
