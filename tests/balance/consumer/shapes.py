"""Small things the consumer tests are told with."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.facts import RebalanceFacts
from pocketmq.balance.consumer.process_queue import ProcessQueue
from pocketmq.balance.consumer.rebalance import RebalanceDecision, decide
from pocketmq.balance.consumer.round import (
    LockAnswered,
    OffsetAnswered,
    OffsetRead,
    QueueIdled,
    RebalanceRound,
    RoundEvent,
    RoundOutcome,
)
from pocketmq.model import MessageQueue


@dataclass(frozen=True)
class Msg:
    """A message as the decisions see it."""

    queue_offset: int
    body_size: int = 10
    reconsume_times: int = 0


def q(number: int, broker: str = "a", topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, broker, number)


def queues(count: int, broker: str = "a", topic: str = "T") -> tuple[MessageQueue, ...]:
    return tuple(q(number, broker, topic) for number in range(count))


class Shares:
    """A strategy that gives a fixed share."""

    def __init__(self, *share: MessageQueue) -> None:
        self.share = share

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str], /
    ) -> Sequence[MessageQueue] | None:
        return self.share


class RoundRobin:
    """A strategy that deals queues out in turn, as AVG_BY_CIRCLE does."""

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str], /
    ) -> Sequence[MessageQueue] | None:
        if member not in members:
            return ()
        return queues[list(members).index(member) :: len(members)]


class Fails:
    """A strategy that raises."""

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str], /
    ) -> Sequence[MessageQueue] | None:
        raise RuntimeError("no idea")


def filled(*offsets: int, size: int = 10) -> ProcessQueue[Msg]:
    process_queue: ProcessQueue[Msg] = ProcessQueue(0.0)
    process_queue.put([Msg(offset, size) for offset in offsets])
    return process_queue


Steps = list[instructions.Instruction]


@dataclass
class World:
    """What a round finds out there: quiet queues, locks, stored offsets, brokers' answers."""

    busy: frozenset[MessageQueue] = frozenset()
    denied: frozenset[MessageQueue] = frozenset()
    stored: int | dict[MessageQueue, int] = 100
    answer: int | None = 500

    def carry_out(self, step: instructions.Instruction) -> RoundEvent | None:
        match step:
            case instructions.AwaitIdle(queue=queue):
                return QueueIdled(queue, queue not in self.busy)
            case instructions.LockQueue(queue=queue):
                return LockAnswered(queue, queue not in self.denied)
            case instructions.ReadOffset(queue=queue):
                stored = self.stored
                return OffsetRead(queue, stored if isinstance(stored, int) else stored[queue])
            case instructions.AskMaxOffset(queue=queue) | instructions.SearchOffset(queue=queue):
                return OffsetAnswered(queue, self.answer)
            case _:
                return None


def drive(
    facts: RebalanceFacts, decision: RebalanceDecision | None = None, world: World | None = None
) -> tuple[Steps, RoundOutcome]:
    """Carry a round out one instruction after another; gives all of them and the outcome."""
    world = world or World()
    rebalance = RebalanceRound(facts, decision or decide(facts))
    todo = deque(rebalance.begin())
    done: Steps = []
    while todo:
        step = todo.popleft()
        done.append(step)
        event = world.carry_out(step)
        if event is not None:
            todo.extend(rebalance.handle(event))
    assert rebalance.outcome is not None
    return done, rebalance.outcome
