"""How a push consumer's queues take part in STICKY's hand-over."""

from collections.abc import Sequence

from pocketmq.balance.consumer import instructions as do
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.pulling import AskedPull, PullResult
from pocketmq.client.push.holdings import PushHoldings
from pocketmq.client.push.pulling import PushPullLoop
from pocketmq.client.push.work import PushParts
from pocketmq.errors import RouteNotFound
from pocketmq.model.route import MASTER_ID
from pocketmq.protocol import ReceivedMessage

_FOR_EVER = 7 * 24 * 3600.0
"""Seconds; `drain_wait` ends it before."""


class PushHandled:
    """A `Handled` for handlers: concurrent calls overlap, orderly ones are waited for."""

    def __init__(self, parts: PushParts, holdings: PushHoldings, pulling: PushPullLoop) -> None:
        assert isinstance(parts.offsets, ConfirmedOffsets)
        self._commits = parts.offsets
        self._parts = parts
        self._holdings = holdings
        self._pulling = pulling
        self.waits = parts.options.orderly
        """A failed message of an orderly queue is not finished: where the next owner starts is
        known when the running call has ended."""

    def begin(self, held: HeldQueue, offset: int) -> None:
        """Pull from an offset."""
        self._holdings.perform((do.StartPulling(held.queue, offset, 0.0),))

    def resume(self, held: HeldQueue) -> None:
        """Continue after a fence, with what is cached."""
        self._parts.work.resumed(held)
        if held.may_start:
            self._pulling.begin(held)

    async def finish(self, held: HeldQueue) -> int:
        """Wait for the running call, and return the first offset that is not done."""
        await held.until_idle(_FOR_EVER)
        return self._commits.low(held)

    async def pull(self, held: HeldQueue, offset: int) -> PullResult:
        """Pull once from the master, beside the queue's own loop."""
        parts = self._parts
        subscribed = parts.subscriptions.get(held.queue.topic)
        if subscribed is None:
            raise RouteNotFound(held.queue.topic)
        asked = AskedPull(offset, subscribed, parts.options.damaged)
        held.suggested = MASTER_ID  # a slave may not have it yet
        return await self._pulling.pull(held, asked, parts.subscriptions)

    def arrived(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Cache and handle messages of a hole."""
        dispatch = held.process.put_before(messages)
        self._parts.work.arrived(held, messages, dispatch=dispatch)
