"""Several calls in a row for one queue, made without returning to the loop in between.

Stops by itself where order or ownership would be at risk: at the first failure, when the queue is
lost, when its lock is lost or too old, and when it has taken long enough. For plain handlers it runs
in a thread, and reads `may_start` and `locked` there, which the loop writes.
"""

from collections.abc import Callable, Sequence

from pocketmq.balance.consumer.handling import batches
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.consume_hooks import HookCaller
from pocketmq.client.push.handlers import Failure, Handler
from pocketmq.protocol.received import ReceivedMessage

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
    """A job: messages taken from one queue, to be handled in order."""

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
            if not self._may_go_on(until):
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
            if not self._may_go_on(until):
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

    def _may_go_on(self, until: int) -> bool:
        if not self.held.may_start:
            return False
        now = self.now()
        if self.lock_until is not None and (not self.held.process.locked or now > self.lock_until):
            return False
        return self.calls == 0 or now < until
