"""The queues a consumer holds: taken, dropped, released, as the instructions say.

The one place where a queue comes to this member and leaves it. What to do is decided in
`balance.consumer`; who asked, and when, is the business of rebalancing, pulling and resetting.
Belongs to one event loop.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.rebalance import OwnedQueue
from pocketmq.balance.consumer.release import (
    ReleaseFacts,
    begin_release,
    finish_release,
)
from pocketmq.balance.consumer.round import (
    LockAnswered,
    OffsetAnswered,
    OffsetRead,
    QueueIdled,
    RebalanceRound,
    RoundEvent,
)
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.parts import Parts
from pocketmq.client.group.pauses import Pauses
from pocketmq.client.group.start_offsets import answer_to
from pocketmq.client.push.locks import QueueLocks
from pocketmq.client.push.popping import Popping
from pocketmq.client.push.pulling import Puller
from pocketmq.model.kinds import ConsumeType, MessageRequestMode
from pocketmq.model.queue import MessageQueue

logger = logging.getLogger("pocketmq.client")

PULL = MessageRequestMode.PULL


class Holdings:
    """Carries out instructions about queues."""

    def __init__(self, parts: Parts, locks: QueueLocks, puller: Puller) -> None:
        self._parts = parts
        self._locks = locks
        self._puller = puller
        self.pauses = Pauses()
        self.rebalance_in: Callable[[float], None] = lambda _: None
        self._left: dict[MessageQueue, HeldQueue] = {}  # dropped in the midst of a handler's work
        self._popping = Popping(parts)
        self._at_once: dict[type[do.Instruction], Callable[[Any], None]] = {
            do.DropQueue: self._drop,
            do.AddQueue: self._add,
            do.RemoveQueue: self._remove,
            do.ClearQueue: self._clear,
            do.SkipQueue: self._skip,
            do.MarkLocked: self._mark_locked,
            do.MarkUnlocked: self._mark_unlocked,
            do.UnlockQueue: lambda step: locks.unlock_later(step.queue, step.after),
            do.CountUnlockTry: self._count_unlock_try,
            do.UpdateOffset: self._update_offset,
            do.FreezeOffset: lambda step: parts.offsets.table.freeze(step.queue, step.offset),
            do.PersistOffset: lambda step: parts.offsets.persist(step.queue),
            do.ForgetOffset: lambda step: parts.offsets.table.forget(step.queue),
            do.StartPulling: self._start_pulling,
            do.StartPopping: self._start_popping,
            do.RebalanceAgain: lambda step: self.rebalance_in(step.after),
            do.BumpSubscription: self._bump,
            do.SetQueueLimits: self._set_limits,
            do.SendHeartbeats: lambda _: parts.session.heartbeats.beat_soon(in_full=True),
            do.NotifyListener: lambda _: None,  # listeners are told of what came and went
            do.SubscribePopRetry: self._subscribe_pop_retry,
            do.UnsubscribePopRetry: lambda step: parts.subscriptions.remove_own(step.topic),
        }
        self._in_time: dict[type[do.Instruction], Callable[[Any], Awaitable[RoundEvent]]] = {
            do.AwaitIdle: self._await_idle,
            do.LockQueue: self._lock,
            do.ReadOffset: self._read_offset,
            do.AskMaxOffset: self._ask_offset,
            do.SearchOffset: self._ask_offset,
        }

    def owned(self) -> tuple[OwnedQueue, ...]:
        """Give what decisions look at, of all queues."""
        parts = self._parts
        return tuple(held.owned() for held in (*parts.held.values(), *parts.popped.values()))

    # Taking and releasing

    async def carry_out(self, round_: RebalanceRound) -> None:
        """Carry out one rebalance of one topic.

        What waits for brokers or handlers goes on side by side; the rest keeps its order.
        """
        todo = round_.begin()
        while todo:
            waiting = [step for step in todo if type(step) in self._in_time]
            self.perform(step for step in todo if type(step) not in self._in_time)
            events = await asyncio.gather(*(self._in_time[type(step)](step) for step in waiting))
            todo = [step for event in events for step in round_.handle(event)]

    def perform(self, steps: Iterable[do.Instruction]) -> None:
        """Carry out what takes no time, in order; raises `KeyError` for what does."""
        for step in steps:
            self._at_once[type(step)](step)

    async def release(self, queue: MessageQueue) -> bool:
        """Let go of a dropped queue (Java: removeUnnecessaryMessageQueue); False if it is busy."""
        held = self._parts.held.get(queue)
        if held is None:
            return True
        return await self.release_held(held)

    async def release_held(self, held: HeldQueue) -> bool:
        """Do the same for a holding that may have left the table already."""
        profile, facts = self._parts.profile, self._release_facts(held)
        step = begin_release(profile, facts)
        while step.released is None:
            wait = next(each for each in step.instructions if isinstance(each, do.AwaitIdle))
            self.perform(each for each in step.instructions if each is not wait)
            idle = await held.until_idle(wait.timeout)
            step = finish_release(profile, facts, idle=idle)
        self.perform(step.instructions)
        return step.released

    async def correct(self, held: HeldQueue, steps: Iterable[do.Instruction]) -> None:
        """Carry out steps about one queue, its release among them, in order."""
        todo = deque(steps)
        while todo:
            step = todo.popleft()
            if isinstance(step, do.ReleaseQueue):
                await self.release_held(held)
            else:
                self.perform((step,))

    async def restart(self, held: HeldQueue, offset: int, patience: float) -> bool:
        """Begin a queue anew at an offset, keeping it and its lock; False if it was lost meanwhile.

        Messages in the cache are thrown away. A handler that works on the queue is waited for, but
        not longer than `patience`, if messages are handled in order.
        """
        parts, queue = self._parts, held.queue
        locked, last_lock = held.process.locked, held.process.last_lock
        self.perform((do.DropQueue(queue), do.ClearQueue(queue)))
        if parts.options.orderly:
            await held.until_idle(patience)
        if parts.held.get(queue) is not held:
            return False
        parts.offsets.table.forget(queue)
        parts.offsets.table.update(queue, offset, increase_only=False)
        self.perform((do.RemoveQueue(queue), do.AddQueue(queue)))
        fresh = parts.held[queue]
        fresh.process.locked, fresh.process.last_lock = locked, last_lock
        fresh.start_checked = True
        self.perform((do.StartPulling(queue, offset, 0.0),))
        return True

    def drop(self, held: HeldQueue) -> None:
        """End a holding: no more pulls, and what its handlers still return is ignored."""
        if not held.process.dropped:
            held.process.dropped = True
            self._puller.end(held)
            self._parts.work.dropped(held)
            at_work = held if held.at_work else held.before
            self._left = {queue: each for queue, each in self._left.items() if each.at_work}
            if at_work is not None and at_work.at_work:
                self._left[held.queue] = at_work

    def drop_all(self) -> None:
        """Mark every queue dropped and forget it."""
        parts = self._parts
        for held in (*parts.held.values(), *parts.popped.values()):
            self.perform(
                (do.DropQueue(held.queue, held.mode), do.RemoveQueue(held.queue, held.mode))
            )

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

    # Instructions that take time

    async def _await_idle(self, step: do.AwaitIdle) -> QueueIdled:
        held = self._parts.held.get(step.queue)
        return QueueIdled(step.queue, held is None or await held.until_idle(step.timeout))

    async def _lock(self, step: do.LockQueue) -> LockAnswered:
        return LockAnswered(step.queue, await self._locks.lock_one(step.queue))

    async def _read_offset(self, step: do.ReadOffset) -> OffsetRead:
        return OffsetRead(step.queue, await self._parts.offsets.read(step.queue))

    async def _ask_offset(self, step: do.AskMaxOffset | do.SearchOffset) -> OffsetAnswered:
        return OffsetAnswered(step.queue, await answer_to(self._parts.session, step))

    # Instructions that take none

    def _table(self, mode: MessageRequestMode) -> dict[MessageQueue, HeldQueue]:
        return self._parts.held if mode is PULL else self._parts.popped

    def _drop(self, step: do.DropQueue) -> None:
        held = self._table(step.mode).get(step.queue)
        if held is not None:
            self.drop(held)

    def _add(self, step: do.AddQueue) -> None:
        parts, queue = self._parts, step.queue
        now = asyncio.get_running_loop().time()
        held = HeldQueue(queue, parts.subscriptions.shown(queue.topic), 0, now, step.mode)
        held.process.lock_granted(now)
        held.paused = queue in self.pauses
        held.before = self._left.pop(queue, None)
        self._table(step.mode)[queue] = held
        parts.work.taken(held)

    def _remove(self, step: do.RemoveQueue) -> None:
        self._drop(do.DropQueue(step.queue, step.mode))
        held = self._table(step.mode).pop(step.queue, None)
        if held is not None:
            held.process.clear()

    def _clear(self, step: do.ClearQueue) -> None:
        held = self._parts.held.get(step.queue)
        if held is not None:
            held.process.clear()

    def _skip(self, step: do.SkipQueue) -> None:
        logger.info("group %s does not take %s now: %s",
            self._parts.group, step.queue, step.reason.value)  # fmt: skip

    def _mark_locked(self, step: do.MarkLocked) -> None:
        held = self._parts.held.get(step.queue)
        if held is not None:
            held.process.lock_granted(asyncio.get_running_loop().time())

    def _mark_unlocked(self, step: do.MarkUnlocked) -> None:
        held = self._parts.held.get(step.queue)
        if held is not None:
            held.process.locked = False

    def _count_unlock_try(self, step: do.CountUnlockTry) -> None:
        held = self._parts.held.get(step.queue)
        if held is not None:
            held.process.unlock_tries += 1

    def _update_offset(self, step: do.UpdateOffset) -> None:
        table = self._parts.offsets.table
        table.update(step.queue, step.offset, increase_only=step.increase_only)

    def _start_pulling(self, step: do.StartPulling) -> None:
        held = self._parts.held.get(step.queue)
        if held is not None:
            held.next_offset = step.offset
            self._puller.begin(held, step.after)

    def _start_popping(self, step: do.StartPopping) -> None:
        held = self._parts.popped.get(step.queue)
        if held is not None:
            self._popping.begin(held, from_first=step.from_first, after=step.after)

    def _bump(self, step: do.BumpSubscription) -> None:
        # Decisions run on the loop's clock; versions are wall time, as brokers compare them.
        self._parts.subscriptions.bump(step.topic, self._parts.session.clock.now_ms())

    def _set_limits(self, step: do.SetQueueLimits) -> None:
        self._parts.limits = self._parts.options.limits.in_force(step)

    def _subscribe_pop_retry(self, step: do.SubscribePopRetry) -> None:
        subscriptions = self._parts.subscriptions
        if subscriptions.get(step.topic) is None:
            subscriptions.add_own(step.topic, self._parts.session.clock.now_ms())
