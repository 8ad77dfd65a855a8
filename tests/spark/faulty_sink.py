"""The exactly-once sink with one fault for each micro-batch, in Spark's own processes.

What is killed here is the Python process that does the work, by SIGKILL; abort() is left out then,
as it is when the whole driver dies.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pocketmq.blocking.fenced import FencedConnection
from pocketmq.blocking.record_sender import RecordSender
from pocketmq.model import MessageQueue
from pocketmq.spark.exactly_once import TRANSACTION, ExactlyOnceWriter, Prepared
from pocketmq.spark.ledger import BatchDecision, CommitLedger
from pocketmq.spark.moving import BatchMove
from pocketmq.spark.sink_options import SinkPlan, sink_plan

FAULTS = (
    "nothing",
    "a task fails once",
    "a task fails for good",
    "commit fails half-way",
    "killed in a task",
    "killed before the decision",
    "killed after the decision",
    "killed amid the moves",
    "killed before the answer",
    "killed after commit",
)
"""All there are; the first is none."""
TWICE = {"a task fails for good", "killed in a task"}
"""Those that hit every attempt of a task."""


class FaultySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        options = dict(self.options)
        scratch = Path(options.pop("scratch"))
        faults = tuple(options.pop("faults").split(", "))
        killed = int(options.pop("killed", "0"))
        plan = sink_plan(options, schema, overwrite=overwrite, stream=True)
        return FaultyWriter(plan, faults, scratch, killed)


class FaultyWriter(ExactlyOnceWriter):
    def __init__(self, plan: SinkPlan, faults: tuple[str, ...], scratch: Path, killed: int) -> None:
        assert plan.exactly_once is not None
        super().__init__(plan, plan.exactly_once)
        self.faults = faults
        self.scratch = scratch
        self.killed = killed
        self.batch = -1

    def fault(self, batch: int) -> str:
        return self.faults[batch] if batch < len(self.faults) else "nothing"

    def strike(self, fault: str) -> None:
        """Do what the batch is there for, as often as it needs."""
        if self.fault(self.batch) != fault:
            return
        for attempt in range(2 if fault in TWICE else 1):
            mark = self.scratch / f"{self.batch}-{attempt}"
            if not mark.exists():
                mark.touch()
                if fault.startswith("killed"):
                    os.kill(self.killed or os.getpid(), signal.SIGKILL)
                    time.sleep(10)  # whoever was killed takes us along
                    os._exit(1)
                raise RuntimeError(fault)

    def prepare(
        self,
        sender: RecordSender,
        query: str,
        batch: int,
        batches: Iterator[pa.RecordBatch],
        partition: int,
    ) -> Prepared:
        self.batch = batch
        prepared = super().prepare(sender, query, batch, batches, partition)
        if partition == 1:
            for fault in ("a task fails once", "a task fails for good", "killed in a task"):
                self.strike(fault)
        return prepared

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.batch = batchId
        self.strike("killed before the decision")
        super().commit(messages, batchId)
        self.strike("killed after commit")

    def decide(
        self, ledger: CommitLedger, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> tuple[BatchDecision, bool]:
        decided = super().decide(ledger, query, batch, prepared)
        self.strike("killed after the decision")
        return decided

    def move(self, query: str, batch: int, decision: BatchDecision) -> BatchMove:
        mark = f"{TRANSACTION}\1{query}/{batch}/".encode()
        return FaultyMove(self, query, batch, decision, mark)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        if not self.fault(batchId).startswith("killed"):
            super().abort(messages, batchId)


class FaultyMove(BatchMove):
    """Strikes at the second batch that is sent."""

    def __init__(
        self, writer: FaultyWriter, query: str, batch: int, decision: BatchDecision, mark: bytes
    ) -> None:
        super().__init__(writer.plan.reach, query, batch, decision, mark)
        self.writer = writer
        self.sent = 0

    def deliver(self, connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        self.sent += 1
        if self.sent != 2:
            super().deliver(connection, queue, body)
            return
        self.writer.strike("commit fails half-way")
        self.writer.strike("killed amid the moves")
        number = connection.begin(queue, body)
        self.writer.strike("killed before the answer")
        connection.confirm(number)
