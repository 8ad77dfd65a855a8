"""Deciding a transaction's fate on the producer's side.

A half message is sent like any other, synchronously; what its receipt says and what the local
branch does decide how the transaction ends. Sending and checking are not here.
"""

from collections.abc import Mapping

import msgspec

from pocketmq.model import MessageQueue, SendReceipt, TransactionState, property_names


class EndTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """Report the end of the transaction to the broker of the half message, by a one-way request.

    `NONE` means that the outcome is not known yet: the broker will check back. The commit log
    offset that the request needs is inside `id_with_offset`.
    """

    queue: MessageQueue
    state: TransactionState
    message_id: str
    id_with_offset: str
    queue_offset: int
    transaction_id: str | None
    remark: str | None = None


def half_properties(properties: Mapping[str, str], group: str) -> dict[str, str]:
    """Return a message's properties as a half message has them; a delay level falls away."""
    half = {name: value for name, value in properties.items() if name != property_names.DELAY_LEVEL}
    half[property_names.TRANSACTION_PREPARED] = "true"
    half[property_names.PRODUCER_GROUP] = group
    return half


def runs_local_branch(receipt: SendReceipt) -> bool:
    """Return whether the local branch runs: only if the half message is safely stored."""
    return receipt.ok


def branch_state(outcome: TransactionState | BaseException | None) -> TransactionState:
    """Return the outcome of a local branch or a check; nothing or an error means unknown."""
    if outcome in (TransactionState.COMMIT, TransactionState.ROLLBACK):
        return TransactionState(outcome)
    return TransactionState.NONE


def end_after_branch(
    receipt: SendReceipt, outcome: TransactionState | BaseException | None
) -> EndTransaction:
    """Decide the end after the local branch ran. Its error becomes the remark."""
    remark = None
    if isinstance(outcome, BaseException):
        name = type(outcome).__name__
        remark = f"executeLocalTransactionBranch exception: {name}: {outcome}"
    return _end(receipt, branch_state(outcome), remark)


def check_remark(error: BaseException) -> str:
    """Return the remark of a failed check, in Java's words."""
    return f"checkLocalTransactionState Exception: {type(error).__name__}: {error}"


def end_without_branch(receipt: SendReceipt) -> EndTransaction:
    """Roll back a half message that is not stored safely enough to build on."""
    return _end(receipt, TransactionState.ROLLBACK, None)


def _end(receipt: SendReceipt, state: TransactionState, remark: str | None) -> EndTransaction:
    broker_id = receipt.offset_message_id
    return EndTransaction(
        queue=receipt.queue,
        state=state,
        message_id=receipt.message_id,
        id_with_offset=broker_id if broker_id is not None else receipt.message_id,
        queue_offset=receipt.queue_offset,
        transaction_id=receipt.transaction_id,
        remark=remark,
    )
