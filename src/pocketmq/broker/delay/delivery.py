"""Delivering delayed messages that are due: from the levels' queues to those they were sent to.

Works on the store with `now` as an argument, without timers and connections. A message is
delivered after all that came before it in its level. Belongs to the broker's loop.
"""

import logging
from itertools import groupby
from typing import NamedTuple

from pocketmq.broker.delay.progress import DelayProgress
from pocketmq.broker.delay.rules import DelayLevels, DueMessage, count_due, delivery_of
from pocketmq.errors import StoreError
from pocketmq.model.delay import MOST_LEVELS
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.protocol import RecordView, tags_code
from pocketmq.store import MessageStore, QueueIndex, QueueRead

logger = logging.getLogger("pocketmq.broker")


class DeliveryBudget(NamedTuple):
    """How much may be delivered at once, so that the broker's clients do not have to wait."""

    messages: int = 256
    size: int = 1 << 20


class DeliveryRun(NamedTuple):
    """Messages of one level that went to one queue together."""

    level: int
    reached: int  # the level's next message after this run
    queue: QueueIndex
    offset: int  # of the run's first message in that queue
    messages: int
    size: int


class DeliveredDelays(NamedTuple):
    """What was delivered."""

    runs: list[DeliveryRun]
    error: StoreError | None
    """Why it ended early; what is not delivered stays where it is."""

    def by_queue(self) -> dict[QueueIndex, tuple[int, int]]:
        """Return how many messages, and how many bytes, came to each queue."""
        totals: dict[QueueIndex, tuple[int, int]] = {}
        for run in self.runs:
            messages, size = totals.get(run.queue, (0, 0))
            totals[run.queue] = messages + run.messages, size + run.size
        return totals


class DelayQueues:
    """The messages of one broker that wait."""

    def __init__(self, store: MessageStore, levels: DelayLevels, progress: DelayProgress) -> None:
        self._store = store
        self._levels = levels
        self._progress = progress
        self._first = 0  # the level served first: round robin, so that none starves
        known = len(levels.delays_ms)
        self.levels = [
            level
            for level in range(1, MOST_LEVELS + 1)
            # A level that is no longer configured may still have messages.
            if level <= known or store.queue(SCHEDULE_TOPIC, level - 1) is not None
        ]

    def waiting(self) -> list[tuple[int, QueueIndex, int]]:
        """Return each level in which messages wait, its queue, and the offset of the next one."""
        found = []
        for level in self.levels:
            queue = self._store.queue(SCHEDULE_TOPIC, level - 1)
            if queue is not None:
                offset = max(self._progress.offset(level), queue.min_offset)
                if offset < queue.next_offset:
                    found.append((level, queue, offset))
        return found

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next message is due, no earlier than now; None if none waits."""
        return min(
            [
                now_ms + self._levels.wait_ms(level, due_ms, now_ms)
                for level, queue, offset in self.waiting()
                for due_ms in queue.tags(offset, 1)
            ],
            default=None,
        )

    def deliver(self, now_ms: int, budget: DeliveryBudget) -> DeliveredDelays:
        """Deliver what is due, as much as the budget allows, and write it.

        No other messages may be waiting to be written: a write that fails drops all of them.
        """
        runs: list[DeliveryRun] = []
        error = None
        try:
            self._append_due(now_ms, budget, runs)
        except StoreError as failed:
            error = failed
        try:
            self._store.write()
        except StoreError as failed:
            error = failed
        # The store has removed from its queue what it could not write.
        kept = [run for run in runs if run.queue.next_offset > run.offset]
        for run in kept:
            self._progress.reached(run.level, run.reached)
        return DeliveredDelays(kept, error)

    def _append_due(self, now_ms: int, budget: DeliveryBudget, runs: list[DeliveryRun]) -> None:
        waiting = self.waiting()
        self._first += 1
        first = self._first % len(waiting) if waiting else 0
        messages, size = budget
        for level, queue, offset in waiting[first:] + waiting[:first]:
            self._progress.reached(level, offset)
            due = count_due(self._levels, level, queue.tags(offset, messages), now_ms)
            if due:
                read = self._store.read(queue, offset, due, size)
                self._append_read(level, read, now_ms, runs)
                messages -= read.next_offset - offset
                size -= read.size
                if messages <= 0 or size <= 0:
                    return

    def _append_read(
        self, level: int, read: QueueRead, now_ms: int, runs: list[DeliveryRun]
    ) -> None:
        """Append messages of a level, one run for each stretch that goes to the same queue.

        Messages that are lost or name no queue are skipped with those before them.
        """
        found = _deliveries(read)
        if not found:
            self._progress.reached(level, read.next_offset)
        done = 0
        for (topic, queue_id), group in groupby(found, key=lambda each: each[1][:2]):
            records = [delivery.record for _, delivery in group]
            tags = [tags_code(record.property_bytes) for record in records]
            done += len(records)
            reached = found[done][0] if done < len(found) else read.next_offset
            queue = self._store.make_queue(topic, queue_id)
            offset = self._store.append(queue, records, tags, now_ms).queue_offset
            size = sum([len(record.body) for record in records])
            runs.append(DeliveryRun(level, reached, queue, offset, len(records), size))


def _deliveries(read: QueueRead) -> list[tuple[int, DueMessage]]:
    """Return what waiting messages become, each with its offset."""
    found = []
    for piece in read.pieces:
        waiting = RecordView(piece, 0)
        delivery = delivery_of(waiting)
        if delivery is None:
            logger.error(
                "delayed message has no target topic: position=%d; skipped",
                waiting.commit_log_offset,
            )
        else:
            found.append((waiting.queue_offset, delivery))
    return found
