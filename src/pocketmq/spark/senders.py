"""The senders of a worker process, kept from task to task, and the sends of one task.

A task is done only when everything it sent is acknowledged. What failed for a reason that may pass
is sent again for a while; then the task fails and names the rows.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from pocketmq.blocking.record_sender import RecordSender
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.errors import MQError, RowsNotSent
from pocketmq.model.message import SendReceipt
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.connections import settle
from pocketmq.spark.options import Reach
from pocketmq.spark.packing import Alone, Packed

T = TypeVar("T")

SEND_TIMEOUT = 10.0
AHEAD = 4
"""Requests that are ready while one is under way."""
PAUSE = 0.2
LONGEST_PAUSE = 2.0

_senders: dict[tuple[int, Reach, str, str], RecordSender] = {}


def sender_for(
    reach: Reach,
    group: str,
    *,
    purpose: str = "",
    retries: int = 2,
    check: TransactionCheck | None = None,
) -> RecordSender:
    """Give this process's sender, made when first asked for; `purpose` keeps others apart."""
    key = (os.getpid(), reach, group, purpose)
    sender = _senders.get(key)
    if sender is None:
        options = msgspec.structs.replace(reach.client(), start_wait=reach.retry_timeout)
        sender = RecordSender(
            group=group,
            options=options,
            check=check,
            retries=retries,
            send_timeout=max(SEND_TIMEOUT, reach.request_timeout),
        )
        sender.start()
        settle()
        _senders[key] = sender
    return sender


def forget_senders() -> None:
    """Close what this process keeps."""
    for key in [key for key in _senders if key[0] == os.getpid()]:
        _senders.pop(key).close()


def patiently(send: Callable[[], T], patience: float) -> T:
    """Send, and again for so many seconds while it fails for a reason that may pass."""
    deadline = time.monotonic() + patience
    pause = PAUSE
    while True:
        try:
            return send()
        except MQError as error:
            if not error.retryable or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


class TaskSends:
    """The sends of one task, in order, by a thread of their own while the task goes on."""

    def __init__(self, sender: RecordSender, patience: float, partition: int | None) -> None:
        self._sender = sender
        self._patience = patience
        self._partition = partition
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pocketmq-sink")
        self._under_way: deque[Future[None]] = deque()

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
        """Give the queues of a topic."""
        return patiently(lambda: self._sender.queues(topic), self._patience)

    def send(self, what: Packed | Alone) -> None:
        """Have something sent; waits while enough is ready. Raises `RowsNotSent` for any so far."""
        while len(self._under_way) >= AHEAD:
            self._under_way.popleft().result()
        work = self._packed if isinstance(what, Packed) else self._alone
        self._under_way.append(self._thread.submit(work, what))  # type: ignore[arg-type]

    def finish(self) -> None:
        """Wait until all is acknowledged; raises `RowsNotSent`."""
        while self._under_way:
            self._under_way.popleft().result()

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
