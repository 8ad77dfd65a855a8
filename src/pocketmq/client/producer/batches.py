"""Many messages as one request: packed, and cut where they are too many for one.

The rules are Java's: one topic, no delay, no retry topic, and never compressed.
"""

from collections.abc import Sequence

from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model.message import Message
from pocketmq.model.receipt import SendReceipt
from pocketmq.protocol.batch import (
    BatchEntry,
    batch_entry,
    check_batch,
    encode_batch,
    split_batch,
)
from pocketmq.protocol.codes import RequestCode

_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)


class Batch:
    """What travels as one request, and the messages in it."""

    __slots__ = ("messages", "outgoing")

    def __init__(self, messages: Sequence[Message], outgoing: Outgoing) -> None:
        self.messages = messages
        self.outgoing = outgoing


def prepare_batches(
    preparing: Preparing, messages: Sequence[Message], limit: int, *, split: bool
) -> list[Batch]:
    """Pack messages, in their order, into as few batches of at most `limit` bytes as possible.

    Without `split` they must fit into one. Raises `InvalidInput` for messages that cannot travel
    together, or do not fit.
    """
    check_batch(messages)
    topic = preparing.wire_topic(messages[0].topic)
    now_ms = preparing.clock.now_ms()
    ids = preparing.ids.next_ids(now_ms, len(messages))
    entries = [batch_entry(message, own) for message, own in zip(messages, ids, strict=True)]
    parts = split_batch(entries, limit)
    if len(parts) > 1 and not split:
        size = sum(entry.encoded_size() for entry in entries)
        raise InvalidInput(
            f"a batch of {size} bytes is over the limit of {limit} (max_message_size); "
            "send fewer at once, or with split=True"
        )
    batches = []
    start = 0
    for part in parts:
        stop = start + len(part)
        outgoing = _outgoing(preparing, topic, part, ids[start:stop])
        batches.append(Batch(messages[start:stop], outgoing))
        start = stop
    return batches


async def deliver_batches(
    sending: Sending,
    batches: Sequence[Batch],
    choice: Choice | None,
    timeout: float | None,  # noqa: ASYNC109 - of each
) -> list[SendReceipt]:
    """Send batches one after another; a `SendFailed` has the receipts of those before it."""
    receipts: list[SendReceipt] = []
    for batch in batches:
        try:
            receipt = await sending.deliver(batch.outgoing, batch.messages, choice, timeout=timeout)
        except SendFailed as error:
            error.receipts = tuple(receipts)
            raise
        receipts.append(receipt)
    return receipts


def _outgoing(
    preparing: Preparing, topic: str, entries: Sequence[BatchEntry], ids: Sequence[str]
) -> Outgoing:
    batch_id = preparing.ids.next_id(preparing.clock.now_ms())
    return Outgoing(
        topic,
        encode_batch(entries),
        preparing.batch_properties(batch_id),
        ",".join(ids),
        code=_SEND_BATCH,
        batch_id=batch_id,
    )
