"""Slices: messages of one queue for one handler, taken one call after another by any worker.

Where calls are made (`jobs`), `may_start` of the queue is read before each, which the loop writes,
or its gate is passed (STICKY). The two `make` loops run once a message, so they are made fast: the
handler is called right there, and everything unusual is done by `Slice.call`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from pocketmq.balance.consumer.handling import batches
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.consume_hooks import HookCaller
from pocketmq.client.push.handlers import CANCELLED, Consumed, Failure, Handler, raised, understood
from pocketmq.client.push.jobs import QUICK, JobPart, SharedJob, Worker
from pocketmq.protocol import ReceivedMessage

T = TypeVar("T")
_OK = Consumed.OK
_LONGEST_STRIDE = 7
_INSTANT = 1_000
"""Nanoseconds that a call may take to be followed by another one without a look at the clock."""
_SKIPPED = Failure("the queue, or the popped messages, were lost before the call, or it is fenced")


class BegunCall(NamedTuple):
    """A handler call in flight."""

    held: HeldQueue
    messages: Sequence[ReceivedMessage]


class Outcome(NamedTuple):
    """What became of calls since the last look."""

    done: list[ReceivedMessage]
    failed: list[tuple[Sequence[ReceivedMessage], Failure]]
    skipped: list[Sequence[ReceivedMessage]]
    calls: int
    took: int
    """Nanoseconds all calls took together."""


class Slice(SharedJob):
    """Messages of one queue, and the handler they are for."""

    __slots__ = ("handler", "held", "watch")

    def __init__(
        self,
        held: HeldQueue,
        handler: Handler,
        messages: Sequence[ReceivedMessage],
        size: int,
        watch: HookCaller,
    ) -> None:
        super().__init__(list(batches(messages, size)) if handler.batch else messages)
        self.held = held
        self.handler = handler
        self.watch = watch

    def part(self) -> "SlicePart":
        """Return the part of another worker."""
        return SlicePart(self)

    def begun(self, unit: Any) -> BegunCall:
        """Return a call in flight."""
        return BegunCall(self.held, self.messages(unit))

    def messages(self, unit: Any) -> Sequence[ReceivedMessage]:
        """Return the messages of one call."""
        return unit if self.handler.batch else (unit,)

    def call(self, unit: Any) -> Failure | None:
        """Call a plain handler, if the messages may still begin, with hooks around it."""
        messages = self.messages(unit)
        if self._lost(messages):
            return _SKIPPED
        context = self.watch.before(self.held.queue, messages)
        failure = self.handler.call(messages)
        if context is not None:
            self.watch.after(context, failure)
        return failure

    async def call_async(self, unit: Any) -> Failure | None:
        """Call a coroutine handler, if the messages may still begin, with hooks around it."""
        messages = self.messages(unit)
        if self._lost(messages):
            return _SKIPPED
        context = self.watch.before(self.held.queue, messages)
        failure = await self.handler.call_async(messages)
        if context is not None:
            self.watch.after(context, failure)
        return failure

    def _lost(self, messages: Sequence[ReceivedMessage]) -> bool:
        held = self.held
        if held.gate is not None:
            return not held.gate.enter(messages[-1].queue_offset)
        if held.popped is None:
            return not held.may_start
        return not held.may_start or not held.popped.has(messages)


class SlicePart(JobPart):
    """What one worker does of a slice.

    The worker adds to the lists at their ends, the loop takes from their fronts; either is one step
    of the interpreter. The counts are the worker's, and only grow.
    """

    __slots__ = ("_calls", "_done", "_failed", "_seen", "_skipped", "_took", "of")

    def __init__(self, of: Slice) -> None:
        super().__init__()
        self.of = of
        self._done: list[ReceivedMessage] = []
        self._failed: list[tuple[Sequence[ReceivedMessage], Failure]] = []
        self._skipped: list[Sequence[ReceivedMessage]] = []
        self._calls = self._took = 0
        self._seen = (0, 0)
        """Those counts when the loop looked last."""

    def take(self) -> Outcome:
        """Return what was done since the last call of this; for the loop."""
        self.noted = False  # first: what is done from now on is noted again
        done = _taken(self._done)
        failed = _taken(self._failed) if self._failed else []
        skipped = _taken(self._skipped) if self._skipped else []
        calls, took = self._calls, self._took  # after the lists: what is in them is counted
        before, self._seen = self._seen, (calls, took)
        return Outcome(done, failed, skipped, calls - before[0], took - before[1])

    def make(self, worker: Worker, until: int) -> bool:
        """Call a plain handler, one call after another."""
        of, held, tick = self.of, self.of.held, worker.tick
        hooks, function, batch = of.watch.hooks, of.handler.function, of.handler.batch
        easy = held.gate is None and held.popped is None
        finish = self._done.extend if batch else self._done.append
        now = tick()
        for unit in of.units:
            worker.since = now
            worker.unit = unit
            if easy and held.may_start and not hooks:
                try:
                    answer = function(list(unit) if batch else unit)
                except BaseException as error:  # noqa: BLE001 - whatever it is: retry later
                    failure = raised(error)
                else:
                    failure = None if answer is None or answer is _OK else understood(answer)
            else:
                failure = of.call(unit)
            took, now = now, tick()
            took = now - took
            if failure is None:
                self._calls += 1
                self._took += took
                finish(unit)
            else:
                self._fail(unit, failure)
                self._took += took
            worker.calls += 1
            if took < QUICK:
                worker.quick += 1
            if not self.noted:
                self.noted = True
                worker.note(self)
            if now > until:
                worker.unit = None
                return True
        worker.unit = None
        return False

    async def make_async(self, worker: Worker, until: int) -> bool:
        """Call a coroutine handler, one call after another.

        A look at the clock takes as long as a quick handler. So of several such calls in a row only
        the last one is followed by one; one that failed, or waited for something, always is.
        """
        of, held, tick = self.of, self.of.held, worker.tick
        hooks, function, batch = of.watch.hooks, of.handler.function, of.handler.batch
        easy = held.gate is None and held.popped is None
        finish = self._done.extend if batch else self._done.append
        stride = left = calls = 0  # calls between two looks, before the next, since the last
        now = worker.since = tick()
        for unit in of.units:
            worker.unit = unit
            try:
                if easy and held.may_start and not hooks:
                    # A list of its own: what it does to it must not change what is settled.
                    answer = await function(list(unit) if batch else unit)
                    failure = None if answer is None or answer is _OK else understood(answer)
                else:
                    failure = await of.call_async(unit)
            except asyncio.CancelledError:
                if worker.pool.stopping:
                    raise
                failure = CANCELLED
                if _is_cancelled():  # this task was cancelled, not only what the handler waited for
                    self._fail(unit, failure)
                    self._count(calls, tick() - now)
                    self._note(worker)
                    raise
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - whatever it is: retry later
                failure = raised(error)
            if failure is None:
                calls += 1
                finish(unit)
                if left and self.noted:  # nothing was settled meanwhile, so it waited for nothing
                    left -= 1
                    continue
                stride = min(2 * stride + 1, _LONGEST_STRIDE)
            else:
                self._fail(unit, failure)
                stride = 0
            looked, now = now, tick()
            if now - looked > _INSTANT * calls:
                stride = 0
            self._calls += calls
            self._took += now - looked
            worker.since, left, calls = now, stride, 0
            self._note(worker)
            if now > until:
                worker.unit = None
                return True
        worker.unit = None
        if calls:
            self._count(calls, tick() - now)
        return False

    def _fail(self, unit: Any, failure: Failure) -> None:
        messages = self.of.messages(unit)
        if failure is _SKIPPED:
            self._skipped.append(messages)
            return
        self._calls += 1
        self._failed.append((messages, failure))

    def _count(self, calls: int, took: int) -> None:
        self._calls += calls
        self._took += took

    def _note(self, worker: Worker) -> None:
        if not self.noted:
            self.noted = True
            worker.note(self)


def _taken(some: list[T]) -> list[T]:
    """Take everything out of a list to which a thread may add meanwhile."""
    taken = some[:]
    del some[: len(taken)]
    return taken


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
