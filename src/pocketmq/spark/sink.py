"""The batch sink: rows of a DataFrame appended to topics, at least once.

A task that fails is run again by Spark, and then sends its rows again: whoever must not see a row
twice tells them apart by a key.
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

from pocketmq.spark.packing import pack, slices
from pocketmq.spark.rows import read_rows
from pocketmq.spark.senders import TaskSends, sender_for
from pocketmq.spark.sink_options import SinkPlan, sink_plan


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task has sent; all of it is acknowledged."""

    rows: int


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> "BatchWriter":
    """Give what writes a DataFrame; raises `InvalidInput` for what cannot be written."""
    return BatchWriter(sink_plan(options, schema, overwrite=overwrite, stream=False))


class BatchWriter(DataSourceArrowWriter):
    """Sends rows; made on the driver, copied to every task."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        return Written(send_rows(self.plan, iterator))


def send_rows(plan: SinkPlan, batches: Iterator[pa.RecordBatch]) -> int:
    """Send all rows and tell how many; raises `RowRefused` or `RowsNotSent`."""
    sender = sender_for(plan.reach, plan.group)
    partition = partition_id()
    row = 0
    with TaskSends(sender, plan.reach.retry_timeout, partition) as sends:
        for whole in batches:
            for batch in slices(whole):
                rows = read_rows(batch, plan.columns, plan.topic, row, partition)
                for what in pack(rows, plan.batch_size, sender.take_ids, sends.queues):
                    sends.send(what)
                row += batch.num_rows
        sends.finish()
    return row


def partition_id() -> int | None:
    """Give the number of the task's partition; None outside of a task."""
    context = TaskContext.get()
    return None if context is None else context.partitionId()


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Give what writes a stream; raises `InvalidInput` for what cannot be written."""
    plan = sink_plan(options, schema, overwrite=overwrite, stream=True)
    if plan.exactly_once is None:
        return StreamWriter(plan)
    from pocketmq.spark.exactly_once import ExactlyOnceWriter

    return ExactlyOnceWriter(plan, plan.exactly_once)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends rows; a micro-batch that Spark runs again is sent again."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        return Written(send_rows(self.plan, iterator))
