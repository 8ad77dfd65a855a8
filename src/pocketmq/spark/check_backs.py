"""Answers to brokers that check half messages of exactly-once streams, taken from the ledger.

Tasks and the driver of a running query answer by themselves. `answering` does it for a driver whose
ledger no task can see, and while a query is down.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from pocketmq import ClientOptions, ReceivedMessage, TransactionState
from pocketmq.blocking.record_sender import RecordSender
from pocketmq.spark.ledger import BatchDecision, CommitLedger

TRANSACTION = "SPARK_TRANSACTION"
"""The property of a message that names query, micro-batch and transaction, separated by `/`."""
FRESH = 0.5
"""Seconds for which the last decided batch of a query is cached."""
_MOST = 1024


def ledger_check(
    ledger: CommitLedger,
) -> Callable[[ReceivedMessage], Awaitable[TransactionState]]:
    """Return a producer's check: commits what was decided, rolls back what never will be.

    It runs on the client's loop, not in a thread each: brokers may check very many at once.
    """
    decided: dict[tuple[str, int], BatchDecision] = {}
    last: dict[str, tuple[float, int]] = {}

    def last_batch(query: str) -> int:
        read_at, batch = last.get(query, (0.0, -1))
        now = time.monotonic()
        if not read_at or now - read_at > FRESH:
            batch = ledger.last(query)
            last[query] = now, batch
        return batch

    async def check(message: ReceivedMessage) -> TransactionState:
        query, _, rest = (message.get_property(TRANSACTION) or "").partition("/")
        number, _, transaction = rest.partition("/")
        if not transaction or not number.isascii() or not number.isdigit():
            return TransactionState.NONE
        batch = int(number)
        decision = decided.get((query, batch))
        if decision is None:
            # The order matters. Batches are decided one after the other, so a decision that is not
            # there once a later one has been seen was never made: roll back. Read the other way
            # round, this batch could be decided in between, and committed rows would be lost.
            later = last_batch(query) > batch
            decision = ledger.get(query, batch)
            if decision is None:
                return TransactionState.ROLLBACK if later else TransactionState.NONE
            if len(decided) >= _MOST:
                decided.clear()
            decided[query, batch] = decision
        counts = decision.commits(transaction, message.message_id)
        return TransactionState.COMMIT if counts else TransactionState.ROLLBACK

    return check


@contextmanager
def answering(options: ClientOptions, *, group: str, ledger: str) -> Iterator[RecordSender]:
    """Answer brokers that check half messages of a group, as long as the block runs."""
    with RecordSender(
        group=group, options=options, check=ledger_check(CommitLedger(ledger))
    ) as sender:
        yield sender
