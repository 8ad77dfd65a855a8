"""What a member wants of each queue: to claim, take, give, release or keep it.

Decided once per iteration of the event loop. The target says who shall have a queue; an owner runs
on until the heir claims it, so a slow or hung heir costs nothing.
"""

from math import inf

from msgspec.structs import replace

from pocketmq.balance.handover.giving import can_release, claimed, release
from pocketmq.balance.handover.group import GroupDraft
from pocketmq.balance.handover.instructions import HandoverKind, Tell
from pocketmq.balance.handover.messages import QueueClaim, is_ours
from pocketmq.balance.handover.stay import Phase, Stay
from pocketmq.balance.handover.steps import drop
from pocketmq.balance.handover.table import BootReport, gone_names, living, silent, waiting_for
from pocketmq.balance.handover.taking import claim, take
from pocketmq.balance.handover.targets import forget_return, update_target
from pocketmq.model import MessageQueue

_CLAIM_LASTS = 5.0
_MOST_CLAIMED = 1000
_WAITING = (Phase.WANTED, Phase.CLAIMED)
_NOT_YET = frozenset({Phase.WANTED, Phase.CLAIMED, Phase.FREEING, Phase.LOCKING})


def decide(draft: GroupDraft) -> float | None:
    """Decide about all queues; return when to decide again, if nothing happens before."""
    if draft.started is None or not draft.table.known:
        return None
    forget_return(draft)
    _forget_absent(draft)
    update_target(draft)
    _answer_claims(draft)
    again = [_release_others(draft), *draft.absent.values()]
    again += waiting_for(draft.table, draft.now).values()
    if draft.ready and not draft.stopping and not draft.id_taken:
        again.append(_want(draft))
    first = min((at for at in again if at is not None), default=inf)
    return first if first < inf else None


def _forget_absent(draft: GroupDraft) -> None:
    late = [queue for queue, at in draft.absent.items() if at <= draft.now]
    if late:
        draft.absent = {queue: at for queue, at in draft.absent.items() if at > draft.now}


def _answer_claims(draft: GroupDraft) -> None:
    target = draft.target.owners
    for queue, open_claim in list(draft.claims.items()):
        stay = draft.stays.get(queue)
        if stay is None or stay.phase in _NOT_YET:
            if stay is None or stay.phase in _WAITING:
                draft.tell_soon(draft.now)
            del draft.claims[queue]
            continue
        if draft.now - open_claim.at > _CLAIM_LASTS:
            del draft.claims[queue]
            continue
        if stay.phase is Phase.RUNNING and target.get(queue) != open_claim.heir:
            continue
        step = claimed(stay, open_claim.heir, open_claim.number, draft.now)
        if step.stay is not stay or stay.phase is not Phase.RUNNING:
            del draft.claims[queue]
            draft.apply(queue, step)


def _release_others(draft: GroupDraft) -> float | None:
    """Release what is not this member's, and no other member will claim."""
    again: list[float] = []
    me = draft.settings.client_id
    target = draft.target
    rest_at = _rest_at(draft)
    for queue, stay in list(draft.stays.items()):
        mine = target.owners.get(queue) == me and not draft.stopping
        if stay.phase in _WAITING:
            if not mine or draft.id_taken or queue not in draft.queues:
                del draft.stays[queue]
            continue
        if mine and queue in draft.queues:
            continue
        kind = HandoverKind.ORPHAN
        if queue in target.foreign:
            kind = HandoverKind.FOREIGN
        elif queue not in draft.queues:
            if draft.absent.get(queue, 0.0) > draft.now:
                again.append(draft.absent[queue])
                continue
        elif rest_at is None:
            continue
        elif draft.now < rest_at:
            again.append(rest_at)
            continue
        _release(draft, stay, kind, again)
    return min(again, default=None)


def _rest_at(draft: GroupDraft) -> float | None:
    """Return when a member that stops releases what no other claimed.

    One that the others shall wait for lets go of nothing before its goodbye has come back to it:
    brokers tell of a departure by another way than the bus, which may be the faster one.
    """
    if draft.stop_at is None:
        return None
    others = set(draft.target.members) - {draft.settings.client_id}
    if not others:
        return draft.now
    if draft.settings.return_within and not draft.unheard - draft.down.keys():
        return draft.now
    return draft.stop_at


def _release(draft: GroupDraft, stay: Stay, kind: HandoverKind, again: list[float]) -> None:
    if can_release(stay):
        draft.apply(stay.queue, release(stay, kind, draft.now))
        return
    if stay.phase is not Phase.RUNNING:
        return
    # Behind a barrier, or fenced: to stop now would mean to handle messages twice.
    patience = draft.settings.drain_wait if stay.fenced is None else 0.0
    begun = draft.stop_at if draft.stop_at is not None else draft.now
    ending = draft.stopping or stay.queue not in draft.queues
    if ending and draft.now >= begun + patience:
        draft.apply(stay.queue, drop(stay, draft.settings, draft.now, kind))
    else:
        again.append(draft.now + draft.settings.times.poll_barrier)


def _want(draft: GroupDraft) -> float | None:
    """Claim and take what is to be this member's."""
    settings, now = draft.settings, draft.now
    times, me = settings.times, settings.client_id
    reports = living(draft.table)
    hung = silent(draft.table, reports, me, times.silent, now)
    holders = _holders(reports, me, hung)
    settled = draft.table.grown + settings.settle
    claims: dict[tuple[str, str], list[MessageQueue]] = {}
    again: list[float] = []
    names: frozenset[str] | None = None
    for queue, owner in draft.target.owners.items():
        stay = draft.stays.get(queue)
        if owner != me or (stay is not None and stay.phase not in _WAITING):
            continue
        back_at = draft.back_at(queue.broker_name)
        if back_at > now:
            again.append(back_at)
            continue
        if stay is None:
            stay = Stay(queue=queue, since=now)
        holder = holders.get(queue)
        at = _claim_at(stay, holder, settled, draft) if holder else _take_at(stay, draft)
        if at > now:
            draft.stays[queue] = stay
            again.append(at)
        elif holder:
            claims.setdefault((holder, queue.broker_name), []).append(queue)
            draft.stays[queue] = stay
        else:
            names = gone_names(draft.table, times, now) if names is None else names
            kind = HandoverKind.FOREIGN if queue in draft.hold_off else HandoverKind.ORPHAN
            draft.apply(queue, take(stay, names, kind, now))
    for (holder, broker), queues in claims.items():
        parts = range(0, len(queues), _MOST_CLAIMED)
        again += [_claim(draft, holder, broker, queues[n : n + _MOST_CLAIMED]) for n in parts]
    return min(again, default=None)


def _holders(reports: dict[str, BootReport], me: str, hung: set[str]) -> dict[MessageQueue, str]:
    """Return which other member can be asked for a queue."""
    holders: dict[MessageQueue, str] = {}
    ranked = sorted(reports.values(), key=lambda report: (report.number >= 0, report.heard))
    others = [
        report for report in ranked if report.client_id != me and report.client_id not in hung
    ]
    for report in others:
        holders.update(dict.fromkeys(report.draining, report.client_id))
    for report in others:
        holders.update(dict.fromkeys(report.held, report.client_id))
    return holders


def _claim_at(stay: Stay, holder: str | None, settled: float, draft: GroupDraft) -> float:
    if stay.phase is Phase.CLAIMED and stay.peer == holder:
        times = draft.settings.times
        pause = min(times.slow_retry, times.claim_again * 2.0 ** min(stay.tries - 1, 10))
        return stay.since + pause
    return settled


def _take_at(stay: Stay, draft: GroupDraft) -> float:
    settings, now = draft.settings, draft.now
    at = draft.hold_off.get(stay.queue, now)
    if stay.phase is Phase.WANTED and stay.retry_at is not None:
        at = max(at, stay.retry_at)
    if not settings.overlap:
        # Where order must be kept, a member that is gone may not know it yet and run on until its
        # lease is in doubt.
        for owner, report in draft.table.reports.items():
            if stay.queue in report.held and report.bye is None and owner in draft.table.gone:
                at = max(at, draft.table.gone[owner] + settings.times.seize_drained)
    return at


def _claim(draft: GroupDraft, holder: str, broker: str, queues: list[MessageQueue]) -> float:
    draft.claim_number += 1
    number = draft.claim_number
    tries = 0
    for queue in queues:
        stay = draft.stays[queue]
        repeated = stay.phase is Phase.CLAIMED and stay.peer == holder
        stay = replace(stay, tries=stay.tries + 1 if repeated else 1)
        draft.stays[queue] = claim(stay, holder, number, draft.now)
        tries = max(tries, stay.tries)
    draft.add(Tell(broker, QueueClaim(holder, tuple(queues), number)))
    times = draft.settings.times
    return draft.now + min(times.slow_retry, times.claim_again * 2.0 ** min(tries - 1, 10))


def first_in_rank(draft: GroupDraft, newcomer: str) -> bool:
    """Return whether this member is the one that tells a newcomer all it knows."""
    ours = [member for member in draft.table.listed if is_ours(member) and member != newcomer]
    return draft.settings.client_id == min(ours, default=draft.settings.client_id)
