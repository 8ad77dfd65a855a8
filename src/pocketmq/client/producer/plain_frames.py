"""The bytes of a plain send: the request of one message, and the response that says it is stored.

Plain is what nearly all messages are: no flag, no keys, no properties of their own, not compressed.
Pure functions over bytes, which the compiled core replaces. What is not plain is written and read
by `requests`.
"""

import struct
from typing import Annotated, TypeAlias

import msgspec

from pocketmq.model.message import DEFAULT_REGION
from pocketmq.native import in_core
from pocketmq.protocol.command import RESPONSE_FLAG
from pocketmq.protocol.peers import CURRENT_VERSION

Stored: TypeAlias = tuple[str, int, int, str | None, str | None, str, bool]
"""The broker's id of a message, its queue and offset, transaction, recall handle, region, trace."""

_PREFIX = struct.Struct(">II")
TAIL = b',"serializeTypeCurrentRPC":"JSON","version":%d}' % CURRENT_VERSION
_LONGEST = 64 * 1024  # bytes of a header that are read without counting its fields first
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class StoredFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a response that a receipt needs."""

    msgId: str  # noqa: N815 - Java's keys
    queueId: _Int32  # noqa: N815
    queueOffset: _Int64  # noqa: N815
    transactionId: str | None = None  # noqa: N815
    batchUniqId: str | None = None  # noqa: N815
    recallHandle: str | None = None  # noqa: N815
    region: str | None = msgspec.field(name="MSG_REGION", default=None)
    trace_on: str | None = msgspec.field(name="TRACE_ON", default=None)


class _Answer(msgspec.Struct, frozen=True, gc=False):
    """A whole header of such a response; keys that say nothing about the message are left out."""

    extFields: StoredFields  # noqa: N815 - Java's keys
    code: _Int32
    flag: _Int32
    opaque: _Int32
    language: str = "JAVA"
    version: _Int32 = 0


_read_answer = msgspec.json.Decoder(_Answer, strict=False).decode


@in_core
def plain_frame(  # noqa: PLR0917 - for each message: keywords would cost
    head: bytes,
    middle: bytes,
    tail: bytes,
    prefix: str,
    number: int,
    body: bytes,
    born_ms: int,
    opaque: int,
) -> tuple[bytes, str]:
    """Write the whole frame of a plain message, as `RequestWriter.frame` does; return its id, too.

    `head` and `middle` are its queue's template, `tail` is what follows the id in its property
    text, as in JSON (see `json_text`); `prefix` and `number` are the id (`UniqueIds.next_parts`).
    """
    unique_id = "%s%04X" % (prefix, number & 0xFFFF)  # noqa: UP031 - quicker
    header = (
        b'%b0","g":"%d","h":"0","i":"UNIQ_KEY\\u0001%b%b","j":"0%b0,"language":"PYTHON","opaque":%d%b'
        % (head, born_ms, unique_id.encode(), tail, middle, opaque, TAIL)
    )
    size = len(header)
    return _PREFIX.pack(4 + size + len(body), size) + header + body, unique_id


@in_core
def stored_answer(data: bytes, opaque: int) -> Stored | None:
    """Return what a receipt needs, if `data` is one frame: a response that says "stored".

    None for anything else, be it a refusal, half a frame, or the response to another request: then
    nothing is known yet.
    """
    size = len(data)
    if size < 8:
        return None
    length, header = _PREFIX.unpack_from(data)
    if length + 4 != size or header + 8 != size or header > _LONGEST:  # no body, a header of JSON
        return None
    try:
        answer = _read_answer(data[8:])
    except (msgspec.DecodeError, ValueError):
        return None
    stored = answer.extFields
    if (
        answer.code
        or answer.opaque != opaque
        or not answer.flag & RESPONSE_FLAG
        or stored.batchUniqId is not None
    ):
        return None
    return (
        stored.msgId,
        stored.queueId,
        stored.queueOffset,
        stored.transactionId,
        stored.recallHandle,
        stored.region or DEFAULT_REGION,
        stored.trace_on != "false",
    )


def json_text(text: str) -> bytes:
    """Return a text as JSON has it, without the quotes around it."""
    return msgspec.json.encode(text)[1:-1]
