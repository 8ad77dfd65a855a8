"""The frames of usual acks, from templates: of one message, or of several that came together.

Usual are handles in the form that pops of this client leave. Pure functions over values; None
stands for anything unusual, which `questions` then asks. Both ways send the same.
"""

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial

from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.header_json import REQUEST_TAIL
from pocketmq.protocol.requests.pop import AckRequest, BatchAck, BatchAcks

_PREFIX = struct.Struct(">II").pack
_HANDLE = re.compile(
    r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,9}) "
    r"(0|1|2) ([A-Za-z0-9_.-]{1,127}) ([0-9]{1,9}) ([0-9]{1,18})\Z"
).match
_MARKS = {mark.value: mark for mark in TopicMark}
_MOST_TEMPLATES = 4096
_OFFSETS = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18})*\Z").match
MOST_BITS = 4096
"""Offsets behind the first of its pop that an ack of several messages may have."""

MakeFrame = Callable[[int], bytes]
"""Returns the frame with a number."""


class UsualAcks:
    """Requests that acknowledge messages of one group without signatures.

    `wire` returns the name of a topic on the wire.
    """

    def __init__(self, group: str, wire: Callable[[str], str]) -> None:
        self._group = group
        self._wire = wire
        self._templates: dict[tuple[str, str, str, str], tuple[bytes, bytes]] = {}
        self._bodies: dict[tuple[str, str, str], tuple[bytes, bytes, bytes]] = {}
        several = Command.request(RequestCode.BATCH_ACK_MESSAGE, 0, {}).encode()[8:]
        self._several = several.removesuffix(b"0" + REQUEST_TAIL)

    def request(self, handle: str, topic: str) -> tuple[str, MakeFrame] | None:
        """Return the broker to ask, and what makes the frame; None if unusual."""
        found = _HANDLE(handle)
        if found is None:
            return None
        _, _, _, _, mark, broker, queue_id, offset = found.groups()
        key = (topic, mark, broker, queue_id)
        template = self._templates.get(key)
        if template is None:
            template = self._template(*key)
        return broker, partial(_ack_frame, template, handle, int(offset))

    def request_together(self, handles: Sequence[str], topic: str) -> tuple[str, MakeFrame] | None:
        """Return the same for messages that came together: all that differs is their offset."""
        found = _HANDLE(handles[0])
        if found is None:
            return None
        start, popped, invisible, revive, mark, broker, queue_id, last = found.groups()
        common, first = handles[0][: -len(last)], int(start)
        bits = _bits(handles, common, int(last), first)
        if not bits:
            return None
        key = topic, mark, broker
        body = self._bodies.get(key) or self._body(*key)
        packed = b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little"))
        before, middle, after = body
        text_of = b'%b%b%b%d,"pt":%d,"q":%d,"r":"%b","rq":%d,"so":%d%b' % (
            before, packed, middle, int(invisible), int(popped), int(queue_id), mark.encode(),
            int(revive), first, after,
        )  # fmt: skip
        return broker, partial(_several_frame, self._several, text_of)

    def _template(self, topic: str, mark: str, broker: str, queue_id: str) -> tuple[bytes, bytes]:
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        header = AckRequest(
            consumer_group=self._group,
            topic=_MARKS[mark].real_topic(self._wire(topic), self._group),
            queue_id=int(queue_id),
            extra_info="",
            offset=0,
            bname=broker,
        )
        whole = Command.request(RequestCode.ACK_MESSAGE, 0, header).encode()[8:]
        head, _, rest = whole.rpartition(b'","offset":"0')
        tail, _, _ = rest.rpartition(b"0" + REQUEST_TAIL)
        template = self._templates[topic, mark, broker, queue_id] = head, tail
        return template

    def _body(self, topic: str, mark: str, broker: str) -> tuple[bytes, bytes, bytes]:
        """Return what stands before the bits, between them and the numbers, and behind these."""
        if len(self._bodies) >= _MOST_TEMPLATES:
            self._bodies.clear()
        ack = BatchAck(consumer_group=self._group, topic=self._wire(topic), retry=mark)
        whole = encode_body(BatchAcks(broker_name=broker, acks=[ack]))
        before, quote, rest = whole.partition(b'"b":"')
        middle, number, rest = rest.partition(b'"it":')
        _, _, after = rest.rpartition(b'"so":0')
        body = self._bodies[topic, mark, broker] = before + quote, middle + number, after
        return body


def _bits(handles: Sequence[str], common: str, offset: int, first: int) -> int:
    """Return a bit for each offset, counted from `first`; 0 if handles differ in more than that.

    All begin with what they have in common; `offset` is that of the first handle.
    """
    count = len(handles)
    if handles == [f"{common}{each}" for each in range(offset, offset + count)]:  # as usual
        low, high = offset - first, offset - first + count - 1
        return (1 << count) - 1 << low if low >= 0 and high < MOST_BITS else 0
    offsets = "\n".join(handles)[len(common) :].split("\n" + common)
    if len(offsets) != count or not _OFFSETS(",".join(offsets)):
        return 0
    numbers = [int(each) - first for each in offsets]
    if min(numbers) < 0 or max(numbers) >= MOST_BITS:
        return 0
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _ack_frame(template: tuple[bytes, bytes], handle: str, offset: int, opaque: int) -> bytes:
    head, tail = template
    parts = head, handle.encode(), offset, tail, opaque, REQUEST_TAIL
    header = b'%b%b","offset":"%d%b%d%b' % parts
    size = len(header)
    return _PREFIX(4 + size, size) + header


def _several_frame(head: bytes, body: bytes, opaque: int) -> bytes:
    header = b"%b%d%b" % (head, opaque, REQUEST_TAIL)
    size = len(header)
    return b"%b%b%b" % (_PREFIX(4 + size + len(body), size), header, body)
