"""Reads members' rebalance events from the topic that they publish to, as they come.

Joins no group and commits nothing. Starts at the end of each queue: totals count from the start of
the dashboard, as a monitor expects. Whatever else is in the topic is skipped.
"""

import logging
from contextlib import suppress

from pocketmq.admin.admin import Admin
from pocketmq.balance.story.totals import HandoverCounter, HandoverTotals
from pocketmq.errors import ServerError, TransportError
from pocketmq.model import MessageQueue
from pocketmq.model.rebalance_event import RebalanceChange, read_event

logger = logging.getLogger("pocketmq.dashboard")

PAGES = 50
"""Pages of a queue that are read at once; the rest comes with the next poll."""
LONGEST = 4 << 20
"""Bytes of an event; longer ones are skipped."""


class EventReader:
    """Counts the hand-overs that are published to a topic. Never two reads at once."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._next: dict[MessageQueue, int] = {}
        self._began = False
        self._counter = HandoverCounter()
        self._skipped = False

    async def read(self) -> HandoverTotals:
        """Read what is new, and return all totals. Raises `RouteNotFound`."""
        route = await self._admin.topics.route(self._topic)
        for queue in route.subscribe_queues(self._topic):
            with suppress(TransportError, ServerError):  # it is read when its broker is back
                if queue not in self._next:
                    first, end = await self._admin.offsets.bounds(queue)
                    # A queue that appears later is read from its beginning.
                    self._next[queue] = first if self._began else end
                await self._read(queue)
        self._began = True
        return self._counter.totals()

    async def _read(self, queue: MessageQueue) -> None:
        for _ in range(PAGES):
            page = await self._admin.messages.page(queue, self._next[queue])
            for message in page.messages:
                self._take(message.body)
            if page.next_offset == self._next[queue]:
                return
            self._next[queue] = page.next_offset

    def _take(self, body: bytes) -> None:
        if len(body) > LONGEST:
            self._skip(f"it has {len(body)} bytes")
            return
        try:
            events = [read_event(line) for line in body.splitlines() if line.strip()]
        except (ValueError, RecursionError) as problem:  # msgspec's errors are ValueErrors
            self._skip(str(problem))
            return
        for event in events:
            self._counter.add(event.event if isinstance(event, RebalanceChange) else event)

    def _skip(self, why: str) -> None:
        if not self._skipped:
            self._skipped = True
            logger.warning(
                "message skipped, it is not a rebalance event: topic=%s error=%s; further ones are "
                "skipped without a log line",
                self._topic, why,
            )  # fmt: skip
