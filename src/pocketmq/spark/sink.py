"""The sink: rows of a DataFrame, or of micro-batches, appended to topics, at least once.

A task is done only when everything it sent is acknowledged; retryable errors are retried for a
while, then the task fails and names its rows. Spark runs a failed task again, and a micro-batch
after a crash, which sends rows a second time: consumers recognise duplicates by a key, or a stream
uses `exactly_once`.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pocketmq.blocking.record_sender import RecordSender
from pocketmq.errors import MQError, RowsNotSent
from pocketmq.model import MessageQueue, SendReceipt
from pocketmq.spark.brief_errors import in_brief
from pocketmq.spark.connections import patiently, sender_for
from pocketmq.spark.packing import Alone, Packed, pack, slices
from pocketmq.spark.rows import read_rows
from pocketmq.spark.sink_options import SinkPlan, sink_plan

AHEAD = 4
"""Requests that are ready while one is in flight."""


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
                requests = pack(
                    rows, plan.batch_size, sender.take_ids, sends.queues, sends.queue_count
                )
                for what in requests:
                    sends.send(what)
                row += batch.num_rows
        sends.finish()
    return row


class TaskSends:
    """The sends of one task, in order, on a thread of their own.

    While a request is in flight the task packs the next ones, at most `AHEAD` of them; then it
    waits: the back-pressure that bounds memory. One thread, so that order is kept.
    """

    def __init__(self, sender: RecordSender, patience: float, partition: int | None) -> None:
        self._sender = sender
        self._patience = patience
        self._partition = partition
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pocketmq-sink")
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def queues(self, topic: str) -> Sequence[MessageQueue]:
        """Return the queues of a topic."""
        return patiently(lambda: self._sender.queues(topic), self._patience)

    def queue_count(self, topic: str) -> int:
        """Return the number of queues of a topic; 1 if it is unknown, or yet to be created."""
        try:
            return len(self._sender.queues(topic))
        except MQError:
            return 1

    def send(self, what: Packed | Alone) -> None:
        """Send in the background; waits while `AHEAD` are pending. Raises `RowsNotSent` for any."""
        while len(self._pending) >= AHEAD:
            self._pending.popleft().result()
        work = self._packed if isinstance(what, Packed) else self._alone
        self._pending.append(self._thread.submit(work, what))  # type: ignore[arg-type]

    def finish(self) -> None:
        """Wait until everything is acknowledged; raises `RowsNotSent`."""
        while self._pending:
            self._pending.popleft().result()

    def _packed(self, packed: Packed) -> None:
        def send() -> SendReceipt:
            return self._sender.send_packed(packed.topic, packed.body, queue=packed.queue)

        try:
            patiently(send, self._patience)
        except MQError as error:
            raise RowsNotSent(
                packed.topic, packed.first, packed.last, self._partition, error
            ) from error

    def _alone(self, alone: Alone) -> None:
        message = alone.rows.message(alone.at)

        def send() -> SendReceipt:
            return self._sender.send(message, queue=alone.queue, delay=alone.delay)

        try:
            patiently(send, self._patience)
        except MQError as error:
            row = int(alone.rows.numbers[alone.at])
            raise RowsNotSent(message.topic, row, row, self._partition, error) from error


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
