"""The queues of a member: taken and released as the instructions of a rebalance say.

The one place where a queue comes to a member and leaves it, for push and pull consumers alike.
`balance.consumer` decides what to do; rebalancing, pulling and resets decide when. Belongs to one
event loop.

A queue's way: `AddQueue` (in the table, owned) -> loop begun -> `DropQueue` (in the table, dropped)
-> offset stored, lock given back -> `RemoveQueue` (out of the table). Between drop and remove an
orderly queue may stay for long, and counts as owned for no decision but its own release. A further
state on that way belongs in `HoldState`; this class moves queues from one to the next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.balance.consumer.round import OffsetAnswered, OffsetRead, RebalanceRound, RoundEvent
from pocketmq.client.group.held_queue import HeldQueue, HoldState, log_name
from pocketmq.client.group.offsets import answer_to
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.group.queue_loop import QueueLoop
from pocketmq.model import MessageQueue

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)


class RestartGated(Protocol[Q]):
    """Restarts a queue that may be on its way to another member."""

    def __call__(self, held: Q, offset: int, *, skips: bool) -> Q | None:
        """Return the fresh stay; None if the queue is given away."""


class Holdings(Generic[Q]):
    """Carries out instructions about queues; subclasses add those that only their kind has."""

    def __init__(
        self, parts: MemberParts[Q], loop: QueueLoop[Q, Any], make: Callable[..., Q]
    ) -> None:
        self._parts = parts
        self._queues = parts.queues
        self._loop = loop
        self._make = make
        self.rebalance_in: Callable[[float], None] = lambda _: None
        """Set by `Rebalancing`; called to rebalance again in some seconds."""
        self.restart_gated: RestartGated[Q] | None = None
        """Set by `HandoverQueues`: restarts a queue of STICKY; see there."""
        self._at_once: dict[type[do.Instruction], Callable[[Any], None]] = {
            do.AddQueue: self._add,
            do.DropQueue: self._drop,
            do.RemoveQueue: self._remove,
            do.SkipQueue: self._skip,
            do.PersistOffset: lambda step: parts.offsets.persist(step.queue),
            do.ForgetOffset: lambda step: parts.offsets.table.forget(step.queue),
            do.RebalanceAgain: lambda step: self.rebalance_in(step.after),
            do.NotifyListener: lambda _: None,  # listeners are called after the round
        }
        self._in_time: dict[type[do.Instruction], Callable[[Any], Awaitable[RoundEvent]]] = {
            do.ReadOffset: self._read_offset,
            do.AskMaxOffset: self._ask_offset,
            do.SearchOffset: self._ask_offset,
        }

    def owned(self) -> tuple[OwnedQueue, ...]:
        """Return what rebalance decisions need, of all queues taken in a rebalance."""
        return tuple(held.owned() for held in self._queues if held.state is not HoldState.READ)

    async def carry_out(self, round_: RebalanceRound) -> None:
        """Carry out one rebalance of one topic.

        Steps that wait for brokers or handlers run side by side; all others keep their order, which
        is what makes a hand-over safe: dropped before persisted, persisted before unlocked.
        """
        todo = round_.begin()
        while todo:
            waiting = [step for step in todo if type(step) in self._in_time]
            self.perform(step for step in todo if type(step) not in self._in_time)
            events = await asyncio.gather(*(self._in_time[type(step)](step) for step in waiting))
            todo = [step for event in events for step in round_.handle(event)]

    def perform(self, steps: Iterable[do.Instruction]) -> None:
        """Carry out steps that take no time, in order; raises `KeyError` for others."""
        for step in steps:
            self._at_once[type(step)](step)

    def drop(self, held: Q) -> None:
        """End a stay: no more requests, and what its handlers still return is ignored."""
        held.enter(HoldState.DROPPED)  # first: handler threads begin no more calls from now on
        self._loop.end(held)

    def end_loop(self, held: Q) -> None:
        """Ask for no more messages of a queue; an answer in flight is ignored."""
        self._loop.end(held)

    def replace(self, held: Q) -> Q:
        """End a stay, discard what is cached, and return a fresh one that has not begun."""
        self.perform((do.RemoveQueue(held.queue), do.AddQueue(held.queue)))
        return self._queues.pulled[held.queue]

    def drop_all(self) -> None:
        """Drop every queue and remove it."""
        for held in self._queues:
            self.perform(
                (do.DropQueue(held.queue, held.mode), do.RemoveQueue(held.queue, held.mode))
            )

    def new(self, step: do.AddQueue) -> Q:
        """Make a queue that is not in the table yet."""
        now, topic = asyncio.get_running_loop().time(), step.queue.topic
        return self._make(step.queue, self._parts.subscriptions.shown(topic), 0, now, step.mode)

    # Steps that take no time

    def _add(self, step: do.AddQueue) -> None:
        self._queues.of(step.mode)[step.queue] = self.new(step)

    def _drop(self, step: do.DropQueue) -> None:
        held = self._queues.of(step.mode).get(step.queue)
        if held is not None and not held.dropped:
            self.drop(held)

    def _remove(self, step: do.RemoveQueue) -> None:
        self._drop(do.DropQueue(step.queue, step.mode))
        held = self._queues.of(step.mode).pop(step.queue, None)
        if held is not None:
            held.process.clear()

    def _skip(self, step: do.SkipQueue) -> None:
        logger.info(
            "queue not taken in this rebalance: group=%s %s reason=%s",
            self._parts.group, log_name(step.queue), step.reason.value,
        )  # fmt: skip

    # Steps that wait for a broker

    async def _read_offset(self, step: do.ReadOffset) -> OffsetRead:
        return OffsetRead(step.queue, await self._parts.offsets.read(step.queue))

    async def _ask_offset(self, step: do.AskMaxOffset | do.SearchOffset) -> OffsetAnswered:
        return OffsetAnswered(step.queue, await answer_to(self._parts.session, step))


class Pauses:
    """Queues and topics that the application paused, owned now or taken later; wire names."""

    def __init__(self) -> None:
        self._everything = False
        self._topics: set[str] = set()
        self._queues: set[MessageQueue] = set()

    def __contains__(self, queue: MessageQueue) -> bool:
        return self._everything or queue.topic in self._topics or queue in self._queues

    def pause(self, what: str | Iterable[MessageQueue] | None) -> None:
        """Pause a topic, some queues, or everything."""
        if what is None:
            self._everything = True
        elif isinstance(what, str):
            self._topics.add(what)
        else:
            self._queues.update(what)

    def resume(self, what: str | Iterable[MessageQueue] | None) -> None:
        """Resume a topic with all its queues, some queues, or everything.

        A queue stays paused while its topic is, or everything.
        """
        if what is None:
            self._everything = False
            self._topics.clear()
            self._queues.clear()
        elif isinstance(what, str):
            self._topics.discard(what)
            self._queues = {queue for queue in self._queues if queue.topic != what}
        else:
            self._queues.difference_update(what)
