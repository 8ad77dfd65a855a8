"""The queues of a push consumer: what it adds to `Holdings` (locks, handlers, pops), and resets.

Belongs to one event loop. Taking, releasing and resetting happen there one step at a time; the only
overlap is with handler calls in flight, in threads or on the loop. They are never waited for by a
concurrent consumer. An orderly one gives its lock back only when the last call has ended, or two
members could handle one queue at the same time.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.offsets import (
    SETTLE_TIME,
    PauseConsumer,
    ResumeConsumer,
    begin_reset,
    finish_reset,
)
from pocketmq.balance.consumer.pulling import offset_correction
from pocketmq.balance.consumer.release import ReleaseFacts, begin_release, finish_release
from pocketmq.balance.consumer.round import LockAnswered, QueueIdled
from pocketmq.client.group.held_queue import HeldQueue, log_name
from pocketmq.client.group.holdings import Holdings, Pauses
from pocketmq.client.push.locks import BrokerLocks
from pocketmq.client.push.popping import PopLoop
from pocketmq.client.push.pulling import PushPullLoop
from pocketmq.client.push.work import PushParts
from pocketmq.model import ConsumeType, MessageQueue

logger = logging.getLogger("pocketmq.client")

RESTART_PATIENCE = 3.0
"""Seconds for which a restart waits for a handler call on an orderly queue."""


class PushHoldings(Holdings[HeldQueue]):
    """Carries out instructions about the queues of a push consumer."""

    def __init__(self, parts: PushParts, locks: BrokerLocks, pulling: PushPullLoop) -> None:
        super().__init__(parts, pulling, HeldQueue)
        self._parts: PushParts = parts
        self._locks = locks
        self.pauses = Pauses()
        self._left: dict[MessageQueue, HeldQueue] = {}  # dropped with handler calls in flight
        self._popping = PopLoop(parts)
        pulling.correct = self._correct_soon
        self._at_once |= {
            do.ClearQueue: self._clear,
            do.MarkLocked: self._mark_locked,
            do.MarkUnlocked: self._mark_unlocked,
            do.UnlockQueue: lambda step: locks.unlock_later(step.queue, step.after),
            do.CountUnlockTry: self._count_unlock_try,
            do.UpdateOffset: self._update_offset,
            do.FreezeOffset: lambda step: parts.offsets.table.freeze(step.queue, step.offset),
            do.StartPulling: self._start_pulling,
            do.StartPopping: self._start_popping,
            do.BumpSubscription: self._bump,
            do.SetQueueLimits: self._set_limits,
            do.SendHeartbeats: lambda _: parts.session.heartbeats.beat_soon(in_full=True),
            do.SubscribePopRetry: self._subscribe_pop_retry,
            do.UnsubscribePopRetry: lambda step: parts.subscriptions.remove_own(step.topic),
        }
        self._in_time |= {do.AwaitIdle: self._await_idle, do.LockQueue: self._lock}

    # Releasing, beside a rebalance

    async def release(self, queue: MessageQueue) -> bool:
        """Release a dropped queue (Java: removeUnnecessaryMessageQueue); False if it is busy."""
        held = self._queues.pulled.get(queue)
        if held is None:
            return True
        return await self._release_held(held)

    async def _release_held(self, held: HeldQueue) -> bool:
        """Do the same for a queue that may have left the table already."""
        profile, facts = self._parts.profile, self._release_facts(held)
        step = begin_release(profile, facts)
        while step.released is None:
            wait = next(each for each in step.instructions if isinstance(each, do.AwaitIdle))
            self.perform(each for each in step.instructions if each is not wait)
            idle = await held.until_idle(wait.timeout)
            step = finish_release(profile, facts, idle=idle)
        self.perform(step.instructions)
        return step.released

    def _release_facts(self, held: HeldQueue) -> ReleaseFacts:
        options, process = self._parts.options, held.process
        return ReleaseFacts(
            queue=held.queue,
            model=options.model,
            orderly=options.orderly,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            dropped=process.dropped,
            cached=len(process) > 0,
            last_lock=process.last_lock,
            now=asyncio.get_running_loop().time(),
        )

    def _correct_soon(self, held: HeldQueue, offset: int, after: float) -> None:
        """Set a queue right that was pulled outside what its broker holds."""
        logger.warning(
            "offset out of range: %s offset=%s; resuming from the broker's offset %s",
            log_name(held.queue), held.next_offset, offset,
        )  # fmt: skip
        if held.gate is not None:  # STICKY: it stays this member's
            self._parts.tasks.spawn(
                self.restart(held, offset, RESTART_PATIENCE, skips=False), f"correct {held.queue}"
            )
            return
        self.drop(held)
        self._parts.tasks.spawn(self._correct(held, offset, after), f"correct {held.queue}")

    async def _correct(self, held: HeldQueue, offset: int, after: float) -> None:
        await asyncio.sleep(after)  # as Java: handlers in flight may still note offsets
        if self._queues.pulled.get(held.queue) is not held:
            return
        for step in offset_correction(self._parts.profile, held.queue, offset):
            if isinstance(step, do.ReleaseQueue):
                await self._release_held(held)
            else:
                self.perform((step,))

    async def restart(
        self, held: HeldQueue, offset: int, patience: float, *, skips: bool = True
    ) -> bool:
        """Restart a queue at an offset, keeping it and its lock; False if it was lost meanwhile.

        Cached messages are discarded. If messages are handled in order, a handler call in flight is
        waited for, at most `patience` seconds: the new stay must not overtake it. A queue that is
        being given away is left alone. With `skips`, what is passed over is not wanted any more.
        """
        parts, queue = self._parts, held.queue
        if held.gate is not None:
            assert self.restart_gated is not None
            # The fresh stay is there at once, and waits for the call itself (`HeldQueue.before`).
            restarted = self.restart_gated(held, offset, skips=skips) is not None
            if restarted and parts.options.orderly:
                await held.until_idle(patience)
            return restarted
        if not held.mine:
            return False
        locked, last_lock = held.process.locked, held.process.last_lock
        self.perform((do.DropQueue(queue), do.ClearQueue(queue)))
        if parts.options.orderly:
            await held.until_idle(patience)
        if self._queues.pulled.get(queue) is not held:
            return False
        parts.offsets.table.forget(queue)
        parts.offsets.table.update(queue, offset, increase_only=False)
        self.perform((do.RemoveQueue(queue), do.AddQueue(queue)))
        fresh = self._queues.pulled[queue]
        fresh.process.locked, fresh.process.last_lock = locked, last_lock
        fresh.start_checked = True
        self.perform((do.StartPulling(queue, offset, 0.0),))
        return True

    def drop(self, held: HeldQueue) -> None:
        """End a stay, and remember it if a handler call is in flight."""
        if held.dropped:
            return
        super().drop(held)
        self._parts.work.dropped(held)
        # The same queue may come back before the call ends. Its next stay then waits for this one
        # (`HeldQueue.before`), or an orderly handler would see a later message first.
        at_work = held if held.at_work else held.before
        self._left = {queue: each for queue, each in self._left.items() if each.at_work}
        if at_work is not None and at_work.at_work:
            self._left[held.queue] = at_work

    def new(self, step: do.AddQueue) -> HeldQueue:
        """Make a queue; locked queues are added only after the broker granted the lock."""
        held = super().new(step)
        held.process.lock_granted(asyncio.get_running_loop().time())
        held.paused = step.queue in self.pauses
        held.before = self._left.pop(step.queue, None)
        return held

    # Steps that take time

    async def _await_idle(self, step: do.AwaitIdle) -> QueueIdled:
        held = self._queues.pulled.get(step.queue)
        return QueueIdled(step.queue, held is None or await held.until_idle(step.timeout))

    async def _lock(self, step: do.LockQueue) -> LockAnswered:
        return LockAnswered(step.queue, await self._locks.lock_one(step.queue))

    # Steps that take none

    def _add(self, step: do.AddQueue) -> None:
        super()._add(step)
        self._parts.work.taken(self._queues.of(step.mode)[step.queue])

    def _clear(self, step: do.ClearQueue) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None:
            held.process.clear()

    def _mark_locked(self, step: do.MarkLocked) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None:
            held.process.lock_granted(asyncio.get_running_loop().time())

    def _mark_unlocked(self, step: do.MarkUnlocked) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None:
            held.process.locked = False

    def _count_unlock_try(self, step: do.CountUnlockTry) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None:
            held.process.unlock_tries += 1

    def _update_offset(self, step: do.UpdateOffset) -> None:
        table = self._parts.offsets.table
        table.update(step.queue, step.offset, increase_only=step.increase_only)

    def _start_pulling(self, step: do.StartPulling) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None:
            held.next_offset, held.delayed = step.offset, step.after > 0
            self._loop.begin(held, step.after)

    def _start_popping(self, step: do.StartPopping) -> None:
        held = self._queues.popped.get(step.queue)
        if held is not None:
            self._popping.open(held, from_first=step.from_first, after=step.after)

    def _bump(self, step: do.BumpSubscription) -> None:
        # Decisions run on the loop's clock; versions are wall time, as brokers compare them.
        self._parts.subscriptions.bump(step.topic, self._parts.session.clock.now_ms())

    def _set_limits(self, step: do.SetQueueLimits) -> None:
        self._parts.limits = self._parts.options.limits.in_force(step)

    def _subscribe_pop_retry(self, step: do.SubscribePopRetry) -> None:
        subscriptions = self._parts.subscriptions
        if subscriptions.get(step.topic) is None:
            subscriptions.add_own(step.topic, self._parts.session.clock.now_ms())


class OffsetResets:
    """Offset resets that a broker requests, one after another (`balance.consumer.offsets`)."""

    def __init__(
        self,
        parts: PushParts,
        holdings: PushHoldings,
        suspend: Callable[[], None],
        resume: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._holdings = holdings
        self._suspend = suspend
        self._resume = resume
        self._turn = asyncio.Lock()

    async def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continue from these offsets; takes `SETTLE_TIME`, in which nothing is pulled."""
        async with self._turn:  # two at once would resume pulls in the midst of each other
            queues = self._parts.queues.pulled
            try:
                await self._carry_out(begin_reset(topic, offsets, tuple(queues)))
                await asyncio.sleep(SETTLE_TIME)
                if not self._parts.running:
                    return
                await self._carry_out(finish_reset(topic, offsets, tuple(queues)))
            finally:
                if self._parts.suspended:
                    self._resume()

    async def _carry_out(self, steps: tuple[do.Instruction, ...]) -> None:
        for step in steps:
            if isinstance(step, PauseConsumer):
                self._suspend()
            elif isinstance(step, ResumeConsumer):
                self._resume()
            elif isinstance(step, do.ReleaseQueue):
                await self._holdings.release(step.queue)
            else:
                self._holdings.perform((step,))
