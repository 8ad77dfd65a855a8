"""The bytes of usual pops: responses read in one step.

Usual is what nearly all are: plain messages of one queue that were not popped before. Pure
functions over bytes and values, two of which the compiled core replaces; None stands for anything
unusual, which `questions` and `popped` then read. Both ways give the same.
"""

import re
import struct
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec

from pocketmq.model import property_names
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.native import in_core
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.command import RESPONSE_FLAG
from pocketmq.protocol.compression import INFLATE_LIMIT
from pocketmq.protocol.pulled import plain_messages
from pocketmq.protocol.pulled_message import deliver
from pocketmq.protocol.record_scan import BODY_AT, FLAG_BYTE

_PREFIX = struct.Struct(">II")
_INT = struct.Struct(">i").pack
_LONGEST = 64 * 1024  # bytes of a header that are read without counting its fields first
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_POP_CK, _FIRST_POP = property_names.POP_CHECKPOINT, property_names.FIRST_POP_TIME
_HANDLED, _POPPED_BEFORE = _POP_CK.encode(), _FIRST_POP.encode()
_RETRY = RETRY_PREFIX.encode()
_ONE_QUEUE = re.compile(r"((0|1|2) ([0-9]{1,9}) )([0-9]{1,18})\Z").match
_OFFSETS = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18})*\Z").match


class _PopFields(msgspec.Struct, frozen=True, gc=False):
    popTime: _Int64  # noqa: N815 - Java's keys
    invisibleTime: _Int64  # noqa: N815
    reviveQid: _Int32  # noqa: N815
    restNum: _Int64  # noqa: N815
    startOffsetInfo: str  # noqa: N815
    msgOffsetInfo: str  # noqa: N815
    orderCountInfo: str | None = None  # noqa: N815


class _Done(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    code: _Int32
    flag: _Int32
    opaque: _Int32
    language: str = "JAVA"
    version: _Int32 = 0


class _PopAnswer(_Done, frozen=True, gc=False, kw_only=True):
    extFields: _PopFields  # noqa: N815 - Java's keys


A = TypeVar("A", bound=_Done)


_read_pop = msgspec.json.Decoder(_PopAnswer, strict=False).decode
_read_done = msgspec.json.Decoder(_Done, strict=False).decode


def _header_end(data: bytes) -> int | None:
    """Return where the header of a whole response ends; None if it is cut, or large."""
    if len(data) < 8:
        return None
    length, header = _PREFIX.unpack_from(data)
    if length + 4 != len(data) or header + 4 > length or header > _LONGEST:
        return None
    end: int = 8 + header
    return end


def _answer(read: Callable[[bytes], A], header: bytes, opaque: int) -> A | None:
    """Return a header that says "done" in response to a request; None for any other."""
    try:
        found = read(header)
    except (msgspec.DecodeError, ValueError):
        return None
    is_done = not found.code and found.opaque == opaque and found.flag & RESPONSE_FLAG
    return found if is_done else None


@in_core
def read_usual_pop(
    broker: str, topic: str, data: bytes, opaque: int
) -> list[ReceivedMessage] | None:
    """Return the messages of a response, as `popped.read_popped` does.

    None if `data` is not the whole response, or it is not a usual one.
    """
    end = _header_end(data)
    answer = None if end is None else _answer(_read_pop, data[8:end], opaque)
    if answer is None:
        return None
    fields, body = answer.extFields, data[end:]
    start = _ONE_QUEUE(fields.startOffsetInfo)
    if start is None or fields.orderCountInfo or _HANDLED in body or _POPPED_BEFORE in body:
        return None
    where, mark, queue_id, first = start.groups()
    texts = fields.msgOffsetInfo
    if not texts.startswith(where) or not _OFFSETS(texts, len(where)):
        return None
    messages, end = plain_messages(body, DeliveryContext(broker))
    offsets = texts[len(where) :].split(",")
    if end != len(body) or len(offsets) != len(messages) or not _are_of(messages, mark, queue_id):
        return None
    # Numbers in their shortest form, as `PopHandle` writes them.
    common = (
        f"{int(first)} {fields.popTime} {fields.invisibleTime} {fields.reviveQid} "
        f"{mark} {broker} {int(queue_id)} "
    )
    popped_at = str(fields.popTime)
    return [
        deliver(
            message,
            DeliveryContext(
                broker,
                None,
                topic,
                0,
                {_POP_CK: f"{common}{int(offset)}", _FIRST_POP: popped_at},
                INFLATE_LIMIT,
            ),
        )
        for message, offset in zip(messages, offsets, strict=True)
    ]


def _are_of(messages: list[ReceivedMessage], mark: str, queue_id: str) -> bool:
    """Return whether all messages are of the queue that a response names."""
    wanted: bytes | None = None
    for message in messages:
        data, at = message.buffer, message.position
        body_end = at + BODY_AT[data[at + FLAG_BYTE] >> 4 & 3] + message.body_size
        # The queue's id, and the topic with its length.
        place = data[at + 12 : at + 16] + data[body_end : message.text_at - 2]
        if wanted is None:
            wanted = place
            name = place[5:]  # a plain message's topic has one byte for its length
            if (mark == "0") is name.startswith(_RETRY) or place[:4] != _INT(int(queue_id)):
                return False
            if mark != "0" and (mark == "2") is not (b"+" in name):
                return False
        elif place != wanted:
            return False
    return True


@in_core
def is_done(data: bytes, opaque: int) -> bool | None:
    """Return whether `data` is one whole response that says "done"; None for anything else."""
    end = _header_end(data)
    if end is None or _answer(_read_done, data[8:end], opaque) is None:
        return None
    return True
