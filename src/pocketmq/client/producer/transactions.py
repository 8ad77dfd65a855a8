"""Transactions: a half message, a local function that decides, and the end sent to the broker.

The half message is hidden from consumers until the broker receives its end. That is a one-way
request, as in Java: if it gets lost, or the end is unknown, the broker checks back (`check_backs`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from pocketmq.balance.producer import transactions
from pocketmq.client.callbacks import LocalCalls
from pocketmq.client.session import Session
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import Message, MessageQueue, SendReceipt, TransactionState
from pocketmq.model.names import unwrap_namespace, wrap_namespace
from pocketmq.protocol import RequestCode
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.requests.sending import EndTransactionRequest

logger = logging.getLogger("pocketmq.client")

State: TypeAlias = TransactionState | None
LocalTransaction: TypeAlias = Callable[[Message, str], State | Awaitable[State]]
"""Called with the message and the transaction's id. Raising, or returning None, leaves the end
unknown."""

Outcome: TypeAlias = tuple[State | Exception, Exception | None]
"""What a local function decided, for the broker, and the error for the caller."""

LOCAL_THREADS = 32
_LONGEST_REMARK = 1000


class TransactionReceipt(SendReceipt, frozen=True, kw_only=True, gc=True):
    """Proof that a broker stored a half message, and the state of its transaction.

    `error` is what the local function raised, or that what it returned is not a state; the state is
    unknown then, and the broker checks back.
    """

    state: TransactionState
    error: Exception | None = None


class TransactionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a transaction, as it was sent to the broker at `address`; for the trace."""

    group: str
    topic: str
    """Group and topic are as the application calls them."""
    tag: str | None
    keys: str | None
    message_id: str
    transaction_id: str | None
    state: TransactionState
    address: str
    region: str
    from_check: bool


TakeEnd: TypeAlias = Callable[[TransactionEnd], None]


class ReturnedStates:
    """Reads what a function returned as a transaction's state; what is not one is logged once."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._warned = False

    def read(self, result: object, transaction: str) -> tuple[State, InvalidInput | None]:
        """Return the state, or None with the error."""
        if isinstance(result, TransactionState) and result is not TransactionState.PREPARED:
            return result, None
        if type(result) is int and result in (TransactionState.COMMIT, TransactionState.ROLLBACK):
            return TransactionState(result), None
        simple = result is None or isinstance(result, bool | int | float | str)
        shown = repr(result)[:100] if simple else f"a {type(result).__name__}"  # repr may raise
        error = InvalidInput(
            f"{self._function} returned {shown}, which is not a state; "
            "return TransactionState.COMMIT, ROLLBACK or UNKNOWN"
        )
        logger.log(
            logging.DEBUG if self._warned else logging.WARNING,
            "%s: transaction=%s; the broker will check back",
            error,
            transaction,
        )
        self._warned = True
        return None, None if result is None else error


class Transactions:
    """Runs the transactions of one producer. Belongs to one event loop."""

    def __init__(
        self, session: Session, group: str, *, timeout: float, checked: bool = True
    ) -> None:
        self.on_end: TakeEnd | None = None
        """Called with each end that was sent."""
        self._session = session
        self._group = group
        self._timeout = timeout
        self._checked = checked
        self._states = ReturnedStates("local function of transaction")
        self._in_flight: set[asyncio.Future[None]] = set()
        self._calls = LocalCalls(f"pocketmq-transaction-{group}", LOCAL_THREADS)

    async def run(
        self,
        message: Message,
        local: LocalTransaction,
        send: Callable[[], Awaitable[SendReceipt]],
    ) -> TransactionReceipt:
        """Send the half message with `send`, call the local function, send the end to the broker.

        Raises what `send` does; nothing is left to end then, unless the error's
        `outcome_unknown` says that the message may be stored: the broker checks back. Cancelled
        while the local function runs, it leaves the end unknown, too.
        """
        self.warn_unchecked()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_flight.add(done)
        try:
            return await self._run(message, local, await send())
        finally:
            self._in_flight.discard(done)
            done.set_result(None)

    async def settled(self, timeout: float) -> None:  # noqa: ASYNC109 - not an error
        """Wait until transactions in flight have ended, at most `timeout` seconds."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=timeout)

    def close(self) -> None:
        """Start no more local functions."""
        self._calls.close()

    def warn_unchecked(self) -> None:
        """Warn once if brokers cannot check back. Any thread may call it."""
        if not self._checked:
            self._checked = True  # logged once
            logger.warning(
                "transactions without a check function: group=%s; if a commit or rollback is lost, "
                "the broker checks back and this producer cannot answer; pass `check` to it",
                self._group,
            )

    async def _run(
        self, message: Message, local: LocalTransaction, receipt: SendReceipt
    ) -> TransactionReceipt:
        outcome: Outcome | None = None
        if transactions.runs_local_branch(receipt):
            try:
                result = await self._calls.call(local, message, receipt.message_id)
            except Exception as error:  # noqa: BLE001 - `failed` logs it
                outcome = self.failed(error, message, receipt)
            else:
                outcome = self.returned(result, receipt)
        end, proof = ended(receipt, outcome)
        try:
            address, request = self.end_request(message, end)
            await send_end(self._session, address, request, end.remark, timeout=self._timeout)
        except MQError as error:
            log_unsent(end, error)
        else:
            self._trace(message, receipt, end, address)
        return proof

    # The steps of a transaction; any thread may take these

    def returned(self, result: object, receipt: SendReceipt) -> Outcome:
        """Return the outcome of a local function that returned something."""
        return self._states.read(result, receipt.message_id)

    def failed(self, error: Exception, message: Message, receipt: SendReceipt) -> Outcome:
        """Return the outcome of a local function that raised."""
        logger.error(
            "local function of transaction failed: topic=%s transaction=%s; "
            "the state is unknown and the broker will check back",
            message.topic,
            receipt.message_id,
            exc_info=error,
        )
        return error, error

    def end_request(
        self, message: Message, end: transactions.EndTransaction
    ) -> tuple[str, EndTransactionRequest]:
        """Return the broker's address and the request. Raises `BrokerNotFound`, `InvalidInput`."""
        topic = wrap_namespace(self._session.options.namespace, message.topic)
        queue = MessageQueue(topic, end.queue.broker_name, end.queue.queue_id)
        broker = self._session.addresses.holder(queue)
        place = parse_offset_id(end.id_with_offset)
        address = self._session.brokers.address(broker, master_only=True)
        return address, EndTransactionRequest(
            topic=topic,
            producer_group=self._group,
            tran_state_table_offset=end.queue_offset,
            commit_log_offset=place.commit_log_offset,
            commit_or_rollback=int(end.state),
            msg_id=end.message_id,
            transaction_id=end.transaction_id,
            bname=broker,
        )

    def _trace(
        self,
        message: Message,
        receipt: SendReceipt,
        end: transactions.EndTransaction,
        address: str,
    ) -> None:
        if self.on_end is not None:
            self.on_end(
                TransactionEnd(
                    group=unwrap_namespace(self._session.options.namespace, self._group),
                    topic=message.topic,
                    tag=message.tag,
                    keys=" ".join(message.keys) or None,
                    message_id=end.message_id,
                    transaction_id=end.message_id,
                    state=end.state,
                    address=address,
                    region=receipt.region_id,
                    from_check=False,
                )
            )


def ended(
    receipt: SendReceipt, outcome: Outcome | None
) -> tuple[transactions.EndTransaction, TransactionReceipt]:
    """Return the end of a transaction, and the proof for its caller.

    `outcome` is that of the local function, None if it did not run.
    """
    error: Exception | None = None
    if outcome is None:
        end = transactions.end_without_branch(receipt)
    else:
        state, error = outcome
        end = transactions.end_after_branch(receipt, state)
    return end, TransactionReceipt(
        status=receipt.status,
        message_id=receipt.message_id,
        offset_message_id=receipt.offset_message_id,
        queue=receipt.queue,
        queue_offset=receipt.queue_offset,
        transaction_id=receipt.transaction_id,
        recall_handle=receipt.recall_handle,
        region_id=receipt.region_id,
        trace_on=receipt.trace_on,
        state=end.state,
        error=error,
    )


def log_unsent(end: transactions.EndTransaction, error: MQError) -> None:
    """Log that an end was not sent: it is sent once, and the broker checks back later."""
    logger.warning(
        "cannot send the end of a transaction: transaction=%s state=%s broker=%s error=%s; "
        "the broker will check back",
        end.message_id,
        end.state.name,
        end.queue.broker_name,
        error,
    )


def short_remark(remark: str | None) -> str | None:
    """Cut a remark that a peer or an application made too long."""
    return None if remark is None else remark[:_LONGEST_REMARK]


async def send_end(
    session: Session,
    address: str,
    request: EndTransactionRequest,
    remark: str | None,
    *,
    timeout: float,  # noqa: ASYNC109 - for the connection alone
) -> None:
    """Send the end of a transaction; raises `ConnectFailed` and what `Session.check` does."""
    short = short_remark(remark)
    await session.calls.tell(
        address, RequestCode.END_TRANSACTION, request, timeout=timeout, remark=short
    )
