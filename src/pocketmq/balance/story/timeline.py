"""Who owned which queue from when to when, read from one group's events.

A member's event lists what it owns afterwards, which counts from the end of that rebalance on;
where the event tells of hand-overs (version 2), from and to the times that it tells. A member that
dies reports nothing any more: its queues end when another member's event lists the group without
it, or at its last sign of life before that if one was recorded.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from pocketmq.model import MessageQueue, QueueName, handover_version
from pocketmq.model.rebalance_event import RebalanceEvent

_FOREIGN = "foreign"
RELEASED, STOPPED, DIED, HELD = "released", "stopped", "died", "held"
"""How an ownership ended; `HELD`: not yet. The values stand in reports."""


class Owned(msgspec.Struct, frozen=True):
    """One member's ownership of a queue; `ended` is how it ended.

    For a member that died, `until` is its last sign of life if one is known, else `noticed`: when
    the others removed it.
    """

    queue: QueueName
    member: str
    since: float
    until: float
    ended: str
    noticed: float | None = None
    start_offset: int | None = None


class OwnershipTimeline(msgspec.Struct, frozen=True):
    """Each queue's owners of a group in order, and when the routes did not have the queue."""

    owned: dict[QueueName, list[Owned]]
    known: dict[QueueName, tuple[float, float]]
    absent: dict[QueueName, list[tuple[float, float]]]
    began: float
    ended: float
    untold: dict[QueueName, list[tuple[float, float]]] = {}
    """When a queue was with foreign members that record no events, so its owner is unknown."""


class _Open(msgspec.Struct, frozen=True):
    """An ownership that has not ended yet."""

    since: float
    start_offset: int | None


class _HandoverTimes:
    """When a member stopped and started queues, by the hand-overs that its event tells."""

    def __init__(self, event: RebalanceEvent) -> None:
        self.topic = event.topic
        self.stopped: dict[QueueName, float] = {}
        self.started: dict[QueueName, float] = {}
        self.to_foreign: dict[QueueName, float] = {}
        for each in event.handovers:
            queue = name_of(each.queue)
            if queue.topic != event.topic:
                continue
            if each.giver == event.client_id and each.stopped is not None:
                self.stopped[queue] = each.stopped
                if each.kind == _FOREIGN:
                    self.to_foreign[queue] = each.stopped
            if each.heir == event.client_id and each.started is not None:
                self.started[queue] = each.started


class OwnershipFold:
    """A fold over one group's events, in order of the time they were finished.

    An event costs what it lists: members, and queues of its topic. The state pickles.
    """

    def __init__(self, signs: Mapping[str, float]) -> None:
        self._signs = signs
        self._owned: dict[str, dict[str, dict[QueueName, _Open]]] = {}  # by topic and member
        self._last_event: dict[str, float] = {}
        self._rank: dict[str, int] = {}
        self._closed: dict[int, Owned] = {}  # by number
        self._count = 0
        self._last_closed: dict[tuple[QueueName, str], int] = {}
        self._first_known: dict[str, dict[QueueName, float]] = {}  # by topic
        self._gone_since: dict[QueueName, float] = {}
        self._routes: dict[str, tuple[MessageQueue, ...]] = {}  # the last list of each topic
        self._foreign_since: dict[QueueName, float] = {}
        self._untold: dict[QueueName, list[tuple[float, float]]] = defaultdict(list)
        self._given: dict[str, set[QueueName]] = defaultdict(set)  # by member, while it drains
        self._absent: dict[QueueName, list[tuple[float, float]]] = defaultdict(list)
        self._began: float | None = None
        self._ended = 0.0

    def advance(self, event: RebalanceEvent) -> None:
        """Add the next event."""
        at, me = finished(event), event.client_id
        self._rank.setdefault(me, len(self._rank))
        self._began = event.started if self._began is None else min(self._began, event.started)
        self._ended = at
        self._route(event, at)
        self._bury(event, at)
        after = dict.fromkeys(map(name_of, event.after))  # in the order that the event has
        before = {name_of(queue) for queue in event.before}
        times = _HandoverTimes(event)
        for queue in before:
            self._revive(me, queue)
        mine = self._owned_by(me, event.topic)
        self._date_back(me, times)
        self._give(me, times, after)
        for queue in [queue for queue in mine if queue not in after]:
            stopped = times.stopped.get(queue, at)
            until = stopped if stopped >= mine[queue].since else at  # else told before it took it
            self._close(me, queue, until, STOPPED if event.trigger == "stop" else RELEASED)
        given = self._given.get(me, ())
        for queue in [queue for queue in after if queue not in mine and queue not in given]:
            since = at if queue not in before else event.started
            opened = _Open(times.started.get(queue, since), event.assigned.get(str(queue)))
            self._owned_by(me, queue.topic)[queue] = opened
            self._back_from_foreign(me, queue, opened.since)
        for queue, stopped in times.to_foreign.items():
            self._foreign_since.setdefault(queue, stopped)
        if not mine:
            del self._owned[event.topic][me]
        self._last_event[me] = at

    def _back_from_foreign(self, me: str, queue: QueueName, at: float) -> None:
        """End the time of which nothing is known; a foreign member that records tells it itself."""
        since = self._foreign_since.pop(queue, None)
        if since is not None and since < at and handover_version(me) is not None:
            self._untold[queue].append((since, at))

    def _date_back(self, me: str, times: "_HandoverTimes") -> None:
        """Correct ends that were sent before the hand-over was known, which has the exact time."""
        for queue, stopped in times.stopped.items():
            number = self._last_closed.get((queue, me))
            if number is None:
                continue
            one = self._closed[number]
            if one.ended != DIED and one.since <= stopped < one.until:
                self._closed[number] = msgspec.structs.replace(one, until=stopped)

    def _give(self, me: str, times: "_HandoverTimes", after: Mapping[QueueName, None]) -> None:
        """End the ownership of queues that were given away, although they are still listed.

        A member that drains a queue lists it until its last message is finished, but the heir
        starts messages already.
        """
        given = self._given[me]
        given.difference_update(times.started.keys())
        given.difference_update([q for q in given if q.topic == times.topic and q not in after])
        mine = self._owned_by(me, times.topic)
        for queue, stopped in times.stopped.items():
            since = mine[queue].since if queue in mine else stopped
            if queue in after and stopped >= max(since, times.started.get(queue, stopped)):
                given.add(queue)
                if queue in mine:
                    self._close(me, queue, stopped, RELEASED)
        if not given:
            del self._given[me]

    def finish(self, until: float = 0.0) -> OwnershipTimeline:
        """Return the timeline up to a time, or the last event if later; open spans stay open."""
        assert self._began is not None, "there was no event"
        began, ended = self._began, max(self._ended, until)
        absent = {queue: list(spans) for queue, spans in self._absent.items()}
        for queue, since in self._gone_since.items():
            absent.setdefault(queue, []).append((since, ended))
        first_known = {
            q: at for of_topic in self._first_known.values() for q, at in of_topic.items()
        }
        owned: dict[QueueName, list[Owned]] = {queue: [] for queue in sorted(first_known)}
        everything = [*self._closed.values(), *self._still_owned(ended)]
        for one in sorted(everything, key=lambda o: (o.since, o.until)):
            owned.setdefault(one.queue, []).append(one)
        known = {queue: (first_known.get(queue, began), ended) for queue in owned}
        untold = {queue: list(spans) for queue, spans in self._untold.items()}
        for queue, since in self._foreign_since.items():
            untold.setdefault(queue, []).append((since, max(since, ended)))
        return OwnershipTimeline(owned, known, absent, began, ended, untold)

    def _still_owned(self, ended: float) -> Iterable[Owned]:
        for members in self._owned.values():
            for member in self._in_order(members):
                for queue, opened in members[member].items():
                    until = max(ended, opened.since)
                    yield Owned(queue, member, opened.since, until, HELD, None, opened.start_offset)

    def _in_order(self, members: Iterable[str]) -> list[str]:
        """Sort members by their first events: a fixed order for simultaneous owners."""
        return sorted(members, key=lambda member: self._rank[member])

    def _owned_by(self, member: str, topic: str) -> dict[QueueName, _Open]:
        return self._owned.setdefault(topic, {}).setdefault(member, {})

    def _revive(self, member: str, queue: QueueName) -> None:
        """Undo the death of a member that reports that it has owned a queue all the time."""
        mine = self._owned_by(member, queue.topic)
        number = self._last_closed.get((queue, member))
        if queue not in mine and number is not None and self._closed[number].ended == DIED:
            earlier = self._closed.pop(number)
            del self._last_closed[queue, member]
            mine[queue] = _Open(earlier.since, earlier.start_offset)

    def _route(self, event: RebalanceEvent, at: float) -> None:
        """Record which queues exist, and which are gone."""
        if event.queues is None:
            for queue in map(name_of, event.after):
                self._first_known.setdefault(queue.topic, {}).setdefault(queue, at)
            return
        if event.queues is self._routes.get(event.topic):  # the same list, read before
            return
        self._routes[event.topic] = event.queues
        there = {name_of(queue) for queue in event.queues}
        for queue in there:
            self._first_known.setdefault(queue.topic, {}).setdefault(queue, event.started)
            if queue in self._gone_since:
                self._absent[queue].append((self._gone_since.pop(queue), event.started))
        for queue in self._first_known.get(event.topic, {}).keys() - there:
            self._gone_since.setdefault(queue, event.started)

    def _bury(self, event: RebalanceEvent, at: float) -> None:
        """End the ownerships of members that the group does not list any more."""
        if event.members is None:
            return
        listed = {*event.members, event.client_id}
        members = self._owned.get(event.topic, {})
        for member in self._in_order(members.keys() - listed):
            if self._last_event.get(member, 0.0) < event.started:
                for queue in list(members[member]):
                    self._close(member, queue, at, DIED)
                del members[member]

    def _close(self, member: str, queue: QueueName, at: float, how: str) -> None:
        opened = self._owned[queue.topic][member].pop(queue)
        until, noticed = max(opened.since, at), None
        if how == DIED:
            until, noticed = max(opened.since, min(at, self._signs.get(member, at))), at
        self._count += 1
        self._last_closed[queue, member] = self._count
        self._closed[self._count] = Owned(
            queue, member, opened.since, until, how, noticed, opened.start_offset
        )


def timeline(
    events: Iterable[RebalanceEvent],
    signs: Mapping[str, float],
    until: float | None = None,
) -> OwnershipTimeline:
    """Return the ownership timeline of a group from its events.

    `signs` are last signs of life of members, beyond their events; `until` is when observation
    ended, if later than the last event.
    """
    owners = OwnershipFold(signs)
    for event in sorted(events, key=finished):
        owners.advance(event)
    return owners.finish(until or 0.0)


def finished(event: RebalanceEvent) -> float:
    """Return when a rebalance was over."""
    return event.started + event.asked + event.carried_out


def name_of(queue: MessageQueue) -> QueueName:
    """Return a queue's name."""
    return QueueName(queue.topic, queue.broker_name, queue.queue_id)
