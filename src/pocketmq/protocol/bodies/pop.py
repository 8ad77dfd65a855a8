"""Acknowledging many popped messages in one request (5.x)."""

from base64 import b64decode, b64encode
from collections.abc import Iterable

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model.value import WireValue

_LARGEST_BITS = 8192  # base64 characters: far more than one pop hands out


class BatchAck(WireValue, frozen=True, kw_only=True):
    """Acknowledged messages of one pop: bits over the offsets from `start_offset` on.

    `bits` is Java's BitSet as base64; use `batch_ack` and `acked_offsets`. Times are milliseconds.
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
            number = int.from_bytes(b64decode(self.bits, validate=True), "little")
        except ValueError as error:
            raise BodyMalformed("BatchAck", "b is not base64") from error
        return [self.start_offset + bit for bit in range(number.bit_length()) if number >> bit & 1]


def bits_of(offsets: Iterable[int], start_offset: int) -> str:
    """Give the `bits` that acknowledge these offsets; none lies before `start_offset`."""
    number = 0
    for offset in offsets:
        number |= 1 << offset - start_offset
    return b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


class BatchAcks(WireValue, frozen=True, kw_only=True):
    """Acknowledgements for one broker (Java: BatchAckMessageRequestBody)."""

    broker_name: str | None = None
    acks: list[BatchAck] = []
