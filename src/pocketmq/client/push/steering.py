"""What applications can do to a running push consumer: pause, resume, seek, commit.

Every method raises `ClientClosed` if the consumer is not running.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.push.member import Engine
from pocketmq.errors import InvalidInput
from pocketmq.model.queue import MessageQueue

SEEK_PATIENCE = 3.0
"""How long a seek waits for a handler that works on an orderly queue."""


class Steering:
    """The steering of a push consumer, which says what is running."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    def _running(self) -> Engine:
        raise NotImplementedError

    def pause(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull no more of a topic, of queues, or of anything; what is cached is still handled.

        It holds for queues that are taken later, too.
        """
        engine = self._running()
        engine.holdings.pauses.pause(self._wire(what))
        self._apply_pauses(engine)

    def resume(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull again of a topic, of queues, or of everything."""
        engine = self._running()
        engine.holdings.pauses.resume(self._wire(what))
        self._apply_pauses(engine)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with a queue from an offset; what is cached of it is thrown away.

        Raises `InvalidInput` if the queue is not this member's.
        """
        engine = self._running()
        held = engine.parts.held.get(engine.wire(queue))
        if offset < 0:
            raise InvalidInput(f"an offset is 0 or more, not {offset}")
        if held is None or held.dropped:
            raise InvalidInput(f"{queue} is not assigned to this consumer now")
        if not await engine.holdings.restart(held, offset, SEEK_PATIENCE):
            raise InvalidInput(f"{queue} was taken away meanwhile")

    async def commit(self) -> None:
        """Store the offsets of all queues now, without waiting for brokers to confirm."""
        await self._running().persist_offsets()

    def _apply_pauses(self, engine: Engine) -> None:
        parts = engine.parts
        for held in (*parts.held.values(), *parts.popped.values()):
            held.paused = held.queue in engine.holdings.pauses
            held.wake()

    def _wire(
        self, what: str | MessageQueue | Iterable[MessageQueue] | None
    ) -> str | Sequence[MessageQueue] | None:
        if what is None:
            return None
        if isinstance(what, str):
            return self._subscriptions.wire(what)
        queues = (what,) if isinstance(what, MessageQueue) else what
        return [
            msgspec.structs.replace(queue, topic=self._subscriptions.wire(queue.topic))
            for queue in queues
        ]
