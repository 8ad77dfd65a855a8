"""Handler calls as jobs for one worker: those of an orderly queue, and one for an operator.

Made on the loop, done in a thread or by a task, settled on the loop by the work that made it. Where
they are done they read `may_start` and `locked` of their queue, which the loop writes, or pass its
gate (STICKY). A `DirectCall` is for one message on an operator's request (309), beside queues and
offsets. Concurrent calls are slices, see `slices`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import groupby

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
            logger.warning(
                "handler failed on a message that an operator sent (request 309)",
                exc_info=failure.error,
            )
    return DirectConsumeResult(
        order=orderly,
        auto_commit=True,
        consume_result=result,
        remark=remark,
        spent_time_mills=spent_ms,
    )
