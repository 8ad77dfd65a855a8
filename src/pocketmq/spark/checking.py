"""What brokers are told that ask about half messages of exactly-once streams: what the ledger says.

Tasks and the driver of a running query answer by themselves. `answering` does it for a driver whose
ledger no task can see, and while a query is down.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pocketmq.blocking.record_sender import RecordSender
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.model.flags import TransactionState
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.spark.ledger import BatchDecision, CommitLedger

TRANSACTION = "SPARK_TRANSACTION"
"""The property of a message that names query, micro-batch and transaction, separated by `/`."""
FRESH = 0.5
"""Seconds for which the last batch of a query is remembered."""
_MOST = 1024


def ledger_check(ledger: CommitLedger) -> TransactionCheck:
    """Give the check of a producer: what counts is committed, what cannot any more rolled back.

    It runs on the loop: brokers may have to ask about very many.
    """
    decided: dict[tuple[str, int], BatchDecision] = {}
    last: dict[str, tuple[float, int]] = {}

    def last_batch(query: str) -> int:
        looked, batch = last.get(query, (0.0, -1))
        now = time.monotonic()
        if not looked or now - looked > FRESH:
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
            # In this order: a batch whose decision is not seen after a later one's had none.
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
    """Answer brokers that ask about the half messages of a group, as long as the block runs."""
    with RecordSender(
        group=group, options=options, check=ledger_check(CommitLedger(ledger))
    ) as sender:
        yield sender
