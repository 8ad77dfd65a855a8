"""Exactly-once writes of a stream: half messages and a ledger.

1. `write` (tasks): every attempt of a task sends its rows as half messages, invisible to consumers,
   under a transaction of its own.
2. `commit` (driver): records in the ledger which transactions of the micro-batch count. Creating
   that record is the commit point, and it is created once. Only then are half messages ended:
   those of recorded transactions are committed, all others rolled back.
3. Whatever is still open (a crash in between, a lost request) is ended when the broker checks it:
   every producer of the group answers from the ledger (`checking`).

After a crash Spark runs the micro-batch again, with the same number and the same offsets. If the
ledger has its record, the tasks send nothing, and open half messages are left to the broker's
checks: Java brokers commit a half message twice if they receive two commits. For the same reason
an unasked commit is sent early or not at all (`end_within`): a Java broker that has started to
check a half message forgets an unasked end, and would ask, and commit, again.
"""

import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pocketmq.blocking.record_sender import HalfMessage, RecordSender
from pocketmq.errors import InvalidInput, LedgerUnusable, MQError, RowsNotSent
from pocketmq.model import Message, MessageQueue, SendReceipt, TransactionState
from pocketmq.spark.brief_errors import in_brief
from pocketmq.spark.check_backs import TRANSACTION, ledger_check
from pocketmq.spark.connections import PAUSE, patiently, sender_for
from pocketmq.spark.ledger import BatchDecision, CommitLedger
from pocketmq.spark.packing import grouped, slices
from pocketmq.spark.rows import Rows, read_rows
from pocketmq.spark.sink_options import ExactlyOnce, SinkPlan

AHEAD = 512
"""Half messages of a task in flight at once."""

_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[HalfMessage]).decode


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """The half messages a task has sent: none, if there is no transaction."""

    query: str
    transaction: str = ""
    halves: bytes = b""
    doubtful: tuple[str, ...] = ()
    began: float = 0.0
    """The time before its first half message was sent, in seconds since 1970."""


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """Sends half messages in tasks, decides on the driver; pickled from there to every task."""

    def __init__(self, plan: SinkPlan, how: ExactlyOnce) -> None:
        self.plan = plan
        self.how = how

    @in_brief
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        """Send the rows of one task as half messages. Raises `RowRefused` or `RowsNotSent`."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InvalidInput("exactlyOnce only works for micro-batches of a stream")
        sender = self._sender()  # also where nothing is sent: it answers the brokers' checks
        if CommitLedger(self.how.ledger).get(query, int(batch)) is not None:
            for _ in iterator:  # decided by an earlier run: Spark wants its input read, that is all
                pass
            return Prepared(query)
        return self.prepare(sender, query, int(batch), iterator, context.partitionId())

    def prepare(
        self,
        sender: RecordSender,
        query: str,
        batch: int,
        batches: Iterator[pa.RecordBatch],
        partition: int,
    ) -> Prepared:
        """Send half messages under a transaction of their own."""
        transaction, began = uuid.uuid4().hex, time.time()
        halves = TaskHalves(
            sender,
            {TRANSACTION: f"{query}/{batch}/{transaction}"},
            patience=self.plan.reach.retry_timeout,
            partition=partition,
        )
        row = 0
        for whole in batches:
            for part in slices(whole):
                halves.send(read_rows(part, self.plan.columns, self.plan.topic, row, partition))
                row += part.num_rows
        halves.finish()
        if not halves.done:
            return Prepared(query)
        doubtful = tuple(halves.doubtful)
        return Prepared(query, transaction, _write(halves.done), doubtful, began)

    @in_brief
    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Record the decision, then end the half messages.

        The order is the guarantee: nothing is committed before the record is on disk. Raises
        `LedgerUnusable` or `BatchDecided`.
        """
        mine = [each for each in messages if isinstance(each, Prepared) and each.transaction]
        sender = self._sender()
        if not mine:
            return
        query = mine[0].query
        ledger = CommitLedger(self.how.ledger)
        holds, just_now = self.decide(ledger, query, batchId, mine)
        if just_now:
            halves = [half for each in mine for half in _read(each.halves)]
            early = self._early(sender, mine)
            if self.end(sender, early, TransactionState.COMMIT) == len(halves):
                ledger.ended(query, batchId)
            ledger.prune(query, self.how.retention)
        else:
            lost = [each for each in mine if each.transaction not in holds.transactions]
            self._roll_back(sender, lost)

    def decide(
        self, ledger: CommitLedger, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> tuple[BatchDecision, bool]:
        """Record which transactions count; return what holds, and whether it is new."""
        decision = BatchDecision(
            transactions=[each.transaction for each in prepared],
            doubtful=[message_id for each in prepared for message_id in each.doubtful],
        )
        return ledger.decide(query, batch, decision)

    def end(
        self, sender: RecordSender, halves: Sequence[HalfMessage], state: TransactionState
    ) -> int:
        """Commit or roll back half messages; return the number of acknowledged ends."""
        return sender.end_halves(halves, state)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Roll back, unless the batch is decided: Spark also aborts a commit that failed midway."""
        mine = [each for each in messages if isinstance(each, Prepared) and each.transaction]
        if not mine:
            return
        try:
            if CommitLedger(self.how.ledger).get(mine[0].query, batchId) is not None:
                return
        except LedgerUnusable:
            return  # unknown whether it is decided: leave it to the brokers' checks
        self._roll_back(self._sender(), mine)

    def _early(self, sender: RecordSender, prepared: Sequence[Prepared]) -> list[HalfMessage]:
        """Return half messages to commit without a check-back: young ones, or on our brokers."""
        now = time.time()
        return [
            half
            for each in prepared
            for half in _read(each.halves)
            if now - each.began <= self.how.end_within or sender.ends_once(half)
        ]

    def _roll_back(self, sender: RecordSender, prepared: Sequence[Prepared]) -> None:
        halves = [half for each in prepared for half in _read(each.halves)]
        self.end(sender, halves, TransactionState.ROLLBACK)

    def _sender(self) -> RecordSender:
        """Return this process's sender, which also answers the brokers' checks.

        Without retries: a half message that is sent again under the same id could be stored twice,
        and the ledger, which lists ids, could not say which of the two counts.
        """
        return sender_for(
            self.plan.reach,
            self.plan.group,
            purpose=self.how.ledger,
            retries=0,
            check=ledger_check(CommitLedger(self.how.ledger)),
        )


class _InFlight(NamedTuple):
    row: int
    message: Message
    queue: MessageQueue | None
    message_id: str
    receipt: "Future[SendReceipt]"


class TaskHalves:
    """The half messages of one task, at most `AHEAD` of them in flight."""

    def __init__(
        self,
        sender: RecordSender,
        properties: dict[str, str],
        *,
        patience: float,
        partition: int,
    ) -> None:
        self.done: list[HalfMessage] = []
        """Those that are stored, in the order of their rows."""
        self.doubtful: list[str] = []
        """Ids of those whose send had an unknown outcome, and that were sent again under a new id.

        They may be stored, so the decision lists them to be rolled back.
        """
        self._sender = sender
        self._properties = properties
        self._patience = patience
        self._partition = partition
        self._in_flight: deque[_InFlight] = deque()

    def send(self, rows: Rows) -> None:
        """Send rows; raises `RowsNotSent`."""
        rows, places, bounds = grouped(rows, self._queues)
        ids = self._sender.take_ids(len(rows))
        for (_, queue), start, stop in zip(places, bounds, bounds[1:], strict=False):
            for at in range(start, stop):
                while len(self._in_flight) >= AHEAD:
                    self._settle(self._in_flight.popleft())
                message = rows.message(at)
                message = msgspec.structs.replace(
                    message, properties={**message.properties, **self._properties}
                )
                message_id = f"{ids.prefix}{ids.first + at & 0xFFFF:04X}"
                receipt = self._begin(message, message_id, queue)
                row = int(rows.numbers[at])
                self._in_flight.append(_InFlight(row, message, queue, message_id, receipt))

    def finish(self) -> None:
        """Wait for all; raises `RowsNotSent`."""
        while self._in_flight:
            self._settle(self._in_flight.popleft())

    def _queues(self, topic: str) -> Sequence[MessageQueue]:
        return patiently(lambda: self._sender.queues(topic), self._patience)

    def _begin(
        self, message: Message, message_id: str, queue: MessageQueue | None
    ) -> "Future[SendReceipt]":
        try:
            return self._sender.submit_half(message, message_id, queue=queue)
        except MQError as error:  # back-pressure lasted too long
            failed: Future[SendReceipt] = Future()
            failed.set_exception(error)
            return failed

    def _settle(self, half: _InFlight) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                stored = self._sender.half(half.receipt.result())
            except MQError as error:
                if not error.retryable or time.monotonic() + PAUSE > deadline:
                    raise RowsNotSent(
                        half.message.topic, half.row, half.row, self._partition, error
                    ) from error
                if error.outcome_unknown:
                    self.doubtful.append(half.message_id)
            else:
                self.done.append(stored)
                return
            time.sleep(PAUSE)
            ids = self._sender.take_ids(1)
            message_id = f"{ids.prefix}{ids.first:04X}"
            receipt = self._begin(half.message, message_id, half.queue)
            half = half._replace(message_id=message_id, receipt=receipt)
