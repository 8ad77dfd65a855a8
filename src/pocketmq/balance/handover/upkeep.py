"""What time brings: polls, fences, renewals, beacons, states."""

from collections.abc import Mapping

from msgspec.structs import replace

from pocketmq.balance.handover.draft import Draft
from pocketmq.balance.handover.events import Part, Renewed
from pocketmq.balance.handover.instructions import AskMembers, Leave, Renew, Tell
from pocketmq.balance.handover.leases import fence, lease_ends, renewed, renewing
from pocketmq.balance.handover.messages import Hello, State, is_ours
from pocketmq.balance.handover.queue import due, poll
from pocketmq.balance.handover.stay import Phase, Stay, holds_queue
from pocketmq.balance.handover.table import (
    SUPERSEDED,
    Told,
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
_FINISHING = frozenset({Phase.OPENING, Phase.DRAINING, Phase.CLOSING})


def run_timers(draft: Draft) -> None:
    """Do what is due."""
    now, times = draft.now, draft.settings.times
    _poll_stays(draft)
    if draft.started is None:
        return
    if now >= draft.renew_at:
        draft.renew_at = now + times.renew_every
        for broker in sorted({queue.broker_name for queue in draft.stays}):
            renew(draft, broker)
    if draft.ask_at is not None and now >= draft.ask_at:
        ask_members(draft)
        if now < draft.voice_at + SUPERSEDED:
            draft.ask_soon(now + ASK_AGAIN)
    if now >= draft.beacon_at:
        draft.beacon_at = now + times.beacon
        ask_members(draft)
        draft.tell_soon(now)
        draft.decide_soon()
    _get_ready(draft)


def _poll_stays(draft: Draft) -> None:
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


def _others(draft: Draft, stay: Stay, cache: dict[str | None, Others]) -> Others:
    """Return what a stay must know of others; its giver is away if it does not say it drains."""
    table, settings = draft.table, draft.settings
    if None not in cache:
        cache[None] = Others(gone_names(table, settings.times, draft.now))
    if stay.peer is None or stay.barrier is None:
        return cache[None]
    words = living(table)
    if stay.peer not in silent(table, words, settings.client_id, settings.times.silent, draft.now):
        for word in words.values():
            if word.client_id == stay.peer and (
                stay.queue in word.draining or stay.queue in word.held
            ):
                return cache[None]
    return Others(cache[None].gone, peer_away=True)


def _get_ready(draft: Draft) -> None:
    """Take part once the others' queues are known, or after a second."""
    if draft.ready or draft.started is None:
        return
    late = draft.now >= draft.started + draft.settings.times.know_others
    if late and draft.table.listed and not draft.table.known:
        # A broker does not answer. Members that only it lists may be missing, and their locks
        # protect them; nobody is taken for gone before all have answered.
        draft.table = replace(draft.table, known=True)
        draft.decide_soon()
    if not draft.table.known or not draft.queues:
        return
    me = draft.settings.client_id
    heard = {word.client_id for word in living(draft.table).values() if word.number >= 0}
    ours = {member for member in draft.table.listed if is_ours(member)} - {me}
    if ours <= heard or late:
        draft.ready = True
        draft.decide_soon()


def ask_members(draft: Draft) -> None:
    """Ask brokers for the members now."""
    draft.listed_at, draft.ask_at = draft.now, None
    draft.add(AskMembers())


def ask_after_voice(draft: Draft) -> None:
    """Ask soon, since a voice was heard; the last answer must be younger than the last voice.

    Voices without a pause must not put the question off for good.
    """
    draft.voice_at = draft.now
    draft.ask_soon(max(draft.now + SUPERSEDED, draft.listed_at + ASK_AGAIN))


def greet(draft: Draft) -> None:
    """Greet on the bus of each broker that has not heard it."""
    if draft.started is None:
        return
    for broker in draft.brokers:
        if broker not in draft.greeted:
            draft.greeted |= {broker}
            draft.add(Tell(broker, Hello()))


def reached(draft: Draft, broker: str) -> None:
    """Note that a broker answers."""
    if broker in draft.down:
        draft.down = {name: at for name, at in draft.down.items() if name != broker}
        draft.decide_soon()


def renew(draft: Draft, broker: str) -> None:
    """Ask again for all locks at a broker, unless that is in flight."""
    if draft.back_at(broker) > draft.now or broker in draft.renewing:
        return
    locks: set[tuple[MessageQueue, Part]] = set()
    for queue, stay in list(draft.stays.items()):
        if queue.broker_name == broker and stay.locks:
            locks |= {(queue, part) for part in stay.locks}
            draft.stays[queue] = renewing(stay)
    if locks:
        draft.renewing[broker] = frozenset(locks)
        draft.add(Renew(broker, frozenset(locks)))


def take_renewal(draft: Draft, event: Renewed) -> None:
    """Go on with what a broker granted again."""
    asked = draft.renewing.pop(event.broker, frozenset())
    by_queue: dict[MessageQueue, set[Part]] = {}
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
        if event.sent_at > draft.down.get(event.broker, event.sent_at):
            reached(draft, event.broker)
    elif event.broker not in draft.down:
        # Perhaps the connection has just come back: there is no need to wait for the next turn.
        draft.renew_at = min(draft.renew_at, draft.now + _RENEW_AGAIN)
    if asked:
        draft.decide_soon()


def note_changes(draft: Draft) -> None:
    """Report the state if it changed, after a short time in which more may change."""
    now, times = draft.now, draft.settings.times
    before, after = draft.group.stays, draft.stays
    if any(_word(before.get(queue)) != _word(after.get(queue)) for queue in draft.touched):
        draft.tell_soon(now + times.gather)
        draft.decide_soon()
    if draft.started is None or draft.tell_at is None or draft.tell_at > now:
        return
    tell_state(draft)


def current_state(
    stays: Mapping[MessageQueue, Stay],
) -> tuple[frozenset[MessageQueue], frozenset[MessageQueue]]:
    """Return the queues that this member holds, and those it finishes."""
    words = {queue: _word(stay) for queue, stay in stays.items()}
    held = frozenset(queue for queue, word in words.items() if word is _HELD)
    return held, frozenset(queue for queue, word in words.items() if word is _DRAINING)


def _word(stay: Stay | None) -> str:
    if stay is None:
        return ""
    if holds_queue(stay) or stay.phase is Phase.STOPPING:
        return _HELD
    return _DRAINING if stay.phase in _FINISHING and not stay.tries else ""


def tell_state(draft: Draft) -> None:
    """Report on every bus what this member has, and to newcomers what it knows of others."""
    held, draining = current_state(draft.stays)
    draft.state_number += 1
    words: dict[str, Told] = {}
    if draft.tell_table:
        words = worth_telling(draft.table, draft.settings.times, draft.now)
    table = {owner: tuple(word.held) for owner, word in words.items()}
    away = {
        owner: min(word.bye - draft.now, LONGEST_AWAY)
        for owner, word in words.items()
        if word.bye is not None and word.bye > draft.now
    }
    state = State(draft.state_number, tuple(held), tuple(draining), table, away)
    for broker in draft.brokers:
        draft.add(Tell(broker, state))
    draft.tell_at, draft.tell_table = None, False


def leave_if_empty(draft: Draft) -> None:
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
        draft.add(Leave())
        draft.left = True


def next_wake(draft: Draft) -> float | None:
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
        times.append(draft.ask_at)
    return min((at for at in times if at is not None), default=None)
