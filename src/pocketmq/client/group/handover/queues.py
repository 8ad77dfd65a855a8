"""The queues of a STICKY member: run, stopped, drained, fenced and dropped, as instructions say.

What `Holdings` is for a rebalance, this is for the hand-over. Answers go to the machine as events;
after `Drop` there are none. Belongs to one event loop. What order must hold:
- A queue's gate is closed before its limit is told, and what is above the limit leaves the cache at
  the same time: the next owner may start it at once.
- The last offset is stored, and confirmed, before `Drained` is reported.
- A restart (a seek, a reset, a correction by the broker) replaces a stay by a fresh one without a
  pause in between: the machine does not know of it, and what it says next must find a queue.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from math import inf
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


class PulledHole(Protocol):
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

    async def pull(self, held: H_contra, offset: int) -> PulledHole:
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
        self._holes: dict[HeldQueue, int] = {}
        """Where the hole ends that is being filled."""
        self._covered: dict[HeldQueue, float] = {}
        """Restarted stays: no hole is filled from this offset on, for they handle or skip that."""
        holdings.restart_gated = self.restart

    def get(self, queue: MessageQueue) -> Q | None:
        """Return a queue that is in the table."""
        return self._parts.queues.pulled.get(queue)

    # From wanted to running

    def run(self, step: hand.Run) -> None:
        """Take a queue."""
        queue = step.queue
        self.commits.open(queue, step.offset, barrier=step.barrier is not None)
        self._holdings.perform((do.AddQueue(queue),))
        self._begin(self._parts.queues.pulled[queue], step.offset)

    def _begin(self, held: Q, offset: int, state: HoldState = HoldState.OWNED) -> None:
        held.gate = StartGate(offset)
        held.enter(state)
        held.start_checked = True
        self._handled.begin(held, offset)

    def lift_barrier(self, step: hand.LiftBarrier) -> None:
        """Commit from now on."""
        self.commits.lift(step.queue)

    def fill_hole(self, step: hand.FillHole) -> None:
        """Handle what the giver left unfinished."""
        held = self.get(step.queue)
        if held is not None:
            self.commits.open_hole(step.queue, step.first)
            self._fill_up(held, step.first, step.end)

    def _fill_up(self, held: Q, first: int, end: int) -> None:
        """Handle what is not finished of a hole, as far as the stay does not get there itself."""
        end = int(min(end, self._covered.get(held, inf)))
        if first < end:
            self._holes[held] = end
            self._spawn(held, self._fill(held, first, end), "fill a hole of")
        else:
            self._filled(held)

    def _filled(self, held: Q) -> None:
        self._holes.pop(held, None)
        self.commits.move_hole(held.queue, None)
        self._report(events.HoleFilled(held.queue))

    async def _fill(self, held: Q, first: int, end: int) -> None:
        offset = first
        # A place of its own: the queue's loop, which reads elsewhere, has its own suspicions about
        # damaged records. With the gate, so that nothing is committed by the way.
        reader = type(held)(held.queue, held.topic, first, 0.0)
        reader.gate = held.gate
        while offset < end and not held.dropped:
            try:
                pulled = await self._handled.pull(reader, offset)
            except Exception as error:  # whatever it is, the machine waits for the end of the hole
                logger.warning(
                    "pull of the previous owner's unfinished messages failed: group=%s %s "
                    'offset=%d error="%s"; retrying',
                    self._parts.group, log_name(held.queue), offset, error,
                    exc_info=None if isinstance(error, MQError) else error,
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
            self._filled(held)

    # Anew

    def restart(self, held: Q, offset: int, *, skips: bool) -> Q | None:
        """Begin a fresh stay at an offset in the place of one; None if that is given away.

        The machine's word about the stay before holds for the fresh one: it is fenced, or about to
        go on after a fence. What was unfinished of a hole is left out if the restart `skips` what
        it passes over, and else filled as far as the fresh stay does not handle it itself.
        """
        queue = held.queue
        if self.get(queue) is not held or held.gate is None or held.gate.limit is not None:
            return None
        state, resuming = held.state, held in self._resuming
        covered = 0 if skips else min(offset, self._covered.get(held, inf))
        hole, first = self._holes.get(held), self.commits.low(held)
        self._forget(held)
        self.commits.table.forget(queue)
        self.commits.table.update(queue, offset, increase_only=False)
        fresh = self._holdings.replace(held)
        self._covered[fresh] = covered
        self._begin(fresh, offset, state)
        if resuming:
            self._resuming[fresh] = self._spawn(fresh, self._resume(fresh), "resume")
        if hole is not None:
            self.commits.move_hole(queue, first)
            self._fill_up(fresh, first, hole)
        return fresh

    # From running to given

    def stop_starting(self, step: hand.StopStarting) -> None:
        """Start no more messages, and tell where the next owner starts."""
        held = self.get(step.queue)
        if held is None or held.dropped:
            return
        assert held.gate is not None
        if step.foreign:
            self.commits.to_foreign(step.queue)
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
        if self._handled.waits:  # nothing is in flight that could still move it
            self.commits.finish(held.queue, limit)
        held.capacity_freed()
        self._report(events.StartingStopped(held.queue, limit))

    def drain(self, step: hand.Drain) -> None:
        """Wait for what was started, and store the last offset."""
        held = self.get(step.queue)
        if held is not None and not held.dropped:
            self._spawn(held, self._drain(held), "drain")

    async def _drain(self, held: Q) -> None:
        await held.until_settled()
        stored: bool | None = None
        while stored is None:
            while held.state is HoldState.FENCED:
                await self._resumed.setdefault(held, asyncio.Event()).wait()
            if held.dropped:
                return
            # None if a fence came while it waited for the commit before.
            stored = await self.commits.settle(held, self._limits[held])
        if not held.dropped:
            self._report(events.Drained(held.queue, stored))

    def drop(self, queue: MessageQueue) -> None:
        """End a stay; late results are ignored."""
        held = self.get(queue)
        if held is None:
            return
        self._forget(held)
        self._holdings.perform((do.DropQueue(queue), do.RemoveQueue(queue)))
        self.commits.close(queue)

    def _forget(self, held: Q) -> None:
        for task in self._tasks.pop(held, ()):
            task.cancel()
        self._limits.pop(held, None)
        self._resuming.pop(held, None)
        self._resumed.pop(held, None)
        self._holes.pop(held, None)
        self._covered.pop(held, None)

    # In doubt

    def fence(self, queue: MessageQueue) -> None:
        """Start and commit nothing."""
        held = self.get(queue)
        if held is not None and not held.dropped:
            if (resuming := self._resuming.pop(held, None)) is not None:
                resuming.cancel()
            held.enter(HoldState.FENCED)
            self.commits.halt(queue)

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
