"""Rebalance events: the last ones in memory, and all of them sent to a topic if asked for.

In a topic each event is one message: the body is `RebalanceEvent.to_json`, or the change since the
event before, the tag `rebalance`, the key the group. Sending must never delay the consumer: events
wait in a bounded queue, and what cannot be sent is dropped with one log line. Belongs to one event
loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from pocketmq.balance.consumer.rebalance import RebalanceDecision
from pocketmq.balance.consumer.round import RoundOutcome
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import Message, MessageQueue, sort_queues
from pocketmq.model.names import INNER_PRODUCER_GROUP, check_topic
from pocketmq.model.rebalance_event import WHOLE_EVERY, EventWriter, RebalanceEvent

logger = logging.getLogger("pocketmq.client")

EVENT_TAG = "rebalance"
_LINE = 1024


class RebalanceHistory:
    """The last rebalances of a consumer."""

    def __init__(self, size: int) -> None:
        self._events: deque[RebalanceEvent] = deque(maxlen=size)
        self._listeners: list[Callable[[RebalanceEvent], None]] = []

    def listen(self, listener: Callable[[RebalanceEvent], None]) -> None:
        """Call a function with every event that reports a change."""
        self._listeners.append(listener)

    @property
    def events(self) -> tuple[RebalanceEvent, ...]:
        """The last events, the oldest first."""
        return tuple(self._events)

    def record(self, event: RebalanceEvent) -> None:
        """Remember an event; one that repeats the topic's last is only counted."""
        last = next((e for e in reversed(self._events) if e.topic == event.topic), None)
        if last is not None and _repeats(event, last):
            self._events[self._events.index(last)] = msgspec.structs.replace(
                last, runs=last.runs + 1
            )
            return
        self._events.append(event)
        for listener in self._listeners:
            listener(event)


def described(
    event: RebalanceEvent, decision: RebalanceDecision, outcome: RoundOutcome
) -> RebalanceEvent:
    """Complete an event with the decision and its outcome."""
    return msgspec.structs.replace(
        event,
        queues=decision.all_queues,
        revoked=tuple(sort_queues(set(outcome.released))),
        assigned={short(queue): offset for queue, offset in outcome.acquired.items()},
        skipped={short(queue): reason.value for queue, reason in outcome.skipped.items()},
        balanced=outcome.balanced,
        kept_because=None
        if decision.keep_reason is None
        else f"{decision.keep_reason.value}: {decision.error}"
        if decision.error
        else decision.keep_reason.value,
    )


def short(queue: MessageQueue) -> str:
    """Return a queue's name inside its topic."""
    return f"{queue.broker_name}:{queue.queue_id}"


def _repeats(event: RebalanceEvent, last: RebalanceEvent) -> bool:
    # A hand-over that ends late is told although no queue comes or goes with it.
    return (
        not event.changed
        and not event.handovers
        and (
            event.members == last.members
            and event.queues == last.queues
            and event.before == last.after
            and event.after == last.after
            and event.skipped == last.skipped
            and event.balanced == last.balanced
            and event.kept_because == last.kept_because
        )
    )


class HistoryTopic:
    """Sends events to one topic, in order."""

    def __init__(
        self, topic: str, session: Session, tasks: Tasks, *, changes: bool = False
    ) -> None:
        from pocketmq.client.producer.sending import Sending  # few publish their history

        check_topic(topic)
        self.topic = topic
        self._sending = Sending(session, ProducerOptions(group=INNER_PRODUCER_GROUP))
        self._tasks = tasks
        self._writer = EventWriter(WHOLE_EVERY if changes else 1)
        self._line: deque[RebalanceEvent] = deque(maxlen=_LINE)
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def publish(self, event: RebalanceEvent) -> None:
        """Send an event soon; the oldest one is dropped if too many wait."""
        self._line.append(event)
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._send_all(), f"history to {self.topic}")

    async def finish(self, patience: float) -> None:
        """Wait until all are sent, at most `patience` seconds."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=patience)

    async def _send_all(self) -> None:
        while self._line:
            event = self._line.popleft()
            message = Message(
                self.topic, self._writer.written(event), tag=EVENT_TAG, keys=[event.group]
            )
            try:
                await self._sending.send(message)
                self._failing = False
            except MQError as error:
                self._writer.lost(event)
                log = logger.debug if self._failing else logger.warning
                log(
                    'rebalance event not published: topic=%s error="%s"; dropping it',
                    self.topic, error,
                )  # fmt: skip
                self._failing = True
