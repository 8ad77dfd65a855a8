"""Transactions: a half message, a function that decides its fate, and the broker that is told.

The half message is hidden from consumers until its end is told. That travels one way, as in Java:
if it gets lost, or nobody knew the end, the broker asks (`check_backs`).
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from pocketmq.balance.producer.transactions import (
    EndTransaction,
    end_after_branch,
    end_without_branch,
    runs_local_branch,
)
from pocketmq.client.callbacks import LocalCalls
from pocketmq.client.session import Session
from pocketmq.errors import MQError
from pocketmq.model.flags import TransactionState
from pocketmq.model.message import Message
from pocketmq.model.names import unwrap_namespace, wrap_namespace
from pocketmq.model.receipt import SendReceipt
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.requests.transactions import EndTransactionRequest

logger = logging.getLogger("pocketmq.client")

State: TypeAlias = TransactionState | None
LocalTransaction: TypeAlias = Callable[[Message, str], State | Awaitable[State]]
"""Given the message and the transaction's id. Raising, or giving None, leaves the end unknown."""

LOCAL_THREADS = 32
_LONGEST_REMARK = 1000


class TransactionReceipt(SendReceipt, frozen=True, kw_only=True):
    """Proof that a broker took a half message, and what became of its transaction.

    `error` is what the local function raised, if it did; the state is unknown then, and the
    broker will ask.
    """

    state: TransactionState
    error: Exception | None = None


class TransactionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The broker at `address` was told how a transaction ended, for those who keep a record."""

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


class Transactions:
    """Runs the transactions of one producer. Belongs to one event loop."""

    def __init__(
        self, session: Session, group: str, *, timeout: float, on_end: TakeEnd | None = None
    ) -> None:
        self._session = session
        self._group = group
        self._timeout = timeout
        self._on_end = on_end
        self._calls = LocalCalls(f"pocketmq-transaction-{group}", LOCAL_THREADS)

    async def run(
        self,
        message: Message,
        local: LocalTransaction,
        send: Callable[[], Awaitable[SendReceipt]],
    ) -> TransactionReceipt:
        """Send the half message with `send`, call the local function, tell the broker the end.

        Raises what `send` does; nothing is left to end then, unless the error's
        `outcome_unknown` says that the message may be stored: the broker will ask. Cancelled
        while the local function runs, it leaves the end unknown, too.
        """
        receipt = await send()
        error: Exception | None = None
        if runs_local_branch(receipt):
            outcome = await self._decide(message, local, receipt)
            error = outcome if isinstance(outcome, Exception) else None
            end = end_after_branch(receipt, outcome)
        else:
            end = end_without_branch(receipt)
        await self._tell(message, receipt, end)
        known = msgspec.structs.asdict(receipt)
        return TransactionReceipt(**known, state=end.state, error=error)

    def close(self) -> None:
        """Begin no more local functions."""
        self._calls.close()

    async def _decide(
        self, message: Message, local: LocalTransaction, receipt: SendReceipt
    ) -> State | Exception:
        try:
            state: State = await self._calls.call(local, message, receipt.message_id)
        except Exception as error:
            logger.exception(
                "the local function of transaction %s (topic %s) failed; the broker will ask",
                receipt.message_id,
                message.topic,
            )
            return error
        return state

    async def _tell(self, message: Message, receipt: SendReceipt, end: EndTransaction) -> None:
        """Tell the end once: whatever goes wrong, the broker asks later."""
        broker = end.queue.broker_name
        try:
            place = parse_offset_id(end.id_with_offset)
            address = self._session.brokers.address(broker, master_only=True)
            request = EndTransactionRequest(
                topic=wrap_namespace(self._session.options.namespace, message.topic),
                producer_group=self._group,
                tran_state_table_offset=end.queue_offset,
                commit_log_offset=place.commit_log_offset,
                commit_or_rollback=int(end.state),
                msg_id=end.message_id,
                transaction_id=end.transaction_id,
                bname=broker,
            )
            await tell_end(self._session, address, request, end.remark, timeout=self._timeout)
        except MQError as error:
            logger.warning(
                "transaction %s came to %s, but broker %s was not told: %s; it will ask",
                end.message_id,
                end.state.name,
                broker,
                error,
            )
            return
        if self._on_end is not None:
            self._on_end(
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


async def tell_end(
    session: Session,
    address: str,
    request: EndTransactionRequest,
    remark: str | None,
    *,
    timeout: float,  # noqa: ASYNC109 - for the connection alone
) -> None:
    """Tell a broker how a transaction ended; raises `ConnectFailed` and what `Session.check` does.

    What a peer or an application makes endless is cut.
    """
    short = None if remark is None else remark[:_LONGEST_REMARK]
    await session.calls.tell(
        address, RequestCode.END_TRANSACTION, request, timeout=timeout, remark=short
    )
