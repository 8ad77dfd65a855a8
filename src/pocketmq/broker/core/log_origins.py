"""Which messages of the log are copies of others: after a crash, the proof of what was done.

Committed messages, timed ones that were due and redelivered ones that were popped are copies.
Each copy names where its original lies: in the field RocketMQ has for the half message of a
committed one. Clients cannot write that field, so a copy is never mistaken.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pocketmq.protocol.record_scan import BODY_AT
from pocketmq.store import MessageStore

_CHUNK = 4096
_POPPED = 1 << 62
_CRC = struct.Struct(">i").unpack_from
_FLAG = struct.Struct(">i8x").unpack_from
_BORN = struct.Struct(">q").unpack_from
_ORIGIN = struct.Struct(">q").unpack_from


class Copy(NamedTuple):
    """A message made from another one."""

    position: int
    origin: int
    """What its field for the prepared transaction says."""
    sys_flag: int
    body_crc: int
    born_ms: int


def copies_since(store: MessageStore, position: int, topic: bytes = b"") -> Iterator[Copy]:
    """Yield the messages of the log, from a position on, that name another one.

    A copy of the very first message of the log looks like an original. So all committed messages
    are returned, and all messages of a topic that holds nothing but copies.
    """
    end = store.log.tail
    while position < end:
        found, following = store.walk(position, _CHUNK)
        for at, size, _, _, _, name, _ in found:
            view = store.log.view(at, size)
            if view is None:
                continue
            (sys_flag,) = _FLAG(view, 36)
            (origin,) = _ORIGIN(view, BODY_AT[sys_flag >> 4 & 3] - 12)
            if origin or sys_flag & 8 or name == topic:
                yield Copy(at, origin, sys_flag, _CRC(view, 8)[0], _BORN(view, 40)[0])
        if following == position:
            return
        position = following


def origin_of_timer(position: int) -> int:
    """Return what the copy of a timed message says of its original; no half message is named so."""
    return ~position


def timer_of_origin(origin: int) -> int | None:
    """Undo `origin_of_timer`; None for what is not a timed message's copy."""
    return ~origin if -_POPPED <= origin < 0 else None


def origin_of_popped(position: int) -> int:
    """Return what the copy of a popped message says of its original; no other copy says so."""
    return ~(position | _POPPED)
