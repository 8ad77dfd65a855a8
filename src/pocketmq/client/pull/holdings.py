"""The queues that are a pull consumer's share: taken and given up as the instructions say.

What to do is decided in `balance.consumer`. Unlike a push consumer there are no locks and no
handlers to wait for: a queue that is lost is dropped at once. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.rebalance import OwnedQueue
from pocketmq.balance.consumer.round import OffsetAnswered, OffsetRead, RebalanceRound, RoundEvent
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.start_offsets import answer_to
from pocketmq.client.pull.parts import PullParts
from pocketmq.client.pull.pulling import Pulling
from pocketmq.model.queue import MessageQueue

logger = logging.getLogger("pocketmq.client")


class PullHoldings:
    """Carries out instructions about queues."""

    def __init__(self, parts: PullParts, pulling: Pulling) -> None:
        self._parts = parts
        self._pulling = pulling
        self.rebalance_in: Callable[[float], None] = lambda _: None
        self._at_once: dict[type[do.Instruction], Callable[[Any], None]] = {
            do.DropQueue: self._drop,
            do.AddQueue: lambda step: self._hold(step.queue),
            do.RemoveQueue: self._remove,
            do.SkipQueue: self._skip,
            do.PersistOffset: lambda step: parts.offsets.persist(step.queue),
            do.ForgetOffset: lambda step: parts.offsets.table.forget(step.queue),
            do.RebalanceAgain: lambda step: self.rebalance_in(step.after),
            do.AssignQueues: lambda step: self.assign(step.queues, step.topic),
            do.NotifyListener: lambda _: None,
        }
        self._in_time: dict[type[do.Instruction], Callable[[Any], Awaitable[RoundEvent]]] = {
            do.ReadOffset: self._read_offset,
            do.AskMaxOffset: self._ask_offset,
            do.SearchOffset: self._ask_offset,
        }

    def owned(self) -> tuple[OwnedQueue, ...]:
        """Give what decisions look at, of all queues."""
        return tuple(held.owned() for held in self._parts.held.values())

    async def carry_out(self, round_: RebalanceRound) -> None:
        """Carry out one rebalance of one topic; questions to brokers go on side by side."""
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

    def assign(self, queues: Iterable[MessageQueue], topic: str | None = None) -> None:
        """Let the assignment (of one topic, if given) be exactly these, and pull the new ones."""
        parts = self._parts
        if topic is not None and parts.subscriptions.get(topic) is None:
            return  # left while the round was under way
        for assigned in parts.assignment.update(tuple(queues), self._holding, topic):
            assigned.change(paused=assigned.queue in parts.pauses)
            self._pulling.begin(assigned)

    def _holding(self, queue: MessageQueue) -> HeldQueue:
        """Give the holding of a queue; one that is assigned by hand has none in the table."""
        held = self._parts.held.get(queue)
        return self._new(queue) if held is None else held

    def _hold(self, queue: MessageQueue) -> None:
        self._parts.held[queue] = self._new(queue)

    def _new(self, queue: MessageQueue) -> HeldQueue:
        now = asyncio.get_running_loop().time()
        return HeldQueue(queue, self._parts.subscriptions.shown(queue.topic), 0, now)

    def _drop(self, step: do.DropQueue) -> None:
        held = self._parts.held.get(step.queue)
        assigned = self._parts.assignment.get(step.queue)
        if assigned is not None and assigned.held is held:
            self._parts.note_done(assigned)
        if held is not None:
            held.process.dropped = True
            if held.pulling is not None:
                held.pulling.cancel()

    def _remove(self, step: do.RemoveQueue) -> None:
        self._parts.held.pop(step.queue, None)

    def _skip(self, step: do.SkipQueue) -> None:
        logger.info("group %s does not take %s now: %s",
            self._parts.group, step.queue, step.reason.value)  # fmt: skip

    async def _read_offset(self, step: do.ReadOffset) -> OffsetRead:
        return OffsetRead(step.queue, await self._parts.offsets.read(step.queue))

    async def _ask_offset(self, step: do.AskMaxOffset | do.SearchOffset) -> OffsetAnswered:
        return OffsetAnswered(step.queue, await answer_to(self._parts.session, step))
