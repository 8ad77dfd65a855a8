"""The hand-over machine of one member: events in, instructions out, nothing else.

`advance` raises for no event in any order. Messages of other members are hints: a wrong one can
cause moves and messages twice, but no lost message, because what is committed depends only on this
member's own messages, the locks and the stored offset.
"""

from msgspec.structs import replace

from pocketmq.balance.handover import events, messages, reach, upkeep
from pocketmq.balance.handover import table as tables
from pocketmq.balance.handover.decisions import decide, first_in_rank
from pocketmq.balance.handover.group import Advanced, GroupDraft, HandoverGroup, OpenClaim
from pocketmq.balance.handover.instructions import WakeAt
from pocketmq.balance.handover.leases import fence
from pocketmq.balance.handover.queue import QueueEvent, answer
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.balance.handover.stay import Phase, Step
from pocketmq.balance.handover.taking import given
from pocketmq.model import MessageQueue

_MOST_LATER_BOOTS = 100


def new_group(settings: HandoverSettings) -> HandoverGroup:
    """Return the group as a member sees it that has just been made."""
    return HandoverGroup(settings=settings)


def advance(group: HandoverGroup, event: events.HandoverEvent, now: float) -> Advanced:
    """Return the group after an event, and what to do now."""
    draft = GroupDraft(group, now)
    if group.left:
        return draft.finish(None)
    match event:
        case events.Started():
            _start(draft)
        case events.MembersListed():
            _list(draft, event)
        case events.Routed(queues=queues):
            _route(draft, queues)
        case events.Heard():
            _hear_own_goodbye(draft, event)
            _hear(draft, event)
        case events.Renewed():
            upkeep.take_renewal(draft, event)
        case events.Connected(broker=broker):
            reach.reached(draft, broker)
            upkeep.renew(draft, broker)
            draft.decide_soon()
        case events.Disconnected(broker=broker):
            draft.down = {**draft.down, broker: now}
            reach.missed(draft, broker)
            draft.ask_soon(now + upkeep.ASK_AGAIN)
            for queue, stay in list(draft.stays.items()):
                if queue.broker_name == broker:
                    draft.apply(queue, fence(stay, now))
        case events.Stopping(wait=wait):
            _stop(draft, wait)
        case events.TimerElapsed():
            upkeep.run_timers(draft)
        case _:
            _note_answer(draft, event)
            asked = draft.stays.get(event.queue)
            if asked is not None:
                draft.apply(event.queue, answer(asked, event, draft.settings, now))
                draft.decide_soon()
    return _finish(draft, decided=isinstance(event, events.TimerElapsed))


def _note_answer(draft: GroupDraft, event: QueueEvent) -> None:
    """Note whether a broker answered a request for locks."""
    match event:
        case events.Locked(granted=None) | events.Unlocked(done=False):
            reach.missed(draft, event.queue.broker_name)
        case events.Locked() | events.Unlocked() if event.queue.broker_name not in draft.down:
            reach.reached(draft, event.queue.broker_name)


def _finish(draft: GroupDraft, *, decided: bool) -> Advanced:
    if decided and draft.decide_at is not None and draft.decide_at <= draft.now:
        draft.decide_at = None
        again = decide(draft)
        if draft.decide_at is None:
            draft.decide_at = again
    upkeep.note_changes(draft)
    upkeep.leave_if_empty(draft)
    wake_at = upkeep.next_wake(draft)
    if wake_at is not None and (decided or wake_at != draft.group.wake_at):
        draft.add(WakeAt(wake_at))
    return draft.finish(wake_at)


def _start(draft: GroupDraft) -> None:
    times = draft.settings.times
    if draft.started is None:
        draft.started = draft.now
        draft.beacon_at = draft.now + times.beacon
        draft.renew_at = draft.now + times.renew_every
    upkeep.greet(draft)
    upkeep.ask_members(draft)
    draft.decide_soon()


def _list(draft: GroupDraft, event: events.MembersListed) -> None:
    settings = draft.settings
    me = settings.client_id
    draft.table = tables.listed(draft.table, settings, event, draft.now)
    if me in event.members:
        draft.shown_at = draft.now
    elif draft.down.keys() & set(draft.brokers):
        draft.ask_soon(draft.now + settings.times.renew_every)
    for broker in event.shown_by:
        if event.asked_at > draft.unanswered.get(broker, event.asked_at):
            reach.reached(draft, broker)
    twice = draft.table.listed.count(me) > 1
    if draft.id_taken and not twice:
        draft.earlier_at = None
    if twice and draft.earlier_at is not None and not draft.id_taken:
        draft.warn(
            f"client id already in use: group={settings.group} client_id={me}; this process "
            f"consumes nothing. Set a unique instance_name for each process"
        )
    draft.id_taken = twice and draft.earlier_at is not None
    if not event.complete:
        draft.ask_soon(draft.now + upkeep.ASK_AGAIN)
    draft.decide_soon()


def _route(draft: GroupDraft, queues: frozenset[MessageQueue]) -> None:
    """Note the queues; those that disappear may be back soon, and keep their owners until then."""
    until = draft.now + draft.settings.times.absent_broker
    topics = {queue.topic for queue in queues}
    places = {(queue.topic, queue.broker_name) for queue in queues}
    absent = {
        queue: at
        for queue, at in draft.absent.items()
        if queue not in queues and at > draft.now and queue.topic in topics
    }
    for queue in draft.queues - queues:
        # Routes come topic by topic: only a broker that still has queues of the same topic has
        # deleted this one. A topic without any queue is not subscribed any more.
        if queue.topic in topics and (queue.topic, queue.broker_name) not in places:
            absent[queue] = until
    draft.queues, draft.absent = queues, absent
    upkeep.greet(draft)
    draft.decide_soon()


def _stop(draft: GroupDraft, wait: float) -> None:
    if draft.stopping:
        return
    draft.stop_at = draft.now + max(0.0, wait)
    upkeep.say_goodbye(draft, draft.brokers)
    if draft.settings.return_within:
        draft.unheard = frozenset(draft.brokers)
    draft.decide_soon()


def _hear_own_goodbye(draft: GroupDraft, event: events.Heard) -> None:
    own = (event.sender, event.boot) == (draft.settings.client_id, draft.settings.boot)
    if own and isinstance(event.message, messages.Bye) and event.broker in draft.unheard:
        draft.unheard -= {event.broker}
        draft.decide_soon()


def _hear(draft: GroupDraft, event: events.Heard) -> None:
    settings, now, sender = draft.settings, draft.now, event.sender
    own = sender == settings.client_id
    if not messages.is_ours(sender) or (own and event.boot == settings.boot):
        return
    known = sender in draft.table.since
    match event.message:
        case messages.Hello(orderly=orderly):
            draft.table = tables.hello(
                draft.table, sender, event.boot, now, event.age, orderly=orderly
            )
            draft.tell_table |= first_in_rank(draft, sender)
            draft.tell_soon(now + settings.times.gather)
            known = False
            if own and len(draft.later_boots) < _MOST_LATER_BOOTS:
                draft.later_boots |= {event.boot}
        case messages.State():
            if own and event.boot not in draft.later_boots:
                draft.earlier_at = now
                known = False
            _hear_state(draft, event, event.message)
        case messages.QueueClaim(to=to, queues=queues, number=number) if (
            to == settings.client_id and not own
        ):
            for queue in queues:
                if queue in draft.queues:
                    draft.claims[queue] = OpenClaim(sender, number, now)
        case messages.Give(to=to, queue=queue) as give if to == settings.client_id:
            stay = draft.stays.get(queue)
            if stay is not None:
                draft.apply(queue, given(stay, sender, give, settings, now))
        case messages.Bye(back_within=back_within):
            draft.table = tables.goodbye(draft.table, sender, event.boot, back_within, now)
    if not known:
        # Brokers do not always notify: a notice of an unknown member is a reason to ask for
        # the list, once a second.
        upkeep.ask_after_notice(draft)
    draft.decide_soon()


def _hear_state(draft: GroupDraft, event: events.Heard, message: messages.State) -> None:
    owner = messages.lock_owner(event.sender, event.boot)
    own = f"{draft.settings.client_id}#"
    if any(name.startswith(own) and name not in draft.table.reports for name in message.table):
        # This member had queues before it started again. A list shows whether that process lives.
        upkeep.ask_after_notice(draft)
    before = draft.table.reports.get(owner)
    draft.table = tables.state(
        draft.table,
        event.sender,
        event.boot,
        message,
        queues=draft.queues,
        me=draft.settings.client_id,
        now=draft.now,
        age=event.age,
    )
    after = draft.table.reports.get(owner)
    if after is not None:
        reach.drop_taken(draft, after)
    if before is None or after is None:
        return
    for queue in (before.held | before.draining) - (after.held | after.draining):
        stay = draft.stays.get(queue)
        if stay is None:
            continue
        if stay.phase is Phase.WANTED:
            draft.apply(queue, Step(replace(stay, retry_at=draft.now, tries=0)))
        elif stay.phase is Phase.RUNNING and stay.retry_at is not None:
            draft.apply(queue, Step(replace(stay, retry_at=draft.now)))
