"""Who owned which queue from when to when, told from one group's events.

A member's event says what it holds afterwards, which is believed from the end of that rebalance on.
A member that dies says nothing any more: its queues end when another member's event lists the
group without it, or at its last sign of life before that if somebody recorded one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from pocketmq.model.queue import MessageQueue, QueueName
from pocketmq.model.rebalance_event import RebalanceEvent

RELEASED, STOPPED, DIED, HELD = "released", "stopped", "died", "held"


class Owned(msgspec.Struct, frozen=True):
    """One member's time with a queue; `ended` tells how it ended.

    For a member that died, `until` is its last sign of life if one is known, else `noticed`: when
    the others knew.
    """

    queue: QueueName
    member: str
    since: float
    until: float
    ended: str
    noticed: float | None = None
    start_offset: int | None = None


class Timeline(msgspec.Struct, frozen=True):
    """A group's story: each queue's owners in order, and when the routes did not have it."""

    owned: dict[QueueName, list[Owned]]
    known: dict[QueueName, tuple[float, float]]
    absent: dict[QueueName, list[tuple[float, float]]]
    began: float
    ended: float


class _Open(msgspec.Struct):
    """A queue somebody holds, as far as is known."""

    since: float
    start_offset: int | None


class _Tracker:
    """Reads events in order; see the module."""

    def __init__(self, signs: Mapping[str, float]) -> None:
        self.signs = signs
        self.held: dict[str, dict[QueueName, _Open]] = defaultdict(dict)
        self.last_event: dict[str, float] = {}
        self.closed: list[Owned] = []
        self.first_known: dict[QueueName, float] = {}
        self.gone_since: dict[QueueName, float] = {}
        self.absent: dict[QueueName, list[tuple[float, float]]] = defaultdict(list)

    def read(self, event: RebalanceEvent) -> None:
        """Take one event in."""
        at, me = finished(event), event.client_id
        self._queues(event, at)
        if event.members is not None:
            self._members(event, at)
        mine = self.held[me]
        after = {name_of(queue) for queue in event.after}
        before = {name_of(queue) for queue in event.before}
        for queue in before - mine.keys():
            self._revive(me, queue)
        of_topic = {queue for queue in mine if queue.topic == event.topic}
        for queue in of_topic - after:
            how = STOPPED if event.trigger == "stop" else RELEASED
            self._close(me, queue, at, how)
        for queue in after - of_topic:
            since = at if queue not in before else event.started
            mine[queue] = _Open(since, event.assigned.get(str(queue)))
        self.last_event[me] = at

    def _revive(self, member: str, queue: QueueName) -> None:
        """Take back that a member died which says that it has held a queue all the time."""
        for at in range(len(self.closed) - 1, -1, -1):
            earlier = self.closed[at]
            if (earlier.queue, earlier.member) == (queue, member):
                if earlier.ended == DIED:
                    del self.closed[at]
                    self.held[member][queue] = _Open(earlier.since, earlier.start_offset)
                return

    def _queues(self, event: RebalanceEvent, at: float) -> None:
        if event.queues is None:
            for held in event.after:
                self.first_known.setdefault(name_of(held), at)
            return
        there = {name_of(queue) for queue in event.queues}
        for queue in there:
            self.first_known.setdefault(queue, event.started)
            if queue in self.gone_since:
                self.absent[queue].append((self.gone_since.pop(queue), event.started))
        for queue in self.first_known:
            if queue.topic == event.topic and queue not in there:
                self.gone_since.setdefault(queue, event.started)

    def _members(self, event: RebalanceEvent, at: float) -> None:
        """End what members hold that the group does not list any more."""
        assert event.members is not None
        listed = {*event.members, event.client_id}
        for member in [m for m in self.held if m not in listed]:
            if self.last_event.get(member, 0.0) < event.started:
                for queue in [q for q in self.held[member] if q.topic == event.topic]:
                    self._close(member, queue, at, DIED)

    def _close(self, member: str, queue: QueueName, at: float, how: str) -> None:
        opened = self.held[member].pop(queue)
        until, noticed = at, None
        if how == DIED:
            until, noticed = max(opened.since, min(at, self.signs.get(member, at))), at
        self.closed.append(
            Owned(queue, member, opened.since, until, how, noticed, opened.start_offset)
        )

    def finish(self, began: float, ended: float) -> Timeline:
        """Give the story up to a time, when what is held is still held."""
        for member, queues in self.held.items():
            for queue, opened in queues.items():
                until = max(ended, opened.since)
                self.closed.append(
                    Owned(queue, member, opened.since, until, HELD, None, opened.start_offset)
                )
        for queue, since in self.gone_since.items():
            self.absent[queue].append((since, ended))
        owned: dict[QueueName, list[Owned]] = {queue: [] for queue in sorted(self.first_known)}
        for one in sorted(self.closed, key=lambda o: (o.since, o.until)):
            owned.setdefault(one.queue, []).append(one)
        known = {queue: (self.first_known.get(queue, began), ended) for queue in owned}
        return Timeline(owned, known, dict(self.absent), began, ended)


def timeline(
    events: Iterable[RebalanceEvent],
    signs: Mapping[str, float],
    until: float | None = None,
) -> Timeline:
    """Tell a group's story from its events.

    `signs` are last signs of life of members, beyond their events; `until` is when observation
    ended, if later than the last event.
    """
    ordered = sorted(events, key=finished)
    tracker = _Tracker(signs)
    for event in ordered:
        tracker.read(event)
    began = min(event.started for event in ordered)
    ended = max(finished(ordered[-1]), until or 0.0)
    return tracker.finish(began, ended)


def finished(event: RebalanceEvent) -> float:
    """Give when a rebalance was over."""
    return event.started + event.asked + event.carried_out


def name_of(queue: MessageQueue) -> QueueName:
    """Give a queue's name."""
    return QueueName(queue.topic, queue.broker_name, queue.queue_id)
