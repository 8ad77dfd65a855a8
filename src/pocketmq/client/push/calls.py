"""Handler calls as jobs: messages, the handler they are for, and its outcome.

Made on the loop, done in a thread or by a task, settled on the loop by the work that made it. Where
they are done they read `may_start` and `locked` of their queue, which the loop writes, or pass its
gate (STICKY). A `DirectCall` is for one message on an operator's request (309), beside queues and
offsets.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from pocketmq.balance.consumer.handling import batches
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.consume_hooks import HookCaller
from pocketmq.client.push.handlers import CANCELLED, Failure, Handler
from pocketmq.client.push.work import Consuming
from pocketmq.model import ConsumeResult, property_names
from pocketmq.model.names import retry_topic, unwrap_namespace
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.client_calls import DirectConsumeResult

logger = logging.getLogger("pocketmq.client")

_LEAST_LOCK = 1_000_000
"""Nanoseconds for which a lock counts at least. One that ends right now may look valid to the check
before a sequence and expired to the check before its first call, for ever."""
LONG_ENOUGH = 3_000_000
"""Nanoseconds after which no further call is begun."""
MOST_CALLS = 512


class Call(msgspec.Struct, eq=False):
    """One call of a handler, for messages of one queue. Made once a message, so made fast."""

    held: HeldQueue
    handler: Handler
    messages: Sequence[ReceivedMessage]
    watch: HookCaller
    failure: Failure | None = None
    skipped: bool = False
    """Whether the queue, or the popped messages, were lost before the call, or it is fenced."""
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
        held = self.held
        if held.popped is None and held.gate is None and held.may_start and not self.watch.hooks:
            return self.handler.call_async(self.messages)  # as nearly always
        if self._lost():
            return self._skip()
        return self._make_watched() if self.watch.hooks else self.handler.call_async(self.messages)

    def _lost(self) -> bool:
        held = self.held
        if held.gate is not None:
            return not held.gate.enter(self.messages[-1].queue_offset)
        if held.popped is None:
            return not held.may_start
        return not held.may_start or not held.popped.has(self.messages)

    async def _make_watched(self) -> Failure | None:
        context = self.watch.before(self.held.queue, self.messages)
        failure = await self.handler.call_async(self.messages)
        if context is not None:
            self.watch.after(context, failure)
        return failure

    async def _skip(self) -> None:
        self.skipped = True


class Pace:
    """The number of calls that fit into a sequence: many quick ones, a single slow one."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 1

    def learn(self, calls: int, took: int) -> None:
        """Learn from a sequence of `calls` that took `took` nanoseconds."""
        if calls:
            fitting = LONG_ENOUGH * calls // max(took, 1)
            self.calls = max(1, min(fitting, 4 * self.calls, MOST_CALLS))


class CallSequence:
    """Several calls in a row for one queue, in order, without returning to the loop in between.

    Stops by itself where order or ownership would be at risk: at the first failure, when the queue
    is lost, when its lock is lost or too old, and when it has taken long enough.
    """

    __slots__ = (
        "_size", "began", "calls", "done", "failure", "handler", "held", "lock_until", "messages",
        "now", "took", "watch",
    )  # fmt: skip

    def __init__(
        self,
        held: HeldQueue,
        handler: Handler,
        messages: Sequence[ReceivedMessage],
        *,
        size: int,
        began: float,
        watch: HookCaller,
        now: Callable[[], int],
        lock_life: float | None,
    ) -> None:
        self.held = held
        self.handler = handler
        self.messages = messages
        self.began = began
        """When the queue's task began, of which this is a part."""
        self.watch = watch
        self.now = now
        self.lock_until = (
            None if lock_life is None else now() + max(int(lock_life * 1e9), _LEAST_LOCK)
        )
        """The tick at which the broker may give the lock away; None without locks."""
        self.calls = 0
        self.done = 0
        """Messages from the front that are done."""
        self.failure: Failure | None = None
        """Why the call after those failed."""
        self.took = 0
        self._size = size

    def make(self) -> None:
        """Call a plain handler, batch by batch."""
        until = self.now() + LONG_ENOUGH
        for batch in batches(self.messages, self._size):
            if not self._may_go_on(until, batch):
                return
            self.calls += 1
            context = self.watch.before(self.held.queue, batch) if self.watch.hooks else None
            self.failure = self.handler.call(batch)
            if context is not None:
                self.watch.after(context, self.failure)
            if self.failure is not None:
                return
            self.done += len(batch)

    async def make_async(self) -> Failure | None:
        """Call a coroutine handler, batch by batch."""
        until = self.now() + LONG_ENOUGH
        for batch in batches(self.messages, self._size):
            if not self._may_go_on(until, batch):
                break
            self.calls += 1
            context = self.watch.before(self.held.queue, batch) if self.watch.hooks else None
            failure = await self.handler.call_async(batch)
            if context is not None:
                self.watch.after(context, failure)
            if failure is not None:
                return failure
            self.done += len(batch)
        return None

    def outcome(
        self,
    ) -> tuple[Sequence[ReceivedMessage], Sequence[ReceivedMessage], Sequence[ReceivedMessage]]:
        """Return the messages that are done, that failed, and that were not begun."""
        messages, done = self.messages, self.done
        tried = done + (self._size if self.failure is not None else 0)
        return messages[:done], messages[done:tried], messages[tried:]

    def _may_go_on(self, until: int, batch: Sequence[ReceivedMessage]) -> bool:
        held = self.held
        if not held.may_start:
            return False
        now = self.now()
        if self.lock_until is not None and (not held.process.locked or now > self.lock_until):
            return False
        if self.calls and now >= until:
            return False
        return held.gate is None or held.gate.enter(batch[-1].queue_offset)


class KnownHandlers:
    """The handlers of a consumer, each inspected only the first time."""

    def __init__(self, consuming: Consuming) -> None:
        self._consuming = consuming
        self._known: dict[str, tuple[object, Handler]] = {}

    def of(self, topic: str) -> Handler | None:
        """Return the handler of a topic as the application calls it."""
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


class DirectCall:
    """A handler call that an operator awaits."""

    def __init__(
        self, consuming: Consuming, message: ReceivedMessage, broker_name: str | None
    ) -> None:
        topic = message.topic
        if topic == retry_topic(consuming.group):
            topic = message.get_property(property_names.RETRY_TOPIC) or topic
        topic = unwrap_namespace(consuming.session.options.namespace, topic)
        self.message = message.with_topic(topic)
        self.handler: Handler | None = None
        self.failure: Failure | None = None
        self.took = 0
        self.ended: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        logger.info(
            "handling a message on request: group=%s message=%s broker=%s",
            consuming.group, self.message.message_id, broker_name,
        )  # fmt: skip

    def make(self) -> None:
        """Call a plain handler."""
        assert self.handler is not None
        self.failure = self.handler.call((self.message,))

    def make_async(self) -> Awaitable[Failure | None]:
        """Call a coroutine handler."""
        assert self.handler is not None
        return self.handler.call_async((self.message,))

    def conclude(self) -> None:
        """Report the outcome to the operator's request."""
        if not self.ended.done():
            self.ended.set_result(self.failure)

    def give_up(self) -> None:
        """End the operator's request because the consumer stops."""
        if not self.ended.done():
            self.ended.set_result(CANCELLED)


def direct_result(failure: Failure | None, spent_ms: int, *, orderly: bool) -> DirectConsumeResult:
    """Return the outcome in Java's words."""
    result, remark = ConsumeResult.CR_SUCCESS, None
    if failure is not None:
        result, remark = ConsumeResult.CR_LATER, failure.reason
        if failure.error is not None:
            result = ConsumeResult.CR_THROW_EXCEPTION
            logger.warning("handler failed on a message sent on request", exc_info=failure.error)
    return DirectConsumeResult(
        order=orderly,
        auto_commit=True,
        consume_result=result,
        remark=remark,
        spent_time_mills=spent_ms,
    )
