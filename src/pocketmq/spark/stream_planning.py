"""The next micro-batch of a stream: its limits, and queues that are new or were recreated. Pure."""

from collections.abc import Mapping

import msgspec

from pocketmq.model import MessageQueue
from pocketmq.spark.offsets import FirstMessage, Offsets
from pocketmq.spark.planning import share

Firsts = Mapping[MessageQueue, FirstMessage]


class BatchLimit(msgspec.Struct, frozen=True):
    """The limits of one micro-batch; None is none."""

    rows: int | None = None
    size: int | None = None
    """Bytes of stored messages."""


def suspects(kept: Firsts, stored_ms: Offsets) -> list[MessageQueue]:
    """Return queues whose first message has another store time than the checkpoint has.

    Messages that expired, or a recreated queue: `recreated` tells by the offset as well.
    """
    return [
        queue
        for queue, ms in stored_ms.items()
        if queue not in kept or (ms >= 0 and ms != kept[queue].stored_ms)
    ]


def recreated(kept: Firsts, now: Firsts) -> list[MessageQueue]:
    """Return queues that hold the messages of another queue of the same name."""
    return [
        queue
        for queue, first in now.items()
        if queue in kept and kept[queue].is_of_another_queue_than(first)
    ]


def limited(
    waiting: Offsets, limit: BatchLimit, sizes: Mapping[MessageQueue, float], turn: int
) -> Offsets:
    """Return the number of messages to read of each queue within the limits.

    `sizes` has the average size of the messages of some queues; others count as these do on
    average. One message at least is read, whatever its size.
    """
    rows = sum(waiting.values()) if limit.rows is None else limit.rows
    if limit.size is not None and sizes:
        usual = sum(sizes.values()) / len(sizes)
        total = sum(count * sizes.get(queue, usual) for queue, count in waiting.items())
        if total > limit.size:
            rows = min(rows, max(1, int(sum(waiting.values()) * limit.size / total)))
    return share(waiting, rows, turn)


def turn_of(reached: Offsets, rows: int) -> int:
    """Return a number that grows with every micro-batch of `rows` messages."""
    return sum(reached.values()) // max(1, rows)
