"""Reading topics as a stream: its start, the range of each micro-batch, its progress.

Spark keeps one such reader in a process of the driver as long as the query runs; tasks get a
pickled copy that only reads. The checkpoint is the truth: it holds the end of each planned
micro-batch before it runs, so that a restart plans the same ranges again. The progress of the
consumer group is for display only, and is never read back. A stream that cannot be read is a
reader, too, which raises the reason in its first call (`RefusedStream`).
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import datasource
from pyspark.sql.types import StructType

from pocketmq.errors import MQError
from pocketmq.spark.batch_reader import Task, wanted_rows
from pocketmq.spark.brief_errors import brief_rows, in_brief
from pocketmq.spark.offsets import Offsets, StreamOffset, lag, nested
from pocketmq.spark.planning import BatchLimit, Range, limited, pack, turn_of
from pocketmq.spark.schema import wanted_columns
from pocketmq.spark.source_options import SourceOptions, source_options
from pocketmq.spark.worker_daemon import HUNG_UP

if TYPE_CHECKING:
    import pyarrow as pa

    from pocketmq.spark.progress import ProgressPublisher
    from pocketmq.spark.stream_queues import StreamQueues

IDLE = 1.0
"""Seconds without new messages after which polling slows down."""
PACE = 0.05
"""Seconds between two polls of an idle stream."""
REPORT_AGE = 0.1
"""Maximum age in seconds of the reported ends."""


class StreamReader(DataSourceStreamReader, datasource.SupportsTriggerAvailableNow):
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
        self._queues_made: StreamQueues | None = None
        self._progress_made: ProgressPublisher | None = None
        self._initial: dict[str, Any] | None = None
        self._batch_at: float | None = None  # when the last micro-batch was planned
        self._planned: Offsets = {}  # where the last micro-batch ends
        self._idle_since: float | None = None
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Leave connections out: tasks make their own."""
        own = {"_queues_made": None, "_progress_made": None, "_clock": time.monotonic}
        return self.__dict__ | own

    # Start

    @in_brief
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start of a new query.

        Spark asks twice in batch 0, and again after a restart. Within one run the answer must not
        change, so it is cached; across runs `@begin` of the next offset counts (see `offsets`).
        """
        if self._initial is None:
            self._initial = StreamOffset(self._queues.begin(), fresh=True).to_json()
        return self._initial

    # Planning

    def getDefaultReadLimit(self) -> datasource.ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of one micro-batch."""
        rows, size = self.options.max_offsets, self.options.max_bytes
        if rows is not None:
            return datasource.ReadMaxRows(rows)
        return datasource.ReadAllAvailable() if size is None else datasource.ReadMaxBytes(size)

    @in_brief
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Record the current ends: an AvailableNow run reads no further."""
        self._queues.stop_here()

    @in_brief
    def latestOffset(self, start: dict[str, Any], limit: datasource.ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch; `start` itself if there is nothing to read.

        New queues, and those that were recreated, are part of the result even without a message, so
        that the checkpoint knows their start.
        """
        before = StreamOffset.from_json(start)
        if not before.fresh:
            self._planned = before.queues
            self._publish(before.queues)
        self._pace()
        ends, begin, since = self._queues.next(before)
        positions = before.queues | begin
        waiting = {queue: max(0, end - positions[queue]) for queue, end in ends.items()}
        if not self._worth(sum(waiting.values())):
            waiting = {}
        elif any(waiting.values()):
            waiting = self._limited(waiting, positions, limit)
        self._asked_at = now = self._clock()
        if not any(waiting.values()) and not begin:
            self._idle_since = now if self._idle_since is None else self._idle_since
            return start
        self._idle_since, self._batch_at = None, now
        self._planned = {queue: at + waiting.get(queue, 0) for queue, at in positions.items()}
        return StreamOffset(self._planned, begin, since=since).to_json()

    def _limited(
        self, waiting: Offsets, positions: Offsets, limit: datasource.ReadLimit
    ) -> Offsets:
        """Return the number of messages to read of each queue."""
        if isinstance(limit, datasource.ReadMaxRows):
            within = BatchLimit(limit.max_rows, self.options.max_bytes)
        elif isinstance(limit, datasource.ReadMaxBytes):
            within = BatchLimit(size=limit.max_bytes)
        else:
            return waiting
        sizes = {} if within.size is None else self._queues.sizes(waiting, positions)
        rows = sum(waiting.values()) if within.rows is None else within.rows
        return limited(waiting, within, sizes, turn_of(positions, rows))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return the ends of the queues, and the lag that the planned micro-batch leaves."""
        try:
            ends = self._queues.latest(age=REPORT_AGE)
        except MQError:  # for display only; the next plan raises what has to be raised
            return None
        left = lag(ends, self._planned)
        total = {"total": sum(left.values()), "max": max(left.values(), default=0)}
        return nested(ends) | {"@lag": total}

    @in_brief
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a micro-batch; pure, so that a restart gets the same rows."""
        before, after = StreamOffset.from_json(start), StreamOffset.from_json(end)
        # The end overrides the start: for queues of batch 0, new ones, and recreated ones.
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
        """Return the rows of a task."""
        from pocketmq.spark.reading import read_ranges

        assert isinstance(partition, Task)
        wanted = wanted_rows(self.options, self.columns, self.spark_schema)
        return brief_rows(read_ranges(partition.ranges, wanted, self.options.pulling))

    # Progress

    def commit(self, end: dict[str, Any]) -> None:
        """Publish that everything up to `end` has been processed.

        Spark calls it one micro-batch late, and never for the last one; `latestOffset`, which gets
        the end of the finished micro-batch as its start, publishes as well.
        """
        self._publish(StreamOffset.from_json(end).queues)

    def stop(self) -> None:
        """Close connections; exit the process if Spark has closed the connection to it.

        Spark's worker would otherwise try to report that to Spark, and print a broken pipe for
        every query that ends. An error of ours is reported as usual.
        """
        if self._progress_made is not None:
            self._progress_made.close()
        if self._queues_made is not None:
            self._queues_made.close()
        if isinstance(sys.exc_info()[1], HUNG_UP):
            os._exit(0)

    def _publish(self, reached: Offsets) -> None:
        if self.options.group is None:
            return
        if self._progress_made is None:
            from pocketmq.spark.progress import ProgressPublisher

            self._progress_made = ProgressPublisher(self.options.reach, self.options.group)
        self._progress_made.publish(reached)

    # The cluster

    @property
    def _queues(self) -> "StreamQueues":
        if self._queues_made is None:
            from pocketmq.spark.stream_queues import StreamQueues

            self._queues_made = StreamQueues(self.options, self._clock)
        return self._queues_made

    def _pace(self) -> None:
        """Slow down polling, once a stream has been idle for a while.

        Spark polls 90 times a second. The answer must be current, not cached:
        `processAllAvailable` relies on it.
        """
        now = self._clock()
        if self._idle_since is not None and now - self._idle_since > IDLE:
            time.sleep(max(0.0, self._asked_at + PACE - now))

    def _worth(self, waiting: int) -> bool:
        """Return whether there is enough for a micro-batch, or it has waited long enough."""
        least = self.options.min_offsets
        if least is None or waiting >= least or self._queues.stops or self._batch_at is None:
            return True
        return self._clock() - self._batch_at >= self.options.max_delay


def stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Return the reader that the options ask for. Raises `InvalidInput`."""
    return StreamReader(source_options(options, stream=True), schema)


class RefusedStream(DataSourceStreamReader, datasource.SupportsTriggerAvailableNow):
    """Raises the same error wherever it is asked for something.

    Spark (4.3) closes the reader of a failed start. If `streamReader` raises there is none: the
    user then reads of a variable of Spark's, and nothing of the reason.
    """

    def __init__(self, error: MQError) -> None:
        self.error = error

    @in_brief
    def _refuse(self) -> NoReturn:
        raise self.error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802, D102 - Spark's name
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802, D102 - Spark's name
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: datasource.ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802, D102 - Spark's name
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002, D102
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002, D102
        self._refuse()
