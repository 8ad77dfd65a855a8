"""What a task reads: queues and ranges packed into tasks, a limit shared out in proportion.

Each Python task costs Spark about 20 ms, so many small queues go into one; a long range is cut.
Pure: numbers in, numbers out.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.model.queue import MessageQueue

PER_TASK = 100_000
"""Messages of one task unless more tasks are asked for."""


class Range(msgspec.Struct, frozen=True):
    """Offsets of a queue from `start` up to, and without, `end`."""

    queue: MessageQueue
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets these are."""
        return self.end - self.start


def pack(
    ranges: Sequence[Range], *, at_least: int = 1, per_task: int = PER_TASK
) -> list[tuple[Range, ...]]:
    """Give each task about the same number of messages, in as few tasks as that needs.

    The ranges are laid end to end and cut at equal distances: a task has whole queues and at most
    two ends of others. No task is empty, so there may be fewer than `at_least`.
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


def share(backlog: Mapping[MessageQueue, int], limit: int) -> dict[MessageQueue, int]:
    """Share `limit` messages out in proportion to what waits, to the last one.

    What rounding leaves goes to those who lost most by it.
    """
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {queue: size * limit // total for queue, size in backlog.items()}
    left = limit - sum(shares.values())
    by_loss = sorted(backlog, key=lambda queue: -(backlog[queue] * limit % total))
    for queue in by_loss[:left]:
        shares[queue] += 1
    return shares
