"""Planning: ranges of queues packed into tasks, a row limit divided among queues.

Each Python task costs Spark about 20 ms, so many small queues go into one task; a long range is
split. Pure: numbers in, numbers out. Where a range starts and ends is decided in `cluster_view`;
what happens when messages of a range are gone (`failOnDataLoss`) in `data_loss`.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.model import MessageQueue

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


def share(backlog: Mapping[MessageQueue, int], limit: int) -> dict[MessageQueue, int]:
    """Divide `limit` messages among queues in proportion to their backlog, exactly.

    The remainder goes to the queues that lost most by rounding.
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
