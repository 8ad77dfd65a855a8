"""Reading topics as a stream: where it begins, what a micro-batch reads, how far it has come.

Spark keeps one such reader in a process of the driver's for as long as the query runs; tasks get a
copy that only reads. The checkpoint is the truth; the group's progress is for people to look at.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pocketmq.errors import DataLost
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.batch_reader import Task, place_all, wanted_rows
from pocketmq.spark.offsets import Offsets, StreamOffset, lag, nested
from pocketmq.spark.planning import Range, pack, share
from pocketmq.spark.schema import wanted_columns
from pocketmq.spark.source_options import SourceOptions, source_options
from pocketmq.spark.worker_daemon import HUNG_UP

if TYPE_CHECKING:
    import pyarrow as pa

    from pocketmq.spark.cluster_view import ClusterView
    from pocketmq.spark.progress import ProgressPublisher

logger = logging.getLogger("pocketmq.spark")

IDLE = 1.0
"""Seconds without news after which a stream is asked for less often."""
PACE = 0.05
"""Seconds between two looks at an idle stream."""
REPORT_AGE = 0.1
"""How old the ends may be that are reported."""
_PAUSE = 0.2


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver, reads on the executors."""

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.columns = wanted_columns(schema)
        self.spark_schema = schema
        self._clock = clock
        self._view_made: ClusterView | None = None
        self._progress_made: ProgressPublisher | None = None
        self._initial: dict[str, Any] | None = None
        self._target: Offsets | None = None  # where a run of what is available now ends
        self._batch_at: float | None = None  # when the last micro-batch was planned
        self._planned: Offsets = {}  # where the last micro-batch ends
        self._idle_since: float | None = None
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Leave connections behind: tasks make their own."""
        own = {"_view_made": None, "_progress_made": None, "_clock": time.monotonic}
        return self.__dict__ | own

    # Where it begins

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Give where a new query begins; asked twice, the answer is the same."""
        if self._initial is None:
            bounds = self._view.bounds()
            strict = self.options.pulling.fail_on_data_loss
            starting = self.options.starting
            begin = place_all(self._view, starting, bounds, "startingOffsets", strict=strict)
            self._initial = StreamOffset(begin, fresh=True).to_json()
        return self._initial

    # What comes next

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Give what one micro-batch reads at most."""
        most = self.options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note where the queues end now: a run that ends reads no further."""
        self._target = dict(self._view.ends(fresh=True))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Give where the next micro-batch ends; `start` itself if there is nothing for one."""
        before = StreamOffset.from_json(start)
        if not before.fresh:
            self._planned = before.queues
            self._publish(before.queues)
        self._pace()
        ends = self._ends(before.queues)
        begin = self._begin(before, ends)
        positions = before.queues | begin
        waiting = {queue: max(0, end - positions[queue]) for queue, end in ends.items()}
        if not self._worth(sum(waiting.values())):
            waiting = {}
        elif isinstance(limit, ReadMaxRows):
            waiting = share(waiting, limit.max_rows)
        self._asked_at = now = self._clock()
        if not any(waiting.values()) and not begin:
            self._idle_since = now if self._idle_since is None else self._idle_since
            return start
        self._idle_since, self._batch_at = None, now
        self._planned = {queue: at + waiting.get(queue, 0) for queue, at in positions.items()}
        return StreamOffset(self._planned, begin).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Give where the queues end, and how much the micro-batch leaves for later ones."""
        ends = self._view.ends(age=REPORT_AGE)
        left = lag(ends, self._planned)
        total = {"total": sum(left.values()), "max": max(left.values(), default=0)}
        return nested(ends) | {"@lag": total}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Cut a micro-batch into tasks."""
        before, after = StreamOffset.from_json(start), StreamOffset.from_json(end)
        # The end knows best where queues begin: those of batch 0, new ones, and ones made anew.
        begin = before.queues | after.begin
        ranges = [
            Range(queue, begin.get(queue, reached), reached)
            for queue, reached in after.queues.items()
        ]
        options = self.options
        wanted = [each for each in ranges if each.size > 0]
        tasks = pack(wanted, at_least=options.min_partitions, per_task=options.per_partition)
        return [Task(each) for each in tasks]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Give the rows of a task."""
        from pocketmq.spark.reading import read_ranges

        assert isinstance(partition, Task)
        wanted = wanted_rows(self.options, self.columns, self.spark_schema)
        return read_ranges(partition.ranges, wanted, self.options.pulling)

    # How far it has come

    def commit(self, end: dict[str, Any]) -> None:
        """Take note that everything up to `end` has been processed."""
        self._publish(StreamOffset.from_json(end).queues)

    def stop(self) -> None:
        """Let go of connections; end the process if Spark has hung up on it.

        Spark's worker would go on to tell Spark so, and print a broken pipe for every query that
        has ended. An error of ours is another thing: that Spark is told.
        """
        if self._progress_made is not None:
            self._progress_made.close()
        if self._view_made is not None:
            self._view_made.reader.close()
        if isinstance(sys.exc_info()[1], HUNG_UP):
            os._exit(0)

    def _publish(self, reached: Offsets) -> None:
        if self.options.group is None:
            return
        if self._progress_made is None:
            from pocketmq.spark.progress import ProgressPublisher

            self._progress_made = ProgressPublisher(self.options.reach, self.options.group)
        self._progress_made.publish(reached)

    # What there is

    @property
    def _view(self) -> "ClusterView":
        if self._view_made is None:
            from pocketmq.spark.cluster_view import view_of

            self._view_made = view_of(self.options)
        return self._view_made

    def _ends(self, known: Offsets) -> Offsets:
        """Give where the queues end that can be read now.

        What is missing is waited for: a broker may be starting again, a slave may be behind.
        Raises `DataLost` for a queue that stays away, unless the stream is to go on without it.
        """
        deadline = self._clock() + self.options.reach.retry_timeout
        ends = self._target or self._view.ends()
        strict = self.options.pulling.fail_on_data_loss
        while True:
            missing = [queue for queue in known if queue not in ends] if strict else []
            behind = [queue for queue, end in ends.items() if known.get(queue, end) > end]
            if not missing and not behind:
                break
            if self._clock() > deadline:
                if missing:
                    raise _vanished(missing[0], known[missing[0]])
                break
            time.sleep(_PAUSE)
            ends = self._view.ends(fresh=True)
        if self._target is None:
            return ends
        # Queues that came since are for another run, even if they have been waited for.
        kept = {queue: known.get(queue, 0) for queue in ends if queue not in self._target}
        return self._target | kept

    def _pace(self) -> None:
        """Wait a moment before asking again, once a stream has been idle for a while.

        Spark asks 90 times a second. The answer must be of now, not one kept: whoever waits for
        all that is available counts on it.
        """
        now = self._clock()
        if self._idle_since is not None and now - self._idle_since > IDLE:
            time.sleep(max(0.0, self._asked_at + PACE - now))

    def _begin(self, before: StreamOffset, ends: Offsets) -> Offsets:
        """Give where queues begin that are new, or were made anew with fewer messages."""
        if before.fresh:
            new = {queue: self._view.first(queue) for queue in ends if queue not in before.queues}
            return before.queues | new
        begin: Offsets = {}
        for queue, end in ends.items():
            at = before.queues.get(queue)
            if at is None:
                begin[queue] = self._view.first(queue)
            elif at > end:
                begin[queue] = self._shrunk(queue, at, end)
        return begin

    def _shrunk(self, queue: MessageQueue, at: int, end: int) -> int:
        why = f"it ends at {end} by now, as if it had been made anew"
        span = (at, at)
        lost = DataLost(queue.topic, queue.broker_name, queue.queue_id, span, why)
        if self.options.pulling.fail_on_data_loss:
            raise lost
        logger.warning("%s", lost)
        return self._view.first(queue)

    def _worth(self, waiting: int) -> bool:
        """Tell whether there is enough for a micro-batch, or it has waited long enough."""
        least = self.options.min_offsets
        if least is None or waiting >= least or self._target is not None or self._batch_at is None:
            return True
        return self._clock() - self._batch_at >= self.options.max_delay


def _vanished(queue: MessageQueue, at: int) -> DataLost:
    why = "its topic, or its broker, is not known to the name server any more"
    return DataLost(queue.topic, queue.broker_name, queue.queue_id, (at, at), why)


def stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Give the reader that the options ask for. Raises `InvalidInput`."""
    return StreamReader(source_options(options, stream=True), schema)
