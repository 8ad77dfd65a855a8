"""Transactions that their caller's own thread carries out: half message, local function, end.

The steps are those of `client.producer.transactions`. The local function runs in the caller's
thread; one that is a coroutine function runs on the loop, as do transactions that hooks watch.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from pocketmq.balance.producer import transactions
from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.sending import BlockingSending
from pocketmq.client.callbacks import is_coroutine_function
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.end_frames import end_frame
from pocketmq.client.producer.producer_life import RunningProducer
from pocketmq.client.producer.transactions import (
    LocalTransaction,
    Outcome,
    TransactionReceipt,
    ended,
    log_unsent,
    send_end,
    short_remark,
)
from pocketmq.errors import MQError
from pocketmq.model import Message, SendReceipt, TransactionState
from pocketmq.protocol import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG
from pocketmq.protocol.requests.sending import EndTransactionRequest

T = TypeVar("T")


class BlockingTransactions:
    """The transactions of a blocking producer. Any thread may run one. Made on the loop."""

    def __init__(
        self, running: RunningProducer, sending: BlockingSending, thread: LoopThread
    ) -> None:
        self._session = running.session
        self._steps = running.transactions
        self._sending = sending
        self._thread = thread
        self._timeout = running.sending.options.send_timeout
        self._half = transactions.half_properties({}, running.group)
        self._in_flight: set[object] = set()  # adding and removing are one step for all threads
        self._fewer = CallsInFlight()
        self._settling = False

    def may_run(self, local: LocalTransaction) -> bool:
        """Return whether a transaction can run in the caller's thread."""
        return not self._sending.watched and not is_coroutine_function(local)

    def run(
        self,
        message: Message,
        local: LocalTransaction,
        choice: Choice | None,
        timeout: float | None,
    ) -> TransactionReceipt:
        """Send the half message, call the local function, send the end to the broker.

        Raises as `Transactions.run` does. Interrupted while the local function runs, it leaves the
        end unknown: the broker checks back.
        """
        self._steps.warn_unchecked()
        this = object()
        try:
            self._in_flight.add(this)
            receipt: SendReceipt | None = None
            if choice is None and timeout is None:
                receipt = self._sending.send_half(message, self._half)
            if receipt is None:
                outgoing = self._sending.preparing.prepare(message, self._half)
                receipt = self._sending.deliver(outgoing, choice, timeout=timeout)
            outcome: Outcome | None = None
            if transactions.runs_local_branch(receipt):
                outcome = self._decide(message, local, receipt)
            end, proof = ended(receipt, outcome)
            try:
                address, request = self._steps.end_request(message, end)
                self._send_end(address, request, end.remark)
            except MQError as error:
                log_unsent(end, error)
            return proof
        finally:
            self._in_flight.discard(this)
            if self._settling:  # read after the removal, and set before the wait: none is missed
                self._fewer.notify()

    def settled(self, timeout: float) -> None:
        """Wait until transactions in flight have ended, at most `timeout` seconds."""
        self._settling = True
        self._fewer.wait(lambda: not self._in_flight, timeout)

    def _decide(self, message: Message, local: LocalTransaction, receipt: SendReceipt) -> Outcome:
        try:
            result = local(message, receipt.message_id)
            if type(result) is not TransactionState and inspect.isawaitable(result):
                result = self._thread.call(_awaited(result))
        except Exception as error:  # noqa: BLE001 - `failed` logs it
            return self._steps.failed(error, message, receipt)
        return self._steps.returned(result, receipt)

    def _send_end(self, address: str, request: EndTransactionRequest, remark: str | None) -> None:
        session = self._session
        session.check()
        made = end_frame(request) if remark is None and not session.calls.hooks else None
        frame = made or self._any_frame(request, remark)
        if not self._sending.exchange.tell_frame(address, frame, self._timeout):
            limit = self._timeout
            self._thread.call(send_end(session, address, request, remark, timeout=limit))

    def _any_frame(
        self, request: EndTransactionRequest, remark: str | None
    ) -> Callable[[int], bytes]:
        command = self._session.calls.request(RequestCode.END_TRANSACTION, request)

        def frame(opaque: int) -> bytes:
            return msgspec.structs.replace(
                command, opaque=opaque, flag=ONEWAY_FLAG, remark=short_remark(remark)
            ).encode()

        return frame


async def _awaited(work: Awaitable[T]) -> T:
    return await work
