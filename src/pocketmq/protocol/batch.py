"""Many messages in one body: what SEND_BATCH_MESSAGE carries, and 5.x stores as an inner batch.

Entries have no topic or queue of their own; those are the batch's.
"""

import struct
from collections.abc import Iterable, Sequence

import msgspec

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.model import Message, property_names
from pocketmq.model.names import is_retry_topic
from pocketmq.native import in_core
from pocketmq.protocol.message_ids import numbered_ids
from pocketmq.protocol.property_text import LIMIT as PROPERTIES_LIMIT
from pocketmq.protocol.property_text import encode_properties

ENTRY_OVERHEAD = 22
"""Bytes an entry takes besides its body and its properties."""

TOPIC_LIMIT = 127
# Size, magic and checksum (both 0: the broker computes its own), flag, size of the body.
_HEAD = struct.Struct(">iiiii")
_HEAD_FROM = _HEAD.unpack_from
_SIZE_FROM = struct.Struct(">i").unpack_from
_LENGTH = struct.Struct(">h")
_LENGTH_FROM = _LENGTH.unpack_from
_BEFORE_ID = encode_properties({property_names.WAIT: "true", property_names.UNIQUE_KEY: ""})[:-1]


class BatchEntry(msgspec.Struct, frozen=True, gc=False):
    """One message of a batch; the properties are text as `property_text` writes it."""

    body: bytes
    property_bytes: bytes = b""
    flag: int = 0

    def encoded_size(self) -> int:
        """Return how many bytes the entry takes in a batch."""
        return ENTRY_OVERHEAD + len(self.body) + len(self.property_bytes)


def batch_entry(message: Message, unique_id: str) -> BatchEntry:
    """Make a message ready for a batch, where each has an id of its own.

    Raises `InvalidInput` if its properties are too long.
    """
    wire = message.wire_properties()
    wire[property_names.UNIQUE_KEY] = unique_id
    return BatchEntry(message.body, encode_properties(wire), message.flag)


def plain_overhead(id_size: int) -> int:
    """Return the bytes of an entry besides its body, of a message with nothing but that."""
    return ENTRY_OVERHEAD + len(_BEFORE_ID) + id_size + 1


def encode_messages(messages: Sequence[Message], unique_ids: Sequence[str]) -> list[bytes]:
    """Return each message as its entry's bytes; the same as `batch_entry` and `encode_batch` make.

    Most messages of a batch have nothing but a body, and of the same size as the one before.
    Raises `InvalidInput` for values out of the format's range.
    """
    entries: list[bytes] = []
    size_of_last = flag_of_last = id_size = -1
    head = middle = b""
    raw_ids = ",".join(unique_ids).encode().split(b",") if unique_ids else []
    for message, own in zip(messages, raw_ids, strict=True):
        if message.tag or message.keys or message.properties:
            entries.append(encode_batch((batch_entry(message, own.decode()),)))
            continue
        body = message.body
        if len(body) != size_of_last or message.flag != flag_of_last or len(own) != id_size:
            size_of_last, flag_of_last, id_size = len(body), message.flag, len(own)
            text_size = len(_BEFORE_ID) + id_size + 1
            try:
                head = _HEAD.pack(
                    ENTRY_OVERHEAD + size_of_last + text_size, 0, 0, flag_of_last, size_of_last
                )
                middle = _LENGTH.pack(text_size) + _BEFORE_ID
            except struct.error as error:
                raise InvalidInput(
                    f"the flag {flag_of_last} of a message is out of range"
                ) from error
        entries.append(b"".join((head, body, middle, own, b"\2")))
    return entries


@in_core
def encode_numbered(
    messages: Sequence[Message], prefix: str, steps: Sequence[int]
) -> tuple[bytes, str]:
    """Return the body of a batch, and the ids of its messages with commas between them.

    The ids are those of `message_ids.numbered_ids`. Raises as `encode_messages` does.
    """
    ids = numbered_ids(prefix, steps)
    return b"".join(encode_messages(messages, ids)), ",".join(ids)


def entry_sizes(body: bytes) -> list[int]:
    """Return the size of each entry in the body of a batch that was encoded here."""
    sizes: list[int] = []
    position, end = 0, len(body)
    while position < end:
        (size,) = _SIZE_FROM(body, position)
        sizes.append(size)
        position += size
    return sizes


def check_batch(messages: Sequence[Message], *, delayed: bool = False) -> None:
    """Raise `InvalidInput` unless these messages may travel together, by Java's rules."""
    if not messages:
        raise InvalidInput("a batch needs at least one message")
    if delayed:
        raise InvalidInput("messages of a batch cannot be delayed; send them one by one")
    topic = messages[0].topic
    if is_retry_topic(topic):
        raise InvalidInput(f"messages to the retry topic {topic!r} cannot be sent as a batch")
    if len(topic.encode("utf-8", "replace")) > TOPIC_LIMIT:
        raise InvalidInput(f"a batch needs a topic of at most {TOPIC_LIMIT} bytes")
    for message in messages:
        if not message.body:
            raise InvalidInput("a message of the batch has no body")
        if message.priority is not None:
            raise InvalidInput(
                "messages of a batch share a queue and cannot have priorities; send them one by one"
            )
        other = message.topic
        if other is not topic and other != topic:
            raise InvalidInput(
                f"all messages of a batch need the same topic, not {topic!r} and {other!r}"
            )


def encode_batch(entries: Iterable[BatchEntry]) -> bytes:
    """Return the body of a batch; raises `InvalidInput` for values out of its range."""
    pieces: list[bytes] = []
    for entry in entries:
        body, text = entry.body, entry.property_bytes
        size = ENTRY_OVERHEAD + len(body) + len(text)
        try:
            head = _HEAD.pack(size, 0, 0, entry.flag, len(body))
            pieces += (head, body, _LENGTH.pack(len(text)), text)
        except struct.error as error:
            reason = f"a flag of {entry.flag}, or properties of more than {PROPERTIES_LIMIT} bytes"
            raise InvalidInput(f"a message does not fit into a batch: {reason}") from error
    return b"".join(pieces)


def decode_batch(body: bytes, most: int | None = None) -> list[BatchEntry]:
    """Read a batch's entries, `most` of them at most.

    As in Java magic and checksum mean nothing. Raises `MessageMalformed` with the position of the
    first entry that is cut off, whose parts do not add up to its size, or that is one too many.
    """
    entries: list[BatchEntry] = []
    position = 0
    end = len(body)
    while position < end:
        if end - position < ENTRY_OVERHEAD:
            raise MessageMalformed(
                f"{end - position} extra bytes at the end of the batch", position
            )
        if len(entries) == most:
            raise MessageMalformed(f"more than {most} messages", position)
        size, _, _, flag, body_size = _HEAD_FROM(body, position)
        stop = position + size
        if size < ENTRY_OVERHEAD or stop > end:
            raise MessageMalformed(f"an entry of {size} bytes; {end - position} remain", position)
        if not 0 <= body_size <= size - ENTRY_OVERHEAD:
            raise MessageMalformed(
                f"a body of {body_size} bytes does not fit into an entry of {size}", position
            )
        at = position + 20 + body_size
        (text_size,) = _LENGTH_FROM(body, at)
        if at + 2 + text_size != stop:
            reason = f"properties of {text_size} bytes do not end where the entry ends"
            raise MessageMalformed(reason, position)
        entries.append(BatchEntry(body[position + 20 : at], body[at + 2 : stop], flag))
        position = stop
    return entries
