"""Popping (5.x): taking messages, acknowledging them, changing how long they stay hidden."""

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model import WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader
from pocketmq.protocol.request import (
    STORED_MESSAGES,
    NoHeader,
    RequestQueue,
    RequestRight,
    json_of,
    request,
)

_LARGEST_BITS = 8192  # base64 characters: far more than one pop hands out


class BatchAck(WireValue, frozen=True, kw_only=True):
    """Acknowledged messages of one pop: bits over the offsets from `start_offset` on.

    `bits` is Java's BitSet as base64: `client.pop.popped.batch_acks` builds it, `acked_offsets`
    reads it. Times are milliseconds.
    """

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    retry: str | None = msgspec.field(name="r", default=None)
    start_offset: int = msgspec.field(name="so", default=0)
    queue_id: int = msgspec.field(name="q", default=0)
    revive_queue_id: int = msgspec.field(name="rq", default=0)
    pop_time: int = msgspec.field(name="pt", default=0)
    invisible_time: int = msgspec.field(name="it", default=0)
    bits: str = msgspec.field(name="b", default="")

    def acked_offsets(self) -> list[int]:
        """List the acknowledged offsets. Raises `BodyMalformed` if the bits are not readable."""
        if len(self.bits) > _LARGEST_BITS:
            raise BodyMalformed("BatchAck", f"b has more than {_LARGEST_BITS} characters")
        try:
            number = int.from_bytes(a2b_base64(self.bits, strict_mode=True), "little")
        except ValueError as error:
            raise BodyMalformed("BatchAck", "b is not base64") from error
        start, count = self.start_offset, number.bit_length()
        if not number & (number + 1):  # all that were popped, as most often
            return [*range(start, start + count)]
        return [start + bit for bit in range(count) if number >> bit & 1]


def bits_of(offsets: Iterable[int], start_offset: int) -> str:
    """Return the `bits` that acknowledge these offsets; none lies before `start_offset`."""
    number = 0
    for offset in offsets:
        number |= 1 << offset - start_offset
    return b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


class BatchAcks(WireValue, frozen=True, kw_only=True):
    """Acknowledgements for one broker (Java: BatchAckMessageRequestBody)."""

    broker_name: str | None = None
    acks: list[BatchAck] = []


class PopRequest(TopicHeader, frozen=True, kw_only=True):
    """Takes messages, hiding them from others for a while."""

    consumer_group: str
    topic: str
    queue_id: Int32  # -1: the broker chooses
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64  # how long to wait for messages, in milliseconds
    born_time: Int64  # when the client asked; 0: the broker's clock
    init_mode: Int32  # where a new group starts: 0 first, 1 last
    exp_type: str | None = None  # TAG or SQL92
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None


class PopResponse(Header, frozen=True, kw_only=True):
    """When and how the messages were taken; the infos are read by `protocol.handles`."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class PeekRequest(TopicHeader, frozen=True, kw_only=True):
    """Looks at messages without taking them."""

    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    consumer_group: str


class AckRequest(TopicHeader, frozen=True, kw_only=True):
    """Acknowledges a message that was taken."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str  # the handle the message came with
    offset: Int64
    lite_topic: str | None = None


class ChangeInvisibleTimeRequest(TopicHeader, frozen=True, kw_only=True):
    """Hides a message that was taken for longer, or until sooner."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str  # the handle the message came with
    offset: Int64
    invisible_time: Int64
    lite_topic: str | None = None
    suspend: bool = False


class ChangeInvisibleTimeResponse(Header, frozen=True, kw_only=True):
    """The parts of the message's new handle."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationRequest(TopicHeader, frozen=True, kw_only=True):
    """Waits until there is something to take."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


class NotificationResponse(Header, frozen=True, kw_only=True):
    """Whether there is something to take, or too many wait already."""

    has_msg: bool
    polling_full: bool = False


class PollingInfoRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks how many calls wait for messages of a queue."""

    consumer_group: str
    topic: str
    queue_id: Int32


class PollingInfoResponse(Header, frozen=True, kw_only=True):
    """How many calls wait."""

    polling_num: Int32


POP_MESSAGE = request(
    Code.POP_MESSAGE,
    PopRequest,
    PopResponse,
    result=STORED_MESSAGES,
    queue=RequestQueue.PULL,
    main_port=True,
)
ACK_MESSAGE = request(
    Code.ACK_MESSAGE, AckRequest, NoHeader, queue=RequestQueue.ACK, main_port=True
)
PEEK_MESSAGE = request(
    Code.PEEK_MESSAGE, PeekRequest, PopResponse, result=STORED_MESSAGES, queue=RequestQueue.PULL
)
CHANGE_MESSAGE_INVISIBLETIME = request(
    Code.CHANGE_MESSAGE_INVISIBLETIME,
    ChangeInvisibleTimeRequest,
    ChangeInvisibleTimeResponse,
    queue=RequestQueue.ACK,
    main_port=True,
)
NOTIFICATION = request(
    Code.NOTIFICATION,
    NotificationRequest,
    NotificationResponse,
    queue=RequestQueue.PULL,
    main_port=True,
)
POLLING_INFO = request(
    Code.POLLING_INFO, PollingInfoRequest, PollingInfoResponse, queue=RequestQueue.PULL
)
POP_ROLLBACK = request(
    Code.POP_ROLLBACK, NoHeader, NoHeader, right=RequestRight.on_cluster("Update")
)
BATCH_ACK_MESSAGE = request(
    Code.BATCH_ACK_MESSAGE,
    NoHeader,
    NoHeader,
    body=json_of(BatchAcks),
    queue=RequestQueue.ACK,
    main_port=True,
)
