"""Planning: ranges of queues packed into tasks, and the limits of the next micro-batch.

Each Python task costs Spark about 20 ms, so many small queues go into one task; a long range is
split: numbers in, numbers out. Where a range starts and ends is decided in `cluster_view`, for a
micro-batch in `stream_reader` (`latestOffset`).

Messages that are gone end the query, or are skipped and logged (`failOnDataLoss`). It is
noticed in three places: an offset that an option names and its queue does not hold
(`cluster_view`), messages of a range that are gone or damaged when a task reads them
(`reading`), and queues or offsets of a checkpoint that are gone when a stream plans its next
batch (`stream_reader`).
"""

import logging
from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.errors import DataLost
from pocketmq.model import MessageQueue
from pocketmq.spark.offsets import FirstMessage, Offsets

logger = logging.getLogger("pocketmq.spark")

Firsts = Mapping[MessageQueue, FirstMessage]

PER_TASK = 100_000
"""Messages per task, unless options ask for more tasks."""


class Range(msgspec.Struct, frozen=True):
    """Offsets of a queue from `start` up to, and without, `end`."""

    queue: MessageQueue
    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.end - self.start


def pack(
    ranges: Sequence[Range], *, at_least: int = 1, per_task: int = PER_TASK
) -> list[tuple[Range, ...]]:
    """Return tasks of about equal size, as few as `per_task` allows.

    The ranges are laid end to end and cut at equal distances, so a task has whole queues and at
    most two partial ones. No task is empty, so there may be fewer than `at_least`.
    """
    total = sum(each.size for each in ranges)
    if total <= 0:
        return []
    count = min(total, max(at_least, -(-total // per_task)))
    tasks: list[tuple[Range, ...]] = []
    current: list[Range] = []
    done = 0
    for each in ranges:
        start = each.start
        while start < each.end:
            cut = (len(tasks) + 1) * total // count
            end = min(each.end, start + cut - done)
            current.append(Range(each.queue, start, end))
            done += end - start
            start = end
            if done == cut:
                tasks.append(tuple(current))
                current = []
    return tasks


def share(
    backlog: Mapping[MessageQueue, int], limit: int, turn: int = 0
) -> dict[MessageQueue, int]:
    """Divide `limit` messages among queues in proportion to their backlog, exactly.

    The remainder goes to the queues that lost most by rounding. Each queue that has something gets
    at least one message, at the cost of the largest shares: beside a hot queue a cold one would
    otherwise wait until the hot one is read. If there are more queues than messages they take
    turns; `turn` is a number that grows with every division.
    """
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {queue: size * limit // total for queue, size in backlog.items()}
    left = limit - sum(shares.values())
    by_loss = sorted(backlog, key=lambda queue: -(backlog[queue] * limit % total))
    for queue in by_loss[:left]:
        shares[queue] += 1
    waiting = [queue for queue, size in backlog.items() if size]
    if len(waiting) > limit:
        first = turn * limit % len(waiting)
        chosen = {waiting[(first + n) % len(waiting)] for n in range(limit)}
        return {queue: int(queue in chosen) for queue in backlog}
    starved = [queue for queue in waiting if not shares[queue]]
    while starved:
        largest = max(shares, key=lambda queue: shares[queue])
        given = min(len(starved), max(1, shares[largest] // 2))
        shares[largest] -= given
        for queue in starved[:given]:
            shares[queue] = 1
        starved = starved[given:]
    return shares


class BatchLimit(msgspec.Struct, frozen=True):
    """The limits of one micro-batch; None is none."""

    rows: int | None = None
    size: int | None = None
    """Bytes of stored messages."""


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


def data_lost(queue: MessageQueue, span: tuple[int, int], why: str) -> DataLost:
    """Return the error for offsets `span[0]` to `span[1]` of a queue, the second not included."""
    return DataLost(queue.topic, queue.broker_name, queue.queue_id, span, why)


def fail_or_warn(lost: DataLost, *, fail: bool) -> None:
    """Raise the loss if the query is to fail on it; else log it, and the caller skips the span."""
    if fail:
        raise lost
    logger.warning("%s", lost)
