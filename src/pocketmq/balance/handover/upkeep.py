"""What time brings: polls, fences, renewals, beacons, states."""

from collections.abc import Collection, Mapping
from math import inf

from msgspec.structs import replace

from pocketmq.balance.handover.events import LockPart, Renewed
from pocketmq.balance.handover.group import GroupDraft
from pocketmq.balance.handover.instructions import AskMembers, LeaveGroup, Renew, Tell
from pocketmq.balance.handover.leases import fence, lease_ends, renewed, renewing
from pocketmq.balance.handover.messages import MOST_OTHERS, Bye, Hello, State, is_ours
from pocketmq.balance.handover.queue import due, poll
from pocketmq.balance.handover.reach import missed, next_change, reached, update_lost
from pocketmq.balance.handover.stay import Phase, Stay, holds_queue
from pocketmq.balance.handover.table import (
    SUPERSEDED,
    BootReport,
    gone_names,
    living,
    silent,
    worth_telling,
)
from pocketmq.balance.handover.tail import Others
from pocketmq.model import MessageQueue

LONGEST_AWAY = 3600.0
ASK_AGAIN = 1.0
"""Seconds after which the members are asked for again, where the answer was not enough."""
_RENEW_AGAIN = 1.0
_HELD, _DRAINING = "held", "draining"
_FINISHING = frozenset({Phase.UNLOCKING_RUN, Phase.DRAINING, Phase.CLOSING})


def run_timers(draft: GroupDraft) -> None:
    """Do what is due."""
    now, times = draft.now, draft.settings.times
    _poll_stays(draft)
    if draft.started is None:
        return
    if (at := _bye_again(draft)) is not None and now >= at:
        say_goodbye(draft, draft.unheard)
    update_lost(draft)
    if now >= draft.renew_at:
        draft.renew_at = now + times.renew_every
        for broker in sorted({queue.broker_name for queue in draft.stays}):
            renew(draft, broker)
    if draft.ask_at is not None and now >= draft.ask_at:
        ask_members(draft)
        if now < draft.notice_at + SUPERSEDED:
            draft.ask_soon(now + ASK_AGAIN)
    if now >= draft.beacon_at:
        draft.beacon_at = now + times.beacon
        ask_members(draft)
        draft.tell_soon(now)
        draft.decide_soon()
    _get_ready(draft)


def _poll_stays(draft: GroupDraft) -> None:
    others: dict[str | None, Others] = {}
    for queue, stay in list(draft.stays.items()):
        ends = lease_ends(stay, draft.settings)
        if ends is not None and ends <= draft.now:
            draft.apply(queue, fence(stay, draft.now - draft.settings.times.fence_after))
            continue
        at = due(stay, draft.settings)
        if at is None or at > draft.now or stay.phase in (Phase.WANTED, Phase.CLAIMED):
            continue
        draft.apply(queue, poll(stay, _others(draft, stay, others), draft.settings, draft.now))


def _others(draft: GroupDraft, stay: Stay, cache: dict[str | None, Others]) -> Others:
    """Return what a stay must know of others; its giver is away if it does not say it drains."""
    table, settings = draft.table, draft.settings
    if None not in cache:
        cache[None] = Others(gone_names(table, settings.times, draft.now))
    if stay.peer is None or stay.barrier is None:
        return cache[None]
    reports = living(table)
    if stay.peer not in silent(
        table, reports, settings.client_id, settings.times.silent, draft.now
    ):
        for report in reports.values():
            if report.client_id == stay.peer and (
                stay.queue in report.draining or stay.queue in report.held
            ):
                return cache[None]
    return Others(cache[None].gone, peer_away=True)


def _get_ready(draft: GroupDraft) -> None:
    """Take part once the others' queues are known, or after a second."""
    if draft.ready or draft.started is None:
        return
    late = draft.now >= draft.started + draft.settings.times.know_others
    if late and draft.table.listed and not draft.table.known:
        # A broker does not answer. Members that only it lists may be missing, and their locks
        # protect them; no member is taken for gone before all have answered.
        draft.table = replace(draft.table, known=True)
        draft.decide_soon()
    if not draft.table.known or not draft.queues:
        return
    me = draft.settings.client_id
    heard = {report.client_id for report in living(draft.table).values() if report.number >= 0}
    ours = {member for member in draft.table.listed if is_ours(member)} - {me}
    if ours <= heard or late:
        draft.ready = True
        draft.decide_soon()


def ask_members(draft: GroupDraft) -> None:
    """Ask brokers for the members now."""
    draft.listed_at, draft.ask_at = draft.now, None
    draft.add(AskMembers())


def ask_after_notice(draft: GroupDraft) -> None:
    """Ask soon, after a notice of a member that may not be listed; the last answer must be younger.

    Notices without a pause must not put the question off for good.
    """
    draft.notice_at = draft.now
    draft.ask_soon(max(draft.now + SUPERSEDED, draft.listed_at + ASK_AGAIN))


def greet(draft: GroupDraft) -> None:
    """Greet on the bus of each broker that has not heard it."""
    if draft.started is None:
        return
    for broker in draft.brokers:
        if broker not in draft.greeted:
            draft.greeted |= {broker}
            draft.add(Tell(broker, Hello(draft.settings.orderly)))


def say_goodbye(draft: GroupDraft, brokers: Collection[str]) -> None:
    """Send a goodbye to these buses; where it does not come back, it is sent again."""
    bye = Bye(min(draft.settings.return_within, LONGEST_AWAY))
    for broker in sorted(brokers):
        draft.add(Tell(broker, bye))
    draft.bye_at = draft.now + draft.settings.times.claim_again


def _bye_again(draft: GroupDraft) -> float | None:
    waits = draft.unheard and draft.stop_at is not None and draft.bye_at < draft.stop_at
    return draft.bye_at if waits else None


def renew(draft: GroupDraft, broker: str) -> None:
    """Ask again for all locks at a broker, unless that is in flight."""
    if draft.back_at(broker) > draft.now or broker in draft.renewing:
        return
    locks: set[tuple[MessageQueue, LockPart]] = set()
    for queue, stay in list(draft.stays.items()):
        if queue.broker_name == broker and stay.locks:
            locks |= {(queue, part) for part in stay.locks}
            draft.stays[queue] = renewing(stay)
    if locks:
        draft.renewing[broker] = frozenset(locks)
        draft.add(Renew(broker, frozenset(locks)))


def take_renewal(draft: GroupDraft, event: Renewed) -> None:
    """Go on with what a broker granted again."""
    asked = draft.renewing.pop(event.broker, frozenset())
    by_queue: dict[MessageQueue, set[LockPart]] = {}
    for queue, part in asked:
        by_queue.setdefault(queue, set()).add(part)
    for queue, parts in by_queue.items():
        stay = draft.stays.get(queue)
        if stay is None or not stay.renewing:
            continue
        granted = None
        if event.granted is not None:
            granted = frozenset(part for part in parts if (queue, part) in event.granted)
        step = renewed(
            stay, frozenset(parts), granted, draft.settings, draft.now, sent_at=event.sent_at
        )
        draft.apply(queue, step)
    if event.granted is not None:
        if event.sent_at > max(
            draft.down.get(event.broker, -inf), draft.unanswered.get(event.broker, -inf)
        ):
            reached(draft, event.broker)
    else:
        missed(draft, event.broker)
        if event.broker not in draft.down:
            # Perhaps the connection has just come back: no need to wait for the next renewal.
            draft.renew_at = min(draft.renew_at, draft.now + _RENEW_AGAIN)
    if asked:
        draft.decide_soon()


def note_changes(draft: GroupDraft) -> None:
    """Report the state if it changed, after a short time in which more may change."""
    now, times = draft.now, draft.settings.times
    before, after = draft.group.stays, draft.stays
    lost = draft.group.lost, draft.lost
    if any(
        _role(before.get(queue), lost[0]) != _role(after.get(queue), lost[1])
        for queue in draft.touched
    ):
        draft.tell_soon(now + times.gather)
        draft.decide_soon()
    if draft.started is None or draft.tell_at is None or draft.tell_at > now:
        return
    tell_state(draft)


def current_state(
    stays: Mapping[MessageQueue, Stay], lost: Collection[str]
) -> tuple[frozenset[MessageQueue], frozenset[MessageQueue]]:
    """Return the queues that this member holds, and those it finishes.

    Without those of lost brokers: it can do nothing for them.
    """
    roles = {queue: _role(stay, lost) for queue, stay in stays.items()}
    held = frozenset(queue for queue, role in roles.items() if role is _HELD)
    return held, frozenset(queue for queue, role in roles.items() if role is _DRAINING)


def _role(stay: Stay | None, lost: Collection[str]) -> str:
    if stay is None or stay.queue.broker_name in lost:
        return ""
    if holds_queue(stay) or stay.phase is Phase.STOPPING:
        return _HELD
    return _DRAINING if stay.phase in _FINISHING and not stay.tries else ""


def tell_state(draft: GroupDraft) -> None:
    """Report on every bus what this member has, and to newcomers what it knows of others."""
    held, draining = current_state(draft.stays, draft.lost)
    draft.state_number += 1
    reports: dict[str, BootReport] = {}
    if draft.tell_table:
        reports = worth_telling(draft.table, draft.settings.times, draft.now)
    table = {owner: tuple(report.held) for owner, report in reports.items()}
    away = {
        owner: min(report.bye - draft.now, LONGEST_AWAY)
        for owner, report in reports.items()
        if report.bye is not None and report.bye > draft.now
    }
    lost = tuple(sorted(draft.lost)[:MOST_OTHERS])
    state = State(
        draft.state_number,
        tuple(held),
        tuple(draining),
        table,
        away,
        lost,
        draft.settings.orderly,
    )
    for broker in draft.brokers:
        draft.add(Tell(broker, state))
    draft.tell_at, draft.tell_table = None, False


def leave_if_empty(draft: GroupDraft) -> None:
    """Unregister when a member that stops has nothing any more.

    Locks at a broker that is away end by themselves.
    """
    busy = [
        stay
        for queue, stay in draft.stays.items()
        if stay.phase is not Phase.CLOSING or queue.broker_name not in draft.down
    ]
    if draft.stopping and not busy and not draft.left:
        if draft.started is not None:
            tell_state(draft)
        draft.add(LeaveGroup())
        draft.left = True


def next_wake(draft: GroupDraft) -> float | None:
    """Return when the next thing is due."""
    if draft.left:
        return None
    if draft.decide_at is not None and draft.decide_at <= draft.now:
        return draft.decide_at  # nothing is earlier, and all stays need not be looked at
    times = [
        due(stay, draft.settings)
        for stay in draft.stays.values()
        if stay.phase not in (Phase.WANTED, Phase.CLAIMED)
    ]
    times += (draft.decide_at, draft.tell_at)
    if draft.started is not None:
        times += (draft.renew_at, draft.beacon_at)
        known_at = draft.started + draft.settings.times.know_others
        if not draft.ready and known_at > draft.now:
            times.append(known_at)
        times += (draft.ask_at, next_change(draft), _bye_again(draft))
    return min((at for at in times if at is not None), default=None)
