"""The sends of one task: a thread sends what the task packs, in order, within bounded memory."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from pocketmq.blocking.record_sender import RecordSender
from pocketmq.errors import MQError, RowsNotSent
from pocketmq.model import MessageQueue, SendReceipt
from pocketmq.spark.connections import patiently
from pocketmq.spark.packing import Alone, Packed

AHEAD = 4
"""Requests that are ready while one is in flight."""


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
