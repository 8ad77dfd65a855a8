"""The copy of a message in another cluster: the same, with a property that names its origin.

Pure functions over values. A broker's own properties are not copied, nor those that would make it
repeat what was done already: delay the message, or check its transaction.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from pocketmq.model import COMPRESSION_MASK, SysFlag, property_names
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.batch import ENTRY_OVERHEAD, BatchEntry, encode_batch
from pocketmq.protocol.property_text import decode_properties, encode_properties

ORIGIN = "MIGRATED_FROM"
"""The property of a copy: `migration/broker/queue/offset/born`, the last in milliseconds."""
DELAYED_ORIGIN = "MIGRATED_DELAYED"
"""The property of a message that was moved while delayed: `migration/broker/…/offset`."""

_COMPRESSED = int(SysFlag.COMPRESSED)
_KEPT_FLAGS = _COMPRESSED | COMPRESSION_MASK
_MOST_IN_BATCH = 256
_BATCH_SIZE = 512 << 10
_BATCH_TOPIC = 127
LEFT_BEHIND = frozenset(
    {
        property_names.BATCH_UNIQUE_KEY,
        property_names.CLUSTER,
        property_names.CRC32,
        property_names.DELAY_LEVEL,
        property_names.INNER_BASE,
        property_names.INNER_NUM,
        property_names.MAX_OFFSET,
        property_names.MIN_OFFSET,
        property_names.MSG_REGION,
        property_names.POP_CHECKPOINT,
        property_names.POP_CHECKPOINT_OFFSET,
        property_names.PREPARED_QUEUE_OFFSET,
        property_names.REAL_QUEUE_ID,
        property_names.REAL_TOPIC,
        property_names.TIMER_DELAY_LEVEL,
        property_names.TIMER_DELAY_MS,
        property_names.TIMER_DELAY_SEC,
        property_names.TIMER_DELETE_UNIQUE_KEY,
        property_names.TIMER_DELIVER_MS,
        property_names.TIMER_DEQUEUE_MS,
        property_names.TIMER_ENQUEUE_MS,
        property_names.TIMER_OUT_MS,
        property_names.TIMER_ROLL_TIMES,
        property_names.TRACE_ON,
        property_names.TRANSACTION_CHECK_TIMES,
        property_names.TRANSACTION_PREPARED,
        "INNER_MULTI_QUEUE_OFFSET",
        ORIGIN,
        DELAYED_ORIGIN,
    }
)
"""Properties that belong to the broker, or have served their purpose."""


class Origin(NamedTuple):
    """The original of a copy."""

    migration: str
    broker: str
    queue_id: int
    offset: int

    def text(self, born_ms: int) -> str:
        """Return it as the value of the property."""
        return f"{self.migration}/{self.broker}/{self.queue_id}/{self.offset}/{born_ms}"


class CopyRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that sends one message or a batch to a queue."""

    first: int
    count: int
    body: bytes
    properties: str
    born_ms: int
    flag: int
    sys_flag: int
    reconsume_times: int

    @property
    def is_batch(self) -> bool:
        """Whether the body is a batch's."""
        return self.count > 1


def origin_of(message: ReceivedMessage) -> Origin | None:
    """Return the original of a copy; None if the message is not a copy."""
    text = message.get_property(ORIGIN)
    if text is None:
        return None
    parts = text.rsplit("/", 3)
    migration, slash, broker = parts[0].partition("/")
    numbers = parts[1:]
    if not slash or len(numbers) != 3 or not all(_is_number(each) for each in numbers):
        return None
    return Origin(migration, broker, int(numbers[0]), int(numbers[1]))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def kept_properties(message: ReceivedMessage) -> dict[str, str]:
    """Return the properties of a copy, without the one that names its origin.

    A message without a unique id keeps the id it was listed by.
    """
    found = decode_properties(message.property_bytes)
    kept = {name: value for name, value in found.items() if name not in LEFT_BEHIND}
    kept.setdefault(property_names.UNIQUE_KEY, message.message_id)
    return kept


def digest(message: ReceivedMessage) -> int:
    """Return a hash that is equal for messages that are equal to a consumer.

    WAIT does not count: it is for the broker, and brokers of 4.x keep it in batches only.
    """
    kept = kept_properties(message)
    kept.pop(property_names.WAIT, None)
    parts = [f"{name}\1{value}\2" for name, value in sorted(kept.items())]
    seen = blake2b(message.body, digest_size=8)
    seen.update("".join(parts).encode("utf-8", "replace"))
    seen.update(b"%d" % message.flag)
    return int.from_bytes(seen.digest())


def requests_for(
    messages: Sequence[ReceivedMessage], topic: str, migration: str, within_ms: int
) -> Iterator[CopyRequest]:
    """Yield the requests that copy messages of one queue, in order, as few as possible.

    A batch has one born timestamp, so only messages born within `within_ms` milliseconds share one.
    Compressed messages, those of retry topics and those retried before go alone: a batch cannot
    carry their flags. Raises `InvalidInput` for properties that the format cannot hold.
    """
    batch: list[tuple[ReceivedMessage, bytes]] = []
    size = 0
    alone = is_retry_topic(topic) or len(topic.encode()) > _BATCH_TOPIC
    for message in messages:
        text = _text_of(message, migration)
        if alone or not _may_share(message):
            yield from _gathered(batch)
            batch, size = [], 0
            yield _single(message, text)
            continue
        needed = ENTRY_OVERHEAD + message.body_size + len(text)
        if batch and (
            len(batch) == _MOST_IN_BATCH
            or size + needed > _BATCH_SIZE
            or message.queue_offset != batch[-1][0].queue_offset + 1
            or abs(message.born_timestamp_ms - batch[0][0].born_timestamp_ms) > within_ms
        ):
            yield from _gathered(batch)
            batch, size = [], 0
        batch.append((message, text))
        size += needed
    yield from _gathered(batch)


def _text_of(message: ReceivedMessage, migration: str) -> bytes:
    origin = Origin(migration, message.broker_name, message.queue_id, message.queue_offset)
    kept = kept_properties(message)
    kept[ORIGIN] = origin.text(message.born_timestamp_ms)
    return encode_properties(kept)


def _may_share(message: ReceivedMessage) -> bool:
    compressed = message.sys_flag & _COMPRESSED
    return bool(not compressed and message.body_size and not message.reconsume_times)


def _gathered(batch: list[tuple[ReceivedMessage, bytes]]) -> Iterator[CopyRequest]:
    if not batch:
        return
    first, text = batch[0]
    if len(batch) == 1:
        yield _single(first, text)
        return
    entries = [BatchEntry(message.body, own, message.flag) for message, own in batch]
    yield CopyRequest(
        first=first.queue_offset,
        count=len(batch),
        body=encode_batch(entries),
        properties="",
        born_ms=first.born_timestamp_ms,
        flag=0,
        sys_flag=0,
        reconsume_times=0,
    )


def _single(message: ReceivedMessage, text: bytes) -> CopyRequest:
    return CopyRequest(
        first=message.queue_offset,
        count=1,
        body=message.stored_body,
        properties=text.decode("utf-8", "replace"),
        born_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag & _KEPT_FLAGS,
        reconsume_times=message.reconsume_times,
    )
