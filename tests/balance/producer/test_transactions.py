"""Ending transactions, and the small decisions before a send."""

import pytest

from pocketmq.balance.producer import transactions
from pocketmq.model import MessageQueue, SendReceipt, SendStatus, TransactionState

QUEUE = MessageQueue("T", "b", 2)
COMMIT, ROLLBACK, NONE = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.NONE


def receipt(status: SendStatus = SendStatus.SEND_OK, offset_id: str | None = "OFF") -> SendReceipt:
    return SendReceipt(
        status=status,
        message_id="MID",
        offset_message_id=offset_id,
        queue=QUEUE,
        queue_offset=7,
        transaction_id="TX",
    )


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        (SendStatus.SEND_OK, True),
        (SendStatus.FLUSH_DISK_TIMEOUT, False),
        (SendStatus.FLUSH_SLAVE_TIMEOUT, False),
        (SendStatus.SLAVE_NOT_AVAILABLE, False),
    ],
)
def test_the_local_branch_runs_only_on_a_safely_stored_half_message(
    status: SendStatus, runs: bool
) -> None:
    assert transactions.runs_local_branch(receipt(status)) is runs


def test_a_half_message_that_is_not_safe_is_rolled_back() -> None:
    assert transactions.end_without_branch(receipt(SendStatus.FLUSH_DISK_TIMEOUT)).state is ROLLBACK


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (COMMIT, COMMIT),
        (ROLLBACK, ROLLBACK),
        (NONE, NONE),
        (None, NONE),
        (ValueError("no money"), NONE),
        (TransactionState.PREPARED, NONE),
    ],
)
def test_a_branch_without_a_clear_word_leaves_the_broker_to_ask(
    outcome: TransactionState | Exception | None, state: TransactionState
) -> None:
    assert transactions.branch_state(outcome) is state


def test_the_end_carries_what_the_broker_needs() -> None:
    assert transactions.end_after_branch(receipt(), COMMIT) == transactions.EndTransaction(
        queue=QUEUE,
        state=COMMIT,
        message_id="MID",
        id_with_offset="OFF",
        queue_offset=7,
        transaction_id="TX",
    )


def test_an_error_of_the_branch_travels_as_a_remark() -> None:
    end = transactions.end_after_branch(receipt(), ValueError("no money"))
    assert end.state is NONE
    assert end.remark == "executeLocalTransactionBranch exception: ValueError: no money"


def test_without_the_brokers_id_the_messages_own_stands_in() -> None:
    assert transactions.end_after_branch(receipt(offset_id=None), COMMIT).id_with_offset == "MID"


def test_a_half_message_names_its_group_and_loses_its_delay() -> None:
    before = {"KEYS": "k", "DELAY": "3"}
    assert transactions.half_properties(before, "shop") == {
        "KEYS": "k",
        "TRAN_MSG": "true",
        "PGROUP": "shop",
    }
    assert before == {"KEYS": "k", "DELAY": "3"}
