"""The queues of a STICKY member: run, stopped, drained, fenced and dropped, as instructions say.

What `Holdings` is for a rebalance, this is for the hand-over. Answers go to the machine as events;
after `Drop` there are none. Belongs to one event loop. What order must hold:
- A queue's gate is closed before its limit is told, and what is above the limit leaves the cache at
  the same time: the next owner may start it at once.
- The last offset is stored, and confirmed, before `Drained` is reported.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Generic, Protocol, TypeVar

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as hand
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import HeldQueue, HoldState, log_name
from pocketmq.client.group.holdings import Holdings
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.group.start_gate import StartGate
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)
H_contra = TypeVar("H_contra", bound=HeldQueue, contravariant=True)

_HOLE_PAUSE = 0.5
_READ_PAUSE = 0.2
"""Seconds until the stored offset is read again before a fenced queue goes on."""


class Pulled(Protocol):
    """What a pull of a hole brought."""

    @property
    def messages(self) -> list[ReceivedMessage]:
        """Those the subscription wants."""

    @property
    def next_offset(self) -> int:
        """Where the next pull begins."""


class Handled(Protocol[H_contra]):
    """How one kind of consumer begins, resumes and ends the work on a queue."""

    def begin(self, held: H_contra, offset: int) -> None:
        """Pull from an offset."""

    def resume(self, held: H_contra) -> None:
        """Continue after a fence, with what is cached."""

    waits: bool
    """Whether work must end before it is known where the next owner starts; see `finish`."""

    async def finish(self, held: H_contra) -> int:
        """Wait for the end of that work, and return where the next owner starts."""

    async def pull(self, held: H_contra, offset: int) -> Pulled:
        """Pull once from the master, beside the queue's own loop. Raises `MQError`."""

    def arrived(self, held: H_contra, messages: Sequence[ReceivedMessage]) -> None:
        """Cache and handle messages of a hole."""


class HandoverQueues(Generic[Q]):
    """Carries out the machine's instructions about queues."""

    def __init__(
        self,
        parts: MemberParts[Q],
        holdings: Holdings[Q],
        handled: Handled[Q],
        report: Callable[[events.HandoverEvent], None],
    ) -> None:
        assert isinstance(parts.offsets, ConfirmedOffsets)
        self.commits = parts.offsets
        self._parts = parts
        self._holdings = holdings
        self._handled = handled
        self._report = report
        self._tasks: dict[HeldQueue, set[asyncio.Task[None]]] = {}
        self._limits: dict[HeldQueue, int] = {}
        self._resuming: dict[HeldQueue, asyncio.Task[None]] = {}
        self._resumed: dict[HeldQueue, asyncio.Event] = {}
        self._filled: dict[HeldQueue, asyncio.Event] = {}

    def get(self, queue: MessageQueue) -> Q | None:
        """Return a queue that is in the table."""
        return self._parts.queues.pulled.get(queue)

    # From wanted to running

    def run(self, step: hand.Run) -> None:
        """Take a queue."""
        queue = step.queue
        self.commits.open(queue, step.offset, barrier=step.barrier is not None)
        self._holdings.perform((do.AddQueue(queue),))
        held = self._parts.queues.pulled[queue]
        held.gate = StartGate(step.offset)
        held.start_checked = True
        self._handled.begin(held, step.offset)

    def lift_barrier(self, step: hand.LiftBarrier) -> None:
        """Commit from now on."""
        self.commits.lift(step.queue)

    def fill_hole(self, step: hand.FillHole) -> None:
        """Handle what the giver left unfinished."""
        held = self.get(step.queue)
        if held is not None:
            self.commits.open_hole(step.queue, step.first)
            self._filled[held] = asyncio.Event()
            self._spawn(held, self._fill(held, step.first, step.end), "fill a hole of")

    async def _fill(self, held: Q, first: int, end: int) -> None:
        offset = first
        while offset < end and not held.dropped:
            try:
                pulled = await self._handled.pull(held, offset)
            except MQError as error:
                logger.warning(
                    "pull of the previous owner's unfinished messages failed: group=%s %s "
                    'offset=%d error="%s"; retrying',
                    self._parts.group, log_name(held.queue), offset, error,
                )  # fmt: skip
                await asyncio.sleep(_HOLE_PAUSE)
                continue
            found = [one for one in pulled.messages if offset <= one.queue_offset < end]
            if found:
                self._handled.arrived(held, found)
            if pulled.next_offset > offset:
                offset = pulled.next_offset
                # After they are cached: until then the hole holds the offset back.
                self.commits.move_hole(held.queue, min(offset, end))
            else:  # not there (yet), or damaged: what was not delivered must not be skipped
                await asyncio.sleep(_HOLE_PAUSE)
        await held.until_settled(end)
        if not held.dropped:
            self.commits.move_hole(held.queue, None)
            self._filled.pop(held).set()
            self._report(events.HoleFilled(held.queue))

    # From running to given

    def stop_starting(self, step: hand.StopStarting) -> None:
        """Start no more messages, and tell where the next owner starts."""
        held = self.get(step.queue)
        if held is None or held.dropped:
            return
        assert held.gate is not None
        limit = held.gate.close(self.commits.table.read(step.queue))
        if held.state is not HoldState.FENCED:  # a fence stays until `_go_on`
            held.enter(HoldState.DRAINING)
        self._holdings.end_loop(held)
        if self._handled.waits:
            self._spawn(held, self._stop_later(held), "stop")
        else:
            self._stopped(held, limit)

    async def _stop_later(self, held: Q) -> None:
        limit = await self._handled.finish(held)
        if not held.dropped:
            self._stopped(held, limit)

    def _stopped(self, held: Q, limit: int) -> None:
        # At once: a result that comes later must not move the offset past the limit.
        self._limits[held] = limit
        held.process.cut(limit)
        held.capacity_freed()
        self._report(events.StartingStopped(held.queue, limit))

    def drain(self, step: hand.Drain) -> None:
        """Wait for what was started, and store the last offset."""
        held = self.get(step.queue)
        if held is not None and not held.dropped:
            self._spawn(held, self._drain(held), "drain")

    async def _drain(self, held: Q) -> None:
        filled = self._filled.get(held)
        if filled is not None:
            await filled.wait()
        await held.until_settled()
        while held.state is HoldState.FENCED:
            await self._resumed.setdefault(held, asyncio.Event()).wait()
        if not held.dropped:
            stored = await self.commits.settle(held, self._limits[held])
            if not held.dropped:
                self._report(events.Drained(held.queue, stored))

    def drop(self, queue: MessageQueue) -> None:
        """End a stay; late results are ignored."""
        held = self.get(queue)
        if held is None:
            return
        for task in self._tasks.pop(held, ()):
            task.cancel()
        self._limits.pop(held, None)
        self._resuming.pop(held, None)
        self._resumed.pop(held, None)
        self._filled.pop(held, None)
        self._holdings.perform((do.DropQueue(queue), do.RemoveQueue(queue)))
        self.commits.close(queue)

    # In doubt

    def fence(self, queue: MessageQueue) -> None:
        """Start and commit nothing."""
        held = self.get(queue)
        if held is not None and not held.dropped:
            if (resuming := self._resuming.pop(held, None)) is not None:
                resuming.cancel()
            held.enter(HoldState.FENCED)

    def resume(self, queue: MessageQueue) -> None:
        """Go on as before the fence, unless another member had the queue meanwhile."""
        held = self.get(queue)
        if held is None or held.state is not HoldState.FENCED or held in self._resuming:
            return
        self._resuming[held] = self._spawn(held, self._resume(held), "resume")

    async def _resume(self, held: Q) -> None:
        # The lock alone does not tell: another member may have taken the queue and left again.
        overtaken = await self.commits.recheck(held.queue)
        while overtaken is None:
            await asyncio.sleep(_READ_PAUSE)
            overtaken = await self.commits.recheck(held.queue)
        self._resuming.pop(held, None)
        if self.get(held.queue) is not held or held.state is not HoldState.FENCED:
            return
        if overtaken:
            self._report(events.Overtaken(held.queue))
        else:
            self._go_on(held)

    def _go_on(self, held: Q) -> None:
        assert held.gate is not None
        draining = held.gate.limit is not None
        held.enter(HoldState.DRAINING if draining else HoldState.OWNED)
        self._handled.resume(held)
        if (waiting := self._resumed.pop(held, None)) is not None:
            waiting.set()

    def _spawn(self, held: Q, work: Coroutine[None, None, None], what: str) -> asyncio.Task[None]:
        task = self._parts.tasks.spawn(work, f"{what} {held.queue}")
        mine = self._tasks.setdefault(held, set())
        mine.add(task)
        task.add_done_callback(mine.discard)
        return task
