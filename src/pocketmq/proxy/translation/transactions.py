"""Transaction ids of gRPC clients: everything that ends the transaction, for any proxy.

Apache's proxy keeps the half message's place in memory, so only the proxy that sent it can end it;
here the id holds the place. Clients send it back as it is.
"""

import msgspec

from pocketmq.protocol.header import read_int64
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

_PARTS = 4


class HalfMessagePlace(msgspec.Struct, frozen=True):
    """A half message: its id, and where it is stored."""

    transaction_id: str
    broker: str
    queue_offset: int
    commit_log_offset: int

    def __str__(self) -> str:
        return f"{self.transaction_id} {self.broker} {self.queue_offset} {self.commit_log_offset}"


def read_transaction_id(text: str) -> HalfMessagePlace:
    """Read the id of a transaction; raises `CallRefused` if this is none."""
    if not text.strip():
        raise CallRefused(d.Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
    parts = text.split(" ")
    offsets = [read_int64(part) for part in parts[2:]]
    if len(parts) != _PARTS or any(each is None or each < 0 for each in offsets):
        raise CallRefused(
            d.Code.INVALID_TRANSACTION_ID, f"{text[:80]!r} is not a transaction id of this service"
        )
    queue_offset, commit_log_offset = offsets
    return HalfMessagePlace(parts[0], parts[1], queue_offset or 0, commit_log_offset or 0)
