"""Resetting offsets while consuming: what a push consumer does when a broker tells it to (220).

The consumer stops, waits so that handlers come to rest and nobody commits behind its back, then
commits the new offsets and gives the queues up; its next rebalance takes them anew.
"""

from collections.abc import Iterable, Mapping

from pocketmq.balance.consumer.instructions import (
    ClearQueue,
    DropQueue,
    Instruction,
    ReleaseQueue,
    RemoveQueue,
    UpdateOffset,
)
from pocketmq.model.queue import MessageQueue

SETTLE_TIME = 10.0


class PauseConsumer(Instruction, frozen=True):
    """Stop pulling and rebalancing."""


class ResumeConsumer(Instruction, frozen=True):
    """Pull and rebalance again, beginning with a rebalance now."""


def begin_reset(
    topic: str, offsets: Mapping[MessageQueue, int], held: Iterable[MessageQueue]
) -> tuple[Instruction, ...]:
    """Give what to do before the wait of `SETTLE_TIME`."""
    steps: list[Instruction] = [PauseConsumer()]
    for queue in _touched(topic, offsets, held):
        steps += (DropQueue(queue), ClearQueue(queue))
    return tuple(steps)


def finish_reset(
    topic: str, offsets: Mapping[MessageQueue, int], held: Iterable[MessageQueue]
) -> tuple[Instruction, ...]:
    """Give what to do after the wait, with the queues held by then.

    The queue leaves the table even if its release has to wait for a handler.
    """
    steps: list[Instruction] = []
    for queue in _touched(topic, offsets, held):
        note = UpdateOffset(queue, offsets[queue], increase_only=False)
        steps += (note, ReleaseQueue(queue), RemoveQueue(queue))
    return (*steps, ResumeConsumer())


def _touched(
    topic: str, offsets: Mapping[MessageQueue, int], held: Iterable[MessageQueue]
) -> list[MessageQueue]:
    return [queue for queue in held if queue.topic == topic and queue in offsets]
