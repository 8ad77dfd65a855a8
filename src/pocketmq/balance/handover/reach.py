"""Brokers that a member cannot reach: their queues go to others, and it keeps all the rest.

A member that gets no answer from a broker for a while tells the others so, on the buses of the
other brokers, and claims the broker's queues no longer. It has fenced them before. The others
choose substitutes; the locks of the queues let one in when the lease has ended. Who lost the
broker itself, or has just found it again, believes no such report: usually the broker was away,
and the others will find it again at once.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from pocketmq.balance.handover.group import GroupDraft
from pocketmq.balance.handover.instructions import HandoverKind
from pocketmq.balance.handover.steps import drop
from pocketmq.balance.handover.table import BootReport
from pocketmq.model import MessageQueue, sort_queues


def reached(draft: GroupDraft, broker: str) -> None:
    """Note that a broker answers."""
    if broker in draft.down:
        draft.down = {name: at for name, at in draft.down.items() if name != broker}
        draft.decide_soon()
    if broker in draft.unanswered:
        draft.unanswered = {name: at for name, at in draft.unanswered.items() if name != broker}
        draft.found = {**draft.found, broker: draft.now}
        update_lost(draft)


def missed(draft: GroupDraft, broker: str) -> None:
    """Note that a broker does not answer."""
    if broker not in draft.unanswered:
        draft.unanswered = {**draft.unanswered, broker: draft.now}


def update_lost(draft: GroupDraft) -> None:
    """Note which brokers did not answer for long, and report it if that changed."""
    limit = draft.settings.times.lost_broker
    lost = frozenset(name for name, at in draft.unanswered.items() if draft.now >= at + limit)
    if lost != draft.lost:
        draft.lost = lost
        draft.tell_soon(draft.now)
        draft.decide_soon()
    late = [name for name, at in draft.found.items() if draft.now >= at + limit]
    if late:
        draft.found = {name: at for name, at in draft.found.items() if name not in late}
        draft.decide_soon()


def next_change(draft: GroupDraft) -> float | None:
    """Return when `update_lost` has something to do."""
    limit = draft.settings.times.lost_broker
    waiting = [at for name, at in draft.unanswered.items() if name not in draft.lost]
    return min((at + limit for at in (*waiting, *draft.found.values())), default=None)


def lost_by(draft: GroupDraft, reports: Mapping[str, BootReport]) -> dict[str, frozenset[str]]:
    """Return, by broker, which members cannot reach it, by their reports that count here."""
    found: dict[str, set[str]] = {}
    for report in reports.values():
        for broker in report.lost:
            if broker not in draft.unanswered and broker not in draft.found:
                found.setdefault(broker, set()).add(report.client_id)
    return {broker: frozenset(members) for broker, members in found.items()}


def substituted(
    target: Mapping[MessageQueue, str],
    lost: Mapping[str, frozenset[str]],
    owners: Mapping[MessageQueue, str],
    members: Collection[str],
) -> dict[MessageQueue, str]:
    """Return substitutes for owners that cannot reach the brokers of their queues.

    An owner that can reach a queue keeps it; then the member with the fewest queues of the topic,
    then of all, comes first. Without any such member nothing changes.
    """
    substitutes: dict[MessageQueue, str] = {}
    total = Counter(target.values())
    of_topic = Counter((queue.topic, owner) for queue, owner in target.items())
    for queue in sort_queues(set(target)):
        away = lost.get(queue.broker_name, frozenset[str]())
        able = [member for member in members if member not in away]
        if target[queue] not in away or not able:
            continue
        chosen = owners.get(queue)
        if chosen not in able:
            chosen = min(able, key=lambda one: (of_topic[queue.topic, one], total[one], one))
        for member, change in ((target[queue], -1), (chosen, 1)):
            total[member] += change
            of_topic[queue.topic, member] += change
        substitutes[queue] = chosen
    return substitutes


def drop_taken(draft: GroupDraft, report: BootReport) -> None:
    """Drop queues of lost brokers that another member has taken."""
    for queue in report.held:
        stay = draft.stays.get(queue)
        if stay is not None and stay.fenced is not None and queue.broker_name in draft.lost:
            draft.apply(queue, drop(stay, draft.settings, draft.now, HandoverKind.LOST))
