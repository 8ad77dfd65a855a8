"""Rebalance events sent to a topic, for whoever watches the group from outside.

One message for each event: the body is `RebalanceEvent.to_json`, the tag `rebalance`, the key the
group. Sending must never hold the consumer up: events wait in a short line, and what cannot be
sent is dropped with one log line. Belongs to one event loop.
"""

import asyncio
import logging
from collections import deque

from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model.message import Message
from pocketmq.model.names import INNER_PRODUCER_GROUP, check_topic
from pocketmq.model.rebalance_event import RebalanceEvent

logger = logging.getLogger("pocketmq.client")

EVENT_TAG = "rebalance"
_LINE = 1024


class HistoryTopic:
    """Sends events to one topic, in order."""

    def __init__(self, topic: str, session: Session, tasks: Tasks) -> None:
        check_topic(topic)
        self.topic = topic
        self._sending = Sending(session, ProducerOptions(group=INNER_PRODUCER_GROUP))
        self._tasks = tasks
        self._line: deque[RebalanceEvent] = deque(maxlen=_LINE)
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def publish(self, event: RebalanceEvent) -> None:
        """Send an event soon; the oldest in line gives way if there are too many."""
        self._line.append(event)
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._send_all(), f"history to {self.topic}")

    async def finish(self, patience: float) -> None:
        """Wait for what is in line, but not longer than `patience`."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=patience)

    async def _send_all(self) -> None:
        while self._line:
            event = self._line.popleft()
            message = Message(self.topic, event.to_json(), tag=EVENT_TAG, keys=[event.group])
            try:
                await self._sending.send(message)
                self._failing = False
            except MQError as error:
                log = logger.debug if self._failing else logger.warning
                log("a rebalance event is not published: %s", error)
                self._failing = True
