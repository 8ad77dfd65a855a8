"""What became of a STICKY member's queues, for listeners, history and log.

A hand-over takes several steps; those of one change are told as one `RebalanceEvent` for each
topic. Where messages in flight take long, another event follows when they are finished: it tells
the same hand-over with all its times. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from pocketmq.balance.handover.giving import kind_of
from pocketmq.balance.handover.group import HandoverGroup
from pocketmq.balance.handover.instructions import ReportChange
from pocketmq.balance.handover.messages import is_ours
from pocketmq.balance.handover.view import balance_of
from pocketmq.client.group.history import RebalanceHistory, short
from pocketmq.client.group.parts import MemberParts
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.group_balance import BalanceMode
from pocketmq.model.rebalance_event import Handover, RebalanceEvent

logger = logging.getLogger("pocketmq.client")

QueuesChanged = Callable[[tuple[MessageQueue, ...], tuple[MessageQueue, ...]], None]

_GATHER = 0.02
"""Seconds in which steps count as those of one change."""
_FINISHED = "hand-over finished"
_LONGEST = 0.5
"""Seconds after which a change is told although some queues are still being drained."""


class _Change:
    """One change of one topic's queues, until it is reported."""

    def __init__(self, event: RebalanceEvent, owners: dict[MessageQueue, str], now: float) -> None:
        self.event = event
        self.owners = owners
        self.began = now
        self.assigned: dict[MessageQueue, int] = {}
        self.revoked: set[MessageQueue] = set()
        self.draining: set[MessageQueue] = set()
        self.handovers: dict[MessageQueue, Handover] = {}


class HandoverStory:
    """Gathers what happens to queues."""

    def __init__(
        self, parts: MemberParts[Any], changed: QueuesChanged, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.history = RebalanceHistory(parts.options.history_size)
        self.group: HandoverGroup | None = None
        self._parts = parts
        self._changed = changed
        self._loop = loop
        self._changes: dict[str, _Change] = {}
        self._triggers: dict[str, None] = {}
        self._unfinished: dict[MessageQueue, Handover] = {}  # of which not all was known yet

    def trigger(self, name: str) -> None:
        """Note what may call for a change."""
        self._triggers[name] = None

    def new_event(self, topic: str, trigger: str) -> RebalanceEvent:
        """Return the event of a change that starts now, to be completed."""
        parts = self._parts
        return RebalanceEvent(
            group=parts.group,
            client_id=parts.session.client_id,
            topic=topic,
            strategy="STICKY",
            trigger=trigger,
            started=parts.session.clock.now(),
            before=parts.queues.working(topic),
            mode=self._mode().value,
        )

    # What happens; called before the table of queues is changed

    def taken(self, queue: MessageQueue, offset: int) -> None:
        """Note that this member starts a queue."""
        self._tell_apart(queue, "stopped")
        self._unfinished.pop(queue, None)
        change = self._change(queue)
        change.assigned[queue] = offset
        change.revoked.discard(queue)
        self._note(change, queue, started=self._now())

    def released(self, queue: MessageQueue) -> None:
        """Note that no message of a queue is started any more."""
        self._tell_apart(queue, "started")
        change = self._change(queue)
        change.revoked.add(queue)
        change.draining.add(queue)
        change.assigned.pop(queue, None)
        self._note(change, queue, stopped=self._now())

    def drained(self, queue: MessageQueue) -> None:
        """Note that the last message of a queue is finished and stored."""
        change = self._change(queue, _FINISHED)
        change.draining.discard(queue)
        self._note(change, queue, drained=self._now())

    def dropped(self, queue: MessageQueue) -> None:
        """Note that a queue has left, whether it was released before or lost."""
        held = self._parts.queues.pulled.get(queue)
        if held is not None and held.mine:
            self.released(queue)
        change = self._changes.get(queue.topic)
        if change is not None:
            change.draining.discard(queue)

    def reported(self, step: ReportChange) -> None:
        """Note a queue's giver and heir."""
        if step.heir == self._parts.session.client_id:
            self._unfinished.pop(step.queue, None)  # of when this member had the queue before
        self._note(
            self._change(step.queue),
            step.queue,
            kind=step.kind.value,
            giver=step.giver,
            heir=step.heir,
            offset=step.offset,
        )

    def finish(self) -> None:
        """Report what was not reported yet."""
        for topic in list(self._changes):
            self._tell(topic)

    # How it is told

    def _tell_apart(self, queue: MessageQueue, other_way: str) -> None:
        """Report a change before a queue of it turns round: a record has one giver and one heir."""
        change = self._changes.get(queue.topic)
        known = None if change is None else change.handovers.get(queue)
        if getattr(known, other_way, None) is not None:
            self._tell(queue.topic)

    def _change(self, queue: MessageQueue, otherwise: str = "hand-over") -> _Change:
        topic = queue.topic
        change = self._changes.get(topic)
        if change is None:
            trigger = ", ".join(self._triggers) or otherwise
            owners = {} if self.group is None else balance_of(self.group).owners
            event = self.new_event(topic, trigger)
            change = self._changes[topic] = _Change(event, owners, self._loop.time())
            self._loop.call_later(_GATHER, self._tell_if_done, topic)
        return change

    def _note(self, change: _Change, queue: MessageQueue, **fields: Any) -> None:
        known = (
            change.handovers.get(queue)
            or self._unfinished.pop(queue, None)
            or Handover(queue=queue, kind="")
        )
        change.handovers[queue] = msgspec.structs.replace(known, **fields)

    def _tell_if_done(self, topic: str) -> None:
        change = self._changes.get(topic)
        if change is None:
            return
        if change.draining and self._loop.time() - change.began < _LONGEST:
            self._loop.call_later(_GATHER, self._tell_if_done, topic)
        else:
            self._tell(topic)

    def _tell(self, topic: str) -> None:
        change = self._changes.pop(topic)
        if not self._changes:
            self._triggers.clear()
        self._keep_unfinished(change)
        group, parts = self.group, self._parts
        after = parts.queues.working(topic)
        owners = {} if group is None else balance_of(group).owners
        moved = sum(
            queue.topic == topic and change.owners.get(queue) not in (None, owner)
            for queue, owner in owners.items()
        )
        queues = () if group is None else (q for q in group.queues if q.topic == topic)
        event = msgspec.structs.replace(
            change.event,
            carried_out=self._loop.time() - change.began,
            members=None if group is None else tuple(sorted(set(group.table.listed))),
            queues=tuple(sort_queues(set(queues))),
            after=after,
            revoked=tuple(sort_queues(change.revoked)),
            assigned={short(queue): offset for queue, offset in change.assigned.items()},
            balanced=group is None or _balanced(group, topic, after),
            mode=self._mode().value,
            handovers=tuple(each for each in change.handovers.values() if each.kind),
            moved=moved,
            minimum=None if group is None else group.target.minimum,
        )
        self.history.record(event)
        if not event.changed:
            logger.info(
                "hand-over finished: group=%s topic=%s client=%s queues=%s",
                event.group, topic, event.client_id,
                ",".join(short(each.queue) for each in event.handovers),
            )  # fmt: skip
            return
        logger.info(
            "rebalanced: group=%s topic=%s client=%s queues=%d/%d assigned=%d revoked=%d "
            'trigger="%s"',
            event.group, topic, event.client_id, len(after), len(event.queues or ()),
            len(event.assigned), len(event.revoked), event.trigger,
        )  # fmt: skip
        # After the event is recorded: a listener may look at the history.
        self._changed(event.revoked, tuple(sort_queues(set(change.assigned))))

    def _keep_unfinished(self, change: _Change) -> None:
        """Complete what is known of queues that are still being drained, and keep it.

        A queue may also be drained before its heir is known: its times wait for that.
        """
        group = self.group
        for known in change.handovers.values():
            if known.stopped is not None and not known.kind:
                self._unfinished[known.queue] = known
        for queue in change.draining:
            known = change.handovers[queue]
            stay = None if group is None else group.stays.get(queue)
            if group is not None and stay is not None:
                known = change.handovers[queue] = msgspec.structs.replace(
                    known,
                    kind=kind_of(stay, group.settings).value,
                    giver=group.settings.client_id,
                    heir=stay.peer,
                    offset=stay.offset,
                )
            self._unfinished[queue] = known

    def _mode(self) -> BalanceMode:
        listed = () if self.group is None else self.group.table.listed
        return BalanceMode.STICKY if all(map(is_ours, listed)) else BalanceMode.MIXED

    def _now(self) -> float:
        return self._parts.session.clock.now()


def _balanced(group: HandoverGroup, topic: str, after: tuple[MessageQueue, ...]) -> bool:
    mine = {
        queue
        for queue, owner in group.target.owners.items()
        if owner == group.settings.client_id and queue.topic == topic
    }
    return mine == set(after)
