"""Handler calls as jobs: messages of one queue, the handler they are for, and what it said.

Made on the loop, done in a thread or by a task, settled on the loop by the work room that made it.
"""

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from pocketmq.balance.consumer.handling import batches
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.consume_hooks import Watch
from pocketmq.client.push.handlers import Failure, Handler
from pocketmq.client.push.work import Consuming
from pocketmq.protocol.received import ReceivedMessage


class Call(msgspec.Struct, eq=False):
    """One call of a handler, for messages of one queue. Made once a message, so made fast."""

    held: HeldQueue
    handler: Handler
    messages: Sequence[ReceivedMessage]
    watch: Watch
    failure: Failure | None = None
    skipped: bool = False
    """Whether the queue, or the popped messages, were lost before the call."""
    took: int = 0

    def make(self) -> None:
        """Call a plain handler."""
        if self._lost():
            self.skipped = True
        elif self.watch.hooks:
            context = self.watch.before(self.held.queue, self.messages)
            self.failure = self.handler.call(self.messages)
            if context is not None:
                self.watch.after(context, self.failure)
        else:
            self.failure = self.handler.call(self.messages)

    def make_async(self) -> Awaitable[Failure | None]:
        """Call a coroutine handler."""
        if self.held.popped is None and not self.held.process.dropped and not self.watch.hooks:
            return self.handler.call_async(self.messages)  # as nearly always
        if self._lost():
            return self._skip()
        return self._make_watched() if self.watch.hooks else self.handler.call_async(self.messages)

    def _lost(self) -> bool:
        held = self.held
        if held.popped is None:
            return held.process.dropped
        return held.process.dropped or not held.popped.has(self.messages)

    async def _make_watched(self) -> Failure | None:
        context = self.watch.before(self.held.queue, self.messages)
        failure = await self.handler.call_async(self.messages)
        if context is not None:
            self.watch.after(context, failure)
        return failure

    async def _skip(self) -> None:
        self.skipped = True


class KnownHandlers:
    """The handlers of a consumer, looked at once each."""

    def __init__(self, consuming: Consuming) -> None:
        self._consuming = consuming
        self._known: dict[str, tuple[object, Handler]] = {}

    def of(self, topic: str) -> Handler | None:
        """Give the handler of a topic as the application calls it."""
        given = self._consuming.handler_for(topic)
        if given is None:
            return None
        known = self._known.get(topic)
        if known is None or known[0] is not given:
            known = self._known[topic] = given, Handler(given.function, batch=given.batch)
        return known[1]

    def shares(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage]
    ) -> Iterable[tuple[Handler | None, Sequence[ReceivedMessage]]]:
        """Sort messages by handler; those out of a retry topic may be for several."""
        if not held.retries:
            return ((self.of(held.topic), messages),)
        return [(self.of(topic), tuple(run)) for topic, run in groupby(messages, lambda m: m.topic)]

    def portions(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage]
    ) -> Iterator[tuple[Handler | None, Sequence[ReceivedMessage]]]:
        """Cut messages into what one call each is given."""
        most = self._consuming.options.handler_batch
        for handler, share in self.shares(held, messages):
            size = most if handler is not None and handler.batch else 1
            for portion in batches(share, size):
                yield handler, portion
