"""One queue's machine: every answer of the shell, and the passing of time."""

from msgspec.structs import replace

from pocketmq.balance.handover import events, steps
from pocketmq.balance.handover.giving import drained, starting_stopped, unlocked, watch_drain
from pocketmq.balance.handover.instructions import BOTH, HandoverKind
from pocketmq.balance.handover.leases import lease_ends
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import IN_SHELL, Pending, Phase, Stay, Step
from pocketmq.balance.handover.tail import Others, hole_filled, watch_tail
from pocketmq.balance.handover.taking import freed, locked, offset_read, offset_stored

_NEVER = float("inf")

QueueEvent = (
    events.Locked
    | events.Unlocked
    | events.StartRead
    | events.OffsetStored
    | events.Overtaken
    | events.StartingStopped
    | events.Drained
    | events.HoleFilled
)


def answer(stay: Stay, event: QueueEvent, settings: HandoverSettings, now: float) -> Step:
    """Go on with an answer of the shell; one that was not asked for is ignored."""
    match event:
        case events.Locked(granted=granted):
            return locked(stay, granted, settings, now)
        case events.Unlocked(owner=owner) if owner in stay.freeing:
            return freed(stay, owner, settings, now)
        case events.Unlocked(owner=owner, parts=parts, done=done) if owner == settings.owner:
            return unlocked(stay, parts, settings, now, done=done)
        case events.StartRead(offset=offset, stored=stored):
            return offset_read(stay, offset, settings, now, stored=stored)
        case events.OffsetStored(done=done):
            return offset_stored(stay, settings, now, done=done)
        case events.StartingStopped(offset=offset):
            return starting_stopped(stay, offset, settings, now)
        case events.Drained(stored=stored):
            return drained(stay, settings, now, stored=stored)
        case events.HoleFilled() if Pending.FILL in stay.pending:
            return hole_filled(stay, now)
        case events.Overtaken() if stay.phase in IN_SHELL:
            return steps.drop(stay, settings, now, HandoverKind.LOST)
    return Step(stay)


def poll(stay: Stay, others: Others, settings: HandoverSettings, now: float) -> Step:
    """Do what is due."""
    if stay.phase is Phase.RUNNING:
        return watch_tail(stay, others, settings, now)
    if stay.phase in (Phase.STOPPING, Phase.DRAINING):
        return watch_drain(stay, settings, now)
    if stay.retry_at is None or now < stay.retry_at:
        return Step(stay)
    match stay.phase:
        case Phase.LOCKING if Pending.LOCK not in stay.pending:
            return steps.ask_locks(stay, BOTH, now)
        case Phase.READING if Pending.READ not in stay.pending:
            return steps.read_offset(stay)
        case Phase.UNLOCKING_RUN:
            return steps.unlock_own(stay, settings)
        case Phase.CLOSING:
            return steps.go_on_closing(stay, settings, now)
    return Step(replace(stay, retry_at=None))


def due(stay: Stay, settings: HandoverSettings) -> float | None:
    """Return when `poll` or `fence` has something to do; None: never, as far as time goes."""
    at = lease_ends(stay, settings)
    first = at if at is not None else _NEVER
    if stay.retry_at is not None and stay.retry_at < first:
        first = stay.retry_at
    if stay.phase is Phase.RUNNING:
        if stay.recheck_at < first and stay.fenced is None and stay.barrier is None:
            first = stay.recheck_at
    elif stay.phase in (Phase.STOPPING, Phase.DRAINING):
        first = min(first, stay.since + settings.drain_wait)
    return first if first < _NEVER else None
