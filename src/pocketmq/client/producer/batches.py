"""Many messages as one request: packed, and split where they are too many for one.

The rules are Java's: one topic, no delay, no retry topic, and never compressed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.errors import InvalidInput, SendFailed
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import RequestCode
from pocketmq.protocol.batch import check_batch, encode_numbered, entry_sizes

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
        raise InvalidInput("a batch must be a list of Message") from error
    topic = preparing.wire_topic(messages[0].topic)
    now_ms = preparing.clock.now_ms()
    prefix, steps = preparing.ids.take(now_ms, len(messages))
    body, ids = encode_numbered(messages, prefix, steps)
    size = len(body)
    if size <= limit:
        return [pack_batch(preparing, topic, messages, body, ids)]
    if not split:
        raise InvalidInput(
            f"a batch of {size} bytes is over the limit of {limit} (max_message_size); "
            "send smaller batches, or with split=True"
        )
    id_size = len(prefix) + 5  # with the comma behind it
    return [
        pack_batch(
            preparing,
            topic,
            messages[cut.start : cut.stop],
            body[cut.begins : cut.ends],
            ids[cut.start * id_size : cut.stop * id_size - 1],
        )
        for cut in _split(entry_sizes(body), limit)
    ]


class _Cut(msgspec.Struct, frozen=True, gc=False):
    """One batch of several: the numbers of its messages, and where its bytes are."""

    start: int
    stop: int
    begins: int
    ends: int


def _split(sizes: Sequence[int], limit: int) -> list[_Cut]:
    """Return the bounds of the batches: as few as possible, none over the limit."""
    cuts: list[_Cut] = []
    start = begins = ends = 0
    for at, size in enumerate(sizes):
        if size > limit:
            raise InvalidInput(f"a message of {size} bytes is over the limit of {limit}")
        if ends + size - begins > limit:
            cuts.append(_Cut(start, at, begins, ends))
            start, begins = at, ends
        ends += size
    cuts.append(_Cut(start, len(sizes), begins, ends))
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
    body: bytes,
    ids: str,
) -> Outgoing:
    """Return the request of one batch; `topic` is the name on the wire."""
    batch_id = preparing.ids.next_id(preparing.clock.now_ms())
    return Outgoing(
        topic,
        body,
        preparing.batch_properties(batch_id),
        ids,
        code=_SEND_BATCH,
        messages=messages,
        batch_id=batch_id,
        for_5x=True,
    )
