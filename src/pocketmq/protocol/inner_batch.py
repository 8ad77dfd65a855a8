"""Inner batches (5.x): one stored record that holds several messages and takes a range of offsets.

Topics with the attribute `queue.type=BatchCQ` store a batch that way. The record's body is that of
the SEND_BATCH_MESSAGE request, its queue offset is the first message's, and its properties say how
many there are (INNER_NUM) and the first one's offset again (INNER_BASE).
"""

import struct
from collections.abc import Callable
from typing import Protocol

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.model import SysFlag, property_names
from pocketmq.protocol.batch import ENTRY_OVERHEAD, BatchEntry, decode_batch
from pocketmq.protocol.property_text import append_property, find_property

INNER_BATCH = int(SysFlag.INNER_BATCH)
WRAPPED = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
"""The flags of a record that consumers unwrap; both must be set."""

MOST_MESSAGES = 32767
"""Messages of an inner batch: Java reads their number as a signed 16-bit one."""

_NUMBER = property_names.INNER_NUM.encode()
_MOST_DIGITS = 5
_ENTRY: Callable[[bytes, int], tuple[int, int]] = struct.Struct(">i12xi").unpack_from
_LENGTH: Callable[[bytes, int], tuple[int]] = struct.Struct(">h").unpack_from


class StoredFields(Protocol):
    """What must be known of a stored record."""

    @property
    def sys_flag(self) -> int:
        """RocketMQ's own bits."""

    @property
    def property_bytes(self) -> bytes:
        """The properties as text."""


def is_queue_of_batches(attributes: dict[str, str]) -> bool:
    """Return whether a topic with these attributes stores batches as inner batches."""
    return attributes.get("queue.type") == "BatchCQ"


def batch_size(record: StoredFields) -> int:
    """Return how many messages an inner batch holds; 0 for a plain record.

    The flag decides which it is: a producer may write any property into a plain message.
    """
    if not record.sys_flag & INNER_BATCH:
        return 0
    digits = find_property(record.property_bytes, _NUMBER) or b""
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return 1
    return min(max(int(digits), 1), MOST_MESSAGES)


def count_entries(body: bytes) -> int:
    """Return how many messages the body of a batch holds, after a look at all their lengths.

    Raises `MessageMalformed` as `decode_batch` does, and `InvalidInput` if there is none, or there
    are more than a record can number.
    """
    number, at, end = 0, 0, len(body)
    while at <= end - ENTRY_OVERHEAD:
        size, body_size = _ENTRY(body, at)
        text_at, stop = at + 20 + body_size, at + size
        if body_size < 0 or text_at > stop - 2 or stop > end:
            break
        if _LENGTH(body, text_at)[0] != stop - text_at - 2:
            break
        number += 1
        at = stop
    if at != end:
        decode_batch(body)  # says what is wrong
        raise MessageMalformed("a batch that cannot be read", at)
    if not 0 < number <= MOST_MESSAGES:
        raise InvalidInput(f"an inner batch holds 1 to {MOST_MESSAGES} messages, not {number}")
    return number


def entries_from(body: bytes, first: int, most: int) -> list[BatchEntry]:
    """Return up to `most` messages of a batch's body, without the `first` ones.

    Raises `MessageMalformed` if one of those that come, or their lengths before, make no sense.
    """
    at, end = 0, len(body)
    for _ in range(first):
        if end - at < ENTRY_OVERHEAD or (size := _ENTRY(body, at)[0]) < ENTRY_OVERHEAD:
            break
        at += size
    stop = at
    for _ in range(most):
        if end - stop < ENTRY_OVERHEAD or (size := _ENTRY(body, stop)[0]) < ENTRY_OVERHEAD:
            break
        stop += size
    return decode_batch(body[at:stop])


def with_number(text: bytes, number: int) -> bytes:
    """Return properties that say how many messages there are. Raises `InvalidInput` if too long."""
    return append_property(text, property_names.INNER_NUM, str(number))


def with_base(text: bytes, offset: int) -> bytes:
    """Return properties with the offset of the first message. Raises `InvalidInput` if too long."""
    return append_property(text, property_names.INNER_BASE, str(offset))
