"""The sink: rows of a DataFrame, or of micro-batches, appended to topics, at least once.

A task is done only when everything it sent is acknowledged; retryable errors are retried for a
while, then the task fails and names its rows. Spark runs a failed task again, and a micro-batch
after a crash, which sends rows a second time: consumers recognise duplicates by a key, or a stream
uses `exactly_once`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pocketmq.spark.brief_errors import in_brief
from pocketmq.spark.connections import sender_for
from pocketmq.spark.packing import one_queue, pack, slices
from pocketmq.spark.rows import read_rows
from pocketmq.spark.sink_options import SinkPlan, sink_plan
from pocketmq.spark.task_sends import TaskSends


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The number of rows a task has sent; all are acknowledged."""

    rows: int


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> "BatchWriter":
    """Return the writer of a DataFrame; raises `InvalidInput` for invalid options or columns."""
    return BatchWriter(sink_plan(options, schema, overwrite=overwrite, stream=False))


class BatchWriter(DataSourceArrowWriter):
    """Sends rows; made on the driver, copied to every task."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    @in_brief
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        return Written(send_rows(self.plan, iterator))


def send_rows(plan: SinkPlan, batches: Iterator[pa.RecordBatch]) -> int:
    """Send all rows and return their number; raises `RowRefused` or `RowsNotSent`."""
    sender = sender_for(plan.reach, plan.group)
    partition = partition_id()
    row = 0
    with TaskSends(sender, plan.reach.retry_timeout, partition) as sends:
        for whole in batches:
            for batch in slices(whole):
                rows = read_rows(batch, plan.columns, plan.topic, row, partition)
                # A small write fills all queues; the requests of a large one do so in turn.
                spread = one_queue if row else sends.queue_count
                requests = pack(rows, plan.batch_size, sender.take_ids, sends.queues, spread)
                for what in requests:
                    sends.send(what)
                row += batch.num_rows
        sends.finish()
    return row


def partition_id() -> int | None:
    """Return the number of the task's partition; None outside of a task."""
    context = TaskContext.get()
    return None if context is None else context.partitionId()


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Return the writer of a stream; raises `InvalidInput` for invalid options or columns."""
    plan = sink_plan(options, schema, overwrite=overwrite, stream=True)
    if plan.exactly_once is None:
        return StreamWriter(plan)
    from pocketmq.spark.exactly_once import ExactlyOnceWriter

    return ExactlyOnceWriter(plan, plan.exactly_once)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends rows; a micro-batch that Spark runs again is sent again."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    @in_brief
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        return Written(send_rows(self.plan, iterator))
