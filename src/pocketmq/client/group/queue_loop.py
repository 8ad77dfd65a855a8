"""The queue loop: one task for each queue asks its broker for messages until the queue is dropped.

    decide (`balance`) -> stop | wait | find the start offset | ask -> take the answer in -> again

Push, pull and POP consumers differ in what they ask, where messages go and when there is capacity;
each of them is a subclass. Belongs to one event loop. A queue has at most one loop, so its read
position needs no lock: only the loop moves it, or a caller that has ended the loop before.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Generic, TypeVar

from pocketmq.balance.consumer.instructions import Instruction, ReadOffset
from pocketmq.balance.consumer.pulling import PullLater, StopPulling, WaitReason
from pocketmq.client.group.held_queue import HeldQueue, log_name
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, ServerError

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)
A = TypeVar("A")

_WOKEN = frozenset(
    {
        WaitReason.PAUSED,
        WaitReason.TOO_MANY_MESSAGES,
        WaitReason.TOO_MANY_BYTES,
        WaitReason.SPAN_TOO_LONG,
    }
)
"""Reasons to wait that can end early: the application resumes, or messages leave the cache."""


class QueueLoop(Generic[Q, A]):
    """The queue loops of one member; `A` is what its brokers' answers are read as."""

    verb = "pull"

    def __init__(self, session: Session, group: str, tasks: Tasks) -> None:
        self._session = session
        self._group = group
        self._tasks = tasks
        self._now = asyncio.get_running_loop().time

    def begin(self, held: Q, after: float = 0.0) -> None:
        """Start the loop of a queue in `after` seconds, in the place of one that runs."""
        self.end(held)
        queue = held.queue
        held.task = self._tasks.spawn(
            self._run(held, after), f"{self.verb} {queue.topic} {queue.queue_id}"
        )

    def end(self, held: Q) -> None:
        """Stop asking at once; an answer in flight is ignored."""
        held.failing = False
        if held.task is not None:
            held.task.cancel()

    async def _run(self, held: Q, after: float) -> None:
        if after:
            await asyncio.sleep(after)
        while True:
            step = self.next_step(held)
            if isinstance(step, PullLater):
                await self._wait(held, step)
                continue
            if isinstance(step, StopPulling):
                return
            if isinstance(step, ReadOffset):
                wait = await self.find_start(held)
            else:
                try:
                    answer = await self.ask(held, step)
                except MQError as error:
                    self._report(held, error)
                    code = error.code if isinstance(error, ServerError) else None
                    wait = self.after_error(held, code)
                else:
                    held.failing = False
                    if answer is None:
                        continue
                    wait = self.take(held, answer)
                    if wait == 0 and self.hands_over_first(answer):
                        await asyncio.sleep(0)
            if wait is None:
                return
            if wait:
                await asyncio.sleep(wait)

    async def _wait(self, held: Q, step: PullLater) -> None:
        """Wait; for capacity, or while paused, not longer than needed."""
        if step.reason not in _WOKEN:
            await asyncio.sleep(step.after)
            return
        held.wake_below = self.wake_below(held, step.reason)
        loop = asyncio.get_running_loop()
        held.woken = loop.create_future()
        # Polling as well, as Java does: limits may change without a message leaving the cache.
        timer = loop.call_later(step.after, held.wake)
        try:
            await held.woken
        finally:
            timer.cancel()
            held.woken = None

    def _report(self, held: Q, error: MQError) -> None:
        """Log the first failure of many in a row; refresh the route of a broker that moved."""
        # The retry topic may not exist yet: a broker makes it with the first retry.
        log = logger.debug if held.failing or held.retries else logger.warning
        log(
            '%s failed: group=%s %s error="%s"; retrying',
            self.verb, self._group, log_name(held.queue), error,
        )  # fmt: skip
        held.failing = True
        if error.refresh_route:
            self._session.routes.refresh_soon(held.queue.topic)

    # What the kinds of consumers differ in

    def next_step(self, held: Q) -> Instruction:
        """Decide: `StopPulling`, `PullLater`, `ReadOffset`, or the step that `ask` is given."""
        raise NotImplementedError

    async def find_start(self, held: Q) -> float | None:
        """Find the offset to start from; return the seconds to wait then."""
        raise NotImplementedError

    def ask(self, held: Q, step: Instruction) -> Awaitable[A | None]:
        """Ask the broker; None if what came is taken in already. Raises `MQError`."""
        raise NotImplementedError

    def take(self, held: Q, answer: A) -> float | None:
        """Take an answer in; return the seconds to wait before the next, None to end the loop."""
        raise NotImplementedError

    def hands_over_first(self, answer: A) -> bool:  # noqa: ARG002 - push uses it
        """Return whether handlers start with what an answer brought before the next is prepared."""
        return False

    def after_error(self, held: Q, code: int | None) -> float:
        """Return the seconds to wait after a refusal with `code`, or no answer at all."""
        raise NotImplementedError

    def wake_below(self, held: Q, reason: WaitReason) -> int:  # noqa: ARG002 - push uses it
        """Return the number of cached messages at which a waiting loop is woken."""
        return held.process.count * 3 // 4
