"""Exactly-once writes of a stream: staged batches, a ledger, and a move that can be resumed.

1. `write` (tasks): every attempt of a task sends its rows, as encoded batches, to a staging topic
   that no application reads.
2. `commit` (driver): records in the ledger which staged chunks of the micro-batch count, and the
   queue each goes to. Creating that record is the commit point, and it is created once.
3. Then the driver moves the chunks to their queues (`moving`) and marks the batch as complete.

After a crash Spark runs the micro-batch again, with the same number and the same offsets. If the
ledger has its record, the tasks send nothing, and `commit` completes the move: it compares the
chunks with the target and sends what is missing. Rows of attempts that do not count are never
moved, so there is nothing to roll back.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pocketmq.blocking.record_sender import RecordSender
from pocketmq.errors import InvalidInput, MQError, RouteNotFound
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.spark.brief_errors import in_brief
from pocketmq.spark.connections import patiently, reader_of, sender_for
from pocketmq.spark.ledger import BatchDecision, Chunk, CommitLedger, QueueStart
from pocketmq.spark.moving import BatchMove
from pocketmq.spark.packing import pack, slices
from pocketmq.spark.rows import read_rows
from pocketmq.spark.sink_options import LARGEST_BATCH, ExactlyOnce, SinkPlan
from pocketmq.spark.staging import StagedSends, create_topic

TRANSACTION = "SPARK_TRANSACTION"
"""The property of a message that names query, micro-batch and attempt, separated by `/`."""
LARGEST_CHUNK = LARGEST_BATCH - (64 << 10)
"""Bytes: a staged message has properties besides the batch."""

_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[Chunk]).decode


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """The chunks a task has staged: none, if there is no transaction."""

    query: str
    transaction: str = ""
    chunks: bytes = b""


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """Stages rows in tasks, decides and moves on the driver; pickled from there to every task."""

    def __init__(self, plan: SinkPlan, how: ExactlyOnce) -> None:
        self.plan = plan
        self.how = how

    @in_brief
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        """Stage the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InvalidInput("exactlyOnce only works for micro-batches of a stream")
        if CommitLedger(self.how.ledger).get(query, int(batch)) is not None:
            for _ in iterator:  # decided by an earlier run: Spark wants its input read, that is all
                pass
            return Prepared(query)
        return self.prepare(self._sender(), query, int(batch), iterator, context.partitionId())

    def prepare(
        self,
        sender: RecordSender,
        query: str,
        batch: int,
        batches: Iterator[pa.RecordBatch],
        partition: int,
    ) -> Prepared:
        """Stage rows under a transaction of their own."""
        transaction = uuid.uuid4().hex
        mark = f"{TRANSACTION}\1{query}/{batch}/{transaction}\2".encode()
        limit, row = min(self.plan.batch_size, LARGEST_CHUNK), 0
        with StagedSends(sender, self.plan.reach, self.how.staging, partition, mark) as sends:
            for whole in batches:
                for part in slices(whole):
                    rows = read_rows(part, self.plan.columns, self.plan.topic, row, partition)
                    take, count = sender.take_ids, sends.queue_count
                    for what in pack(rows, limit, take, sends.queues, count, mark=mark):
                        sends.send(what)
                    row += part.num_rows
            sends.finish()
        if not sends.chunks:
            return Prepared(query)
        return Prepared(query, transaction, _write(sends.chunks))

    @in_brief
    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Record the decision, then move the chunks that count.

        The order is the guarantee: nothing is moved before the record is on disk. Raises
        `LedgerUnusable`, `BatchDecided` or `BatchIncomplete`.
        """
        mine = [each for each in messages if isinstance(each, Prepared)]
        if not mine:
            return
        query = mine[0].query
        ledger = CommitLedger(self.how.ledger)
        with ledger.locked(query, self.plan.reach.retry_timeout):
            known = ledger.get(query, batchId)
            if known is not None:
                if not ledger.has_ended(query, batchId):
                    self.move(query, batchId, known).run(fresh=False)
            elif any(each.transaction for each in mine):
                holds, just_now = self.decide(ledger, query, batchId, mine)
                self.move(query, batchId, holds).run(fresh=just_now)
            else:
                return
            ledger.ended(query, batchId)
            ledger.prune(query)

    def decide(
        self, ledger: CommitLedger, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> tuple[BatchDecision, bool]:
        """Record which chunks count; return what holds, and whether it is new."""
        chunks = [chunk for each in prepared if each.transaction for chunk in _read(each.chunks)]
        ends = self._ends({chunk.topic for chunk in chunks}, chunks)
        decision = BatchDecision(
            staging=self.how.staging,
            chunks=aimed(chunks, list(ends), batch),
            starts=[
                QueueStart(queue.topic, queue.broker_name, queue.queue_id, end)
                for queue, end in ends.items()
            ],
        )
        return ledger.decide(query, batch, decision)

    def move(self, query: str, batch: int, decision: BatchDecision) -> BatchMove:
        """Return the move of a decided micro-batch."""
        mark = f"{TRANSACTION}\1{query}/{batch}/".encode()
        return BatchMove(self.plan.reach, query, batch, decision, mark)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Do nothing: what is not decided is never moved, and what is decided must be."""

    def _ends(self, topics: set[str], chunks: Sequence[Chunk]) -> dict[MessageQueue, int]:
        """Return the ends of all target queues whose brokers respond.

        Those of queues that rows are pinned to must be among them, and one of each topic.
        """
        pinned = {MessageQueue(each.topic, *each.target) for each in chunks if each.target}
        sender, reader = self._sender(), reader_of(self.plan.reach)

        def ask() -> dict[MessageQueue, int]:
            for topic in topics:
                try:
                    reader.queues(topic)
                except RouteNotFound:
                    sender.queues(topic)  # raises unless brokers create topics for producers
                    create_topic(self.plan.reach, topic, self.how.staging)
            queues = {queue for topic in topics for queue in sender.queues(topic)} | pinned
            answers = reader.ends(sort_queues(queues))
            errors = {queue: each for queue, each in answers.items() if isinstance(each, MQError)}
            ends = {queue: each for queue, each in answers.items() if isinstance(each, int)}
            lacking = pinned & errors.keys()
            for topic in topics - {queue.topic for queue in ends}:
                lacking |= {queue for queue in errors if queue.topic == topic}
            for queue in lacking:
                raise errors[queue]
            return ends

        return patiently(ask, self.plan.reach.retry_timeout)

    def _sender(self) -> RecordSender:
        """Return this process's sender; chunks are read back soon, so none is compressed."""
        return sender_for(self.plan.reach, self.plan.group, purpose="staging", compress=False)


def aimed(chunks: Sequence[Chunk], queues: Sequence[MessageQueue], batch: int) -> list[Chunk]:
    """Return chunks with a queue each: those for any take the queues of their topic in turn."""
    by_topic: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        by_topic.setdefault(queue.topic, []).append(queue)
    turn = dict.fromkeys(by_topic, batch)  # small micro-batches, too, fill all queues
    found: list[Chunk] = []
    for chunk in chunks:
        aim = chunk.target
        if aim is None:
            here = by_topic[chunk.topic]
            queue = here[turn[chunk.topic] % len(here)]
            turn[chunk.topic] += 1
            aim = (queue.broker_name, queue.queue_id)
        found.append(msgspec.structs.replace(chunk, target=aim))
    return found
