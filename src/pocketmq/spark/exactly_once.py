"""Each row of a stream once, whatever breaks: half messages and a ledger.

Tasks send half messages, which nobody sees, each with the name of its transaction: one for every
attempt of a task. When all tasks are done, the driver writes into the ledger which transactions of
the micro-batch count. That is the moment it happens: from then on the half messages of these are
committed and all others rolled back, by the driver at once, or by whoever is asked later on.

A run that finds its micro-batch decided sends nothing, and leaves the half messages that may still
be open to the brokers' questions: Java's brokers commit twice if they are told twice. For the same
reason they are told early or not at all: once they ask, they forget what they are told unasked.
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
from pocketmq.model.flags import TransactionState
from pocketmq.model.message import Message
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt
from pocketmq.spark.checking import TRANSACTION, ledger_check
from pocketmq.spark.ledger import BatchDecision, CommitLedger
from pocketmq.spark.packing import grouped, slices
from pocketmq.spark.rows import Rows, read_rows
from pocketmq.spark.senders import PAUSE, patiently, sender_for
from pocketmq.spark.sink_options import ExactlyOnce, SinkPlan

AHEAD = 512
"""Half messages of a task under way at once."""

_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[HalfMessage]).decode


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """What a task has sent: nothing, if there is no transaction."""

    query: str
    transaction: str = ""
    halves: bytes = b""
    doubtful: tuple[str, ...] = ()
    began: float = 0.0
    """When its first half message was sent, in seconds since 1970."""


class ExactlyOnceWriter(DataSourceStreamArrowWriter):
    """Prepares in tasks, decides on the driver; made on the driver, copied to every task."""

    def __init__(self, plan: SinkPlan, how: ExactlyOnce) -> None:
        self.plan = plan
        self.how = how

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        """Send the rows of one task as half messages. Raises `RowRefused` or `RowsNotSent`."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise InvalidInput("exactlyOnce works for micro-batches of a stream alone")
        sender = self._sender()
        if CommitLedger(self.how.ledger).get(query, int(batch)) is not None:
            for _ in iterator:  # all that is left to do is to answer brokers
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

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Decide, and end the half messages. Raises `LedgerUnusable` or `BatchDecided`."""
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
        """Write down what counts; gives what holds, and whether it was decided just now."""
        decision = BatchDecision(
            transactions=[each.transaction for each in prepared],
            doubtful=[message_id for each in prepared for message_id in each.doubtful],
        )
        return ledger.decide(query, batch, decision)

    def end(
        self, sender: RecordSender, halves: Sequence[HalfMessage], state: TransactionState
    ) -> int:
        """Tell brokers how half messages end; gives how many of the ends were acknowledged."""
        return sender.end_halves(halves, state)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803 - Spark's name
        """Roll back, unless it is decided: Spark aborts a commit that failed half-way, too."""
        mine = [each for each in messages if isinstance(each, Prepared) and each.transaction]
        if not mine:
            return
        try:
            if CommitLedger(self.how.ledger).get(mine[0].query, batchId) is not None:
                return
        except LedgerUnusable:
            return  # nobody knows; whoever is asked later on may
        self._roll_back(self._sender(), mine)

    def _early(self, sender: RecordSender, prepared: Sequence[Prepared]) -> list[HalfMessage]:
        """Give the half messages that may be committed unasked."""
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
        """Give this process's sender, which also answers brokers.

        A half message is tried once under one id: what is tried again elsewhere would be two.
        """
        return sender_for(
            self.plan.reach,
            self.plan.group,
            purpose=self.how.ledger,
            retries=0,
            check=ledger_check(CommitLedger(self.how.ledger)),
        )


class _UnderWay(NamedTuple):
    row: int
    message: Message
    queue: MessageQueue | None
    message_id: str
    receipt: "Future[SendReceipt]"


class TaskHalves:
    """The half messages of one task."""

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
        """Ids of those that may be stored, and were sent again under another one."""
        self._sender = sender
        self._properties = properties
        self._patience = patience
        self._partition = partition
        self._under_way: deque[_UnderWay] = deque()

    def send(self, rows: Rows) -> None:
        """Send rows; raises `RowsNotSent`."""
        rows, places, bounds = grouped(rows, self._queues)
        ids = self._sender.take_ids(len(rows))
        for (_, queue), start, stop in zip(places, bounds, bounds[1:], strict=False):
            for at in range(start, stop):
                while len(self._under_way) >= AHEAD:
                    self._settle(self._under_way.popleft())
                message = rows.message(at)
                message = msgspec.structs.replace(
                    message, properties={**message.properties, **self._properties}
                )
                message_id = f"{ids.prefix}{ids.first + at & 0xFFFF:04X}"
                receipt = self._begin(message, message_id, queue)
                row = int(rows.numbers[at])
                self._under_way.append(_UnderWay(row, message, queue, message_id, receipt))

    def finish(self) -> None:
        """Wait for all; raises `RowsNotSent`."""
        while self._under_way:
            self._settle(self._under_way.popleft())

    def _queues(self, topic: str) -> Sequence[MessageQueue]:
        return patiently(lambda: self._sender.queues(topic), self._patience)

    def _begin(
        self, message: Message, message_id: str, queue: MessageQueue | None
    ) -> "Future[SendReceipt]":
        try:
            return self._sender.submit_half(message, message_id, queue=queue)
        except MQError as error:  # there was no room for it in time
            failed: Future[SendReceipt] = Future()
            failed.set_exception(error)
            return failed

    def _settle(self, half: _UnderWay) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                stored = HalfMessage.of(half.receipt.result())
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
