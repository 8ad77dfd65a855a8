"""Many messages as one request: packed, and split where they are too many for one.

The rules are Java's: one topic, no delay, no retry topic, and never compressed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import RequestCode
from pocketmq.protocol.batch import check_batch, encode_messages

_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)


def prepare_batches(
    preparing: Preparing, messages: Sequence[Message], limit: int, *, split: bool
) -> list[Outgoing]:
    """Pack messages, in their order, into as few batches of at most `limit` bytes as possible.

    Without `split` they must fit into one. Raises `InvalidInput` for messages that cannot travel
    together, or do not fit.
    """
    try:
        check_batch(messages)
    except (AttributeError, TypeError) as error:
        raise InvalidInput("a batch is a list of Message") from error
    topic = preparing.wire_topic(messages[0].topic)
    now_ms = preparing.clock.now_ms()
    ids = preparing.ids.next_ids(now_ms, len(messages))
    entries = encode_messages(messages, ids)
    size = sum(map(len, entries))
    if size <= limit:
        return [pack_batch(preparing, topic, messages, entries, ids)]
    if not split:
        raise InvalidInput(
            f"a batch of {size} bytes is over the limit of {limit} (max_message_size); "
            "send fewer at once, or with split=True"
        )
    return [
        pack_batch(preparing, topic, messages[start:stop], entries[start:stop], ids[start:stop])
        for start, stop in _split(entries, limit)
    ]


def _split(entries: Sequence[bytes], limit: int) -> list[tuple[int, int]]:
    """Return the bounds of the batches: as few as possible, none over the limit."""
    cuts: list[tuple[int, int]] = []
    start = size = 0
    for at, entry in enumerate(entries):
        if len(entry) > limit:
            raise InvalidInput(f"a message of {len(entry)} bytes is over the limit of {limit}")
        if size + len(entry) > limit:
            cuts.append((start, at))
            start, size = at, 0
        size += len(entry)
    cuts.append((start, len(entries)))
    return cuts


@contextmanager
def receipts_in_error(receipts: list[SendReceipt]) -> Iterator[None]:
    """Add the receipts of the batches sent so far to a `SendFailed` of the next one."""
    try:
        yield
    except SendFailed as error:
        error.receipts = tuple(receipts)
        raise


def pack_batch(
    preparing: Preparing,
    topic: str,
    messages: Sequence[Message],
    entries: Sequence[bytes],
    ids: Sequence[str],
) -> Outgoing:
    """Return the request of one batch; `topic` is the name on the wire."""
    batch_id = preparing.ids.next_id(preparing.clock.now_ms())
    return Outgoing(
        topic,
        b"".join(entries),
        preparing.batch_properties(batch_id),
        ",".join(ids),
        code=_SEND_BATCH,
        messages=messages,
        batch_id=batch_id,
        for_5x=True,
    )
