"""The bytes of plain sends: the requests of messages, and the responses that say they are stored.

Plain is what nearly all messages are: no flag, no keys, no properties of their own, not
compressed. Pure functions over bytes, which the compiled core replaces; and the signatures of
sends. What is not plain is written and read by `requests`.
"""

import struct
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from pocketmq.model import SendReceipt, SendStatus
from pocketmq.model.message import DEFAULT_REGION
from pocketmq.native import in_core
from pocketmq.protocol.command import RESPONSE_FLAG
from pocketmq.protocol.header_json import REQUEST_TAIL
from pocketmq.protocol.signature import (
    ACCESS_KEY,
    BINDING,
    SECURITY_TOKEN,
    SIGNATURE,
    PartlySigned,
    SigningUser,
    send_binding,
)

Stored: TypeAlias = tuple[str, int, int, str | None, str | None, str, bool]
"""The broker's id of a message, its queue and offset, transaction, recall handle, region, trace."""

# Places in what was posted; all other requests that wait are shorter.
_MESSAGE, _QUEUE, _ASKED, _WINDOW = 10, 11, 14, 15
STORED = SendStatus.SEND_OK
"""The status of a receipt; members of an enum are slow to look up."""
_PREFIX = struct.Struct(">II")
_LONGEST = 64 * 1024  # bytes of a header that are read without counting its fields first
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ReceiptFields(msgspec.Struct, frozen=True, gc=False):
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

    extFields: ReceiptFields  # noqa: N815 - Java's keys
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

    `head` and `middle` are its queue's template (`plain`, `middle`), `tail` is what follows the id
    in its property text, as in JSON (see `json_text`); `prefix` and `number` are the id
    (`UniqueIds.next_parts`).
    """
    name = "%s%04X" % (prefix, number & 0xFFFF)  # noqa: UP031 - quicker
    header = (
        b'%b","g":"%d","h":"0","i":"UNIQ_KEY\\u0001%b%b","j":"0%b0,"language":"PYTHON","opaque":%d%b'
        % (head, born_ms, name.encode(), tail, middle, opaque, REQUEST_TAIL)
    )
    size = len(header)
    return _PREFIX.pack(4 + size + len(body), size) + header + body, name


@in_core
def plain_frames(posted: Sequence[tuple[Any, ...]]) -> bytes:
    """Return the frames of messages, one after another.

    `posted` are the messages as `plain_sends.Posted` has them.
    """
    return b"".join(
        [
            plain_frame(
                template.plain, template.middle, tail, prefix, number, message.body, born_ms, opaque
            )[0]
            for _, _, _, _, opaque, template, tail, prefix, number, born_ms, message, *_ in posted
        ]
    )


@in_core
def stored_answer(data: bytes, opaque: int) -> Stored | None:
    """Return what a receipt needs, if `data` is one frame: a response that says "stored".

    None for anything else, be it a refusal, half a frame, or the response to another request: then
    nothing is known yet.
    """
    found = usual_answer(data, opaque)
    return None if found is None or found[1] else found[0]


def usual_answer(data: bytes, opaque: int) -> tuple[Stored, bool] | None:
    """Return what `stored_answer` does, and whether it has an id of a batch."""
    size = len(data)
    if size < 8:
        return None
    length, header = _PREFIX.unpack_from(data)
    if length + 4 != size or header + 8 != size or header > _LONGEST:  # no body, a header of JSON
        return None
    answer = _stored(data[8:])
    if answer is None or answer.opaque != opaque:
        return None
    stored = answer.extFields
    return (
        stored.msgId,
        stored.queueId,
        stored.queueOffset,
        stored.transactionId,
        stored.recallHandle,
        stored.region or DEFAULT_REGION,
        stored.trace_on != "false",
    ), stored.batchUniqId is not None


@in_core
def take_receipts(
    data: bytes,
    start: int,
    limit: int,
    waiting: dict[int, Any],
    freed: list[tuple[Any, int, int, float]],
) -> tuple[int, int]:
    """Hand the receipts of plain sends that a read has from a position on to who waits for them.

    `waiting` are open requests by their numbers; those of plain sends are as `plain_sends.Posted`
    has them, and are removed. Returned are how many were answered, and where that ends: before the
    first frame that is anything else, is not whole, or is larger than `limit`. To `freed` is added
    whose capacity they free: a window, how many of its messages were answered, their bytes, and
    when these left; also if this ends with an error. Who was cancelled frees it by itself.
    """
    count, size = 0, len(data)
    while size - start >= 8:
        length, header = _PREFIX.unpack_from(data, start)
        end = start + 4 + length
        if end > size or header != length - 4 or length > limit - 4 or header > _LONGEST:
            break
        answer = _stored(data[start + 8 : end])
        posted = None if answer is None else waiting.get(answer.opaque)
        if answer is None or not isinstance(posted, tuple) or len(posted) <= _WINDOW:
            break
        receipt = receipt_of(posted, answer.extFields)
        if receipt is None:
            break
        del waiting[answer.opaque]
        count, start = count + 1, end
        if posted[0].done():
            continue
        _free(posted, freed)  # before the receipt is there: the send has ended, whatever follows
        posted[0].set_result(receipt)
    return count, start


def _free(posted: tuple[Any, ...], freed: list[tuple[Any, int, int, float]]) -> None:
    window, asked, amount, size = posted[_WINDOW], posted[_ASKED], 1, len(posted[_MESSAGE].body)
    if freed and freed[-1][0] is window and freed[-1][3] is asked:
        freed[-1] = window, freed[-1][1] + amount, freed[-1][2] + size, asked
    else:
        freed.append((window, amount, size, asked))


def receipt_of(posted: tuple[Any, ...], stored: ReceiptFields) -> SendReceipt | None:
    """Return the receipt of a message that was posted; None if the response is of another one."""
    queue = posted[_QUEUE]
    if stored.queueId != queue.queue_id or stored.batchUniqId is not None:
        return None
    return SendReceipt(
        STORED,
        unique_id(posted),
        stored.msgId,
        queue,
        stored.queueOffset,
        stored.transactionId,
        stored.recallHandle,
        stored.region or DEFAULT_REGION,
        stored.trace_on != "false",
    )


def _stored(header: bytes) -> _Answer | None:
    """Return the header of a response that says "stored"."""
    try:
        answer = _read_answer(header)
    except (msgspec.DecodeError, ValueError):
        return None
    return answer if not answer.code and answer.flag & RESPONSE_FLAG else None


def unique_id(posted: tuple[Any, ...]) -> str:
    """Return the id of a message that was posted."""
    return "%s%04X" % (posted[7], posted[8] & 0xFFFF)  # noqa: UP031 - quicker


def json_text(text: str) -> bytes:
    """Return a text as JSON has it, without the quotes around it."""
    return msgspec.json.encode(text)[1:-1]


def from_json(text: bytes) -> str:
    """Return the text that `json_text` wrote."""
    found: str = msgspec.json.decode(b'"%b"' % text, type=str)
    return found


_json = msgspec.json.Encoder().encode
_KEYS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "m", "n")
_MOST_TEXTS = 4096


class SendSigning:
    """Signs the sends of one code to one queue. Any thread may call it.

    RocketMQ signs the values of all fields in the order of their keys, then the body (see
    `protocol.signature`). What comes before a message's own values is hashed once for the queue.
    `values` are those of the fields `a` to `e`, `end` those of `k` to `n`, and `middle` is what the
    header has from there on.
    """

    __slots__ = ("_end", "_middle", "_partly", "_texts", "fields")

    def __init__(
        self, user: SigningUser, code: int, values: tuple[str, ...], end: str, middle: bytes
    ) -> None:
        own = {ACCESS_KEY: user.access_key}
        if user.token:
            own[SECURITY_TOKEN] = user.token
        own = {BINDING: send_binding(code, [*own, *_KEYS])} | own
        self.fields = _json(own)[1:-1] + b","
        """The fields of a request that say who sent it, for the start of its header."""
        self._partly = PartlySigned(user.secret, _bytes("".join((*own.values(), *values))))
        self._end = end
        self._middle = middle + b',"%b":"' % SIGNATURE.encode()
        self._texts: dict[bytes, str] = {}  # ends of property texts by their JSON

    def middle(self, own: str, body: bytes) -> bytes:
        """Return the middle of a message's header; `own` are its values from `f` to `j`."""
        signature = self._partly.finish(_bytes(own + self._end), body)
        return b'%b%b"},"flag":' % (self._middle, signature)

    def plain_middle(
        self, tail: bytes, prefix: str, number: int, body: bytes, born_ms: int
    ) -> bytes:
        """Return that of a plain message; arguments as those of `plain_frame`."""
        text = self._texts.get(tail)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[tail] = from_json(tail)
        own = "0%d0UNIQ_KEY\1%s%04X%s0" % (born_ms, prefix, number & 0xFFFF, text)  # noqa: UP031
        return self.middle(own, body)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
