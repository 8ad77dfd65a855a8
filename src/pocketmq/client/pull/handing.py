"""How a pull consumer's queues take part in STICKY's hand-over.

The application has no handlers that could be waited for; what it polled last is done when it polls
again. So a queue that is given away is not polled any more, the next poll is awaited, then the
application's listener; the position after that is where the next owner starts. Belongs to one event
loop.
"""

from collections.abc import Sequence

from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.pulling import AskedPull, PullResult
from pocketmq.client.pull.cache import PulledBatch, PullQueue
from pocketmq.client.pull.pulling import LitePullLoop
from pocketmq.client.pull.queues import PullParts
from pocketmq.model import MessageQueue
from pocketmq.model.route import MASTER_ID
from pocketmq.protocol import ReceivedMessage


class PullHandled:
    """A `Handled` for polls."""

    waits = True

    def __init__(
        self,
        parts: PullParts,
        pulling: LitePullLoop,
        listeners: QueueListeners,
    ) -> None:
        assert isinstance(parts.offsets, ConfirmedOffsets)
        self._commits = parts.offsets
        self._parts = parts
        self._pulling = pulling
        self._listeners = listeners
        self.closing = False
        """There are no more polls to wait for."""
        self.told: set[MessageQueue] = set()
        """Queues whose listener was called."""

    def begin(self, held: PullQueue, offset: int) -> None:
        """Pull from an offset."""
        held.assigned = True
        held.change(pull_offset=offset, paused=held.queue in self._parts.setup.pauses)
        self._pulling.begin(held)

    def resume(self, held: PullQueue) -> None:
        """Continue after a fence, with what is cached."""
        self._parts.cache.wake()
        if held.may_start:
            self._pulling.begin(held)

    async def finish(self, held: PullQueue) -> int:
        """Wait for the next poll and for the listener; return where the next owner starts."""
        parts, cache = self._parts, self._parts.cache
        if parts.options.auto_commit and not self.closing:
            await cache.until_polled(held, parts.options.drain_wait)
        if not self.closing:
            parts.note_done(held)  # all but what was polled last, if that is not done yet
        self.told.add(held.queue)
        await self._listeners.revoked_and_done([parts.setup.shown(held.queue)], parts.tasks)
        return self._commits.table.read(held.queue)

    async def pull(self, held: PullQueue, offset: int) -> PullResult:
        """Pull once from the master, beside the queue's own loop."""
        parts = self._parts
        subscribed = parts.subscribed(held.queue.topic)
        asked = AskedPull(offset, subscribed, parts.options.damaged)
        held.suggested = MASTER_ID  # a slave may not have it yet
        return await self._pulling.pull(held, asked, parts.subscriptions)

    def arrived(self, held: PullQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Cache messages of a hole, to be polled."""
        held.process.put_before(messages)
        self._parts.cache.put(PulledBatch(held, list(messages)))
