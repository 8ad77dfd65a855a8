"""Receipt handles of gRPC clients: a pop handle, and the message's commit log offset behind it.

The offset lets any proxy send the message to the dead-letter topic without having kept it.
"""

import re
from typing import NamedTuple

import msgspec

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.handles import PopHandle, TopicMark
from pocketmq.protocol.header import read_int64
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

_PARTS = 9
_LONGEST = 1024
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_LONG = r"(?:0|[1-9][0-9]{0,17})"
_usual = re.compile(rf"{_LONG} {_LONG} {_LONG} {_NUMBER} [012] \S+ {_NUMBER} {_LONG}\Z").match
"""Finds pop handles that are written as they would be again, as nearly all are."""


class ReceiptPlace(NamedTuple):
    """Which message a receipt is for, whatever its terms are by now."""

    broker: str
    mark: TopicMark
    queue_id: int
    queue_offset: int


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """A popped message, as its client names it."""

    handle: PopHandle
    commit_log_offset: int

    def __str__(self) -> str:
        return f"{self.handle} {self.commit_log_offset}"

    @property
    def place(self) -> ReceiptPlace:
        """The message's place."""
        handle = self.handle
        offset = handle.start_offset if handle.queue_offset is None else handle.queue_offset
        return ReceiptPlace(handle.broker_name, handle.mark, handle.queue_id, offset)

    @property
    def visible_at_ms(self) -> int:
        """When another consumer may get the message, by the broker's clock."""
        return self.handle.pop_time_ms + self.handle.invisible_time_ms

    def check_valid(self, now_ms: int) -> None:
        """Raise `CallRefused` if another consumer may have got the message by now."""
        if self.visible_at_ms <= now_ms:
            raise CallRefused(d.Code.INVALID_RECEIPT_HANDLE, "receipt handle is expired")


def receipt_text(pop_handle: str, commit_log_offset: int) -> str:
    """Return a popped message's receipt handle; raises `HeaderMalformed` for an invalid handle."""
    if not _usual(pop_handle):
        pop_handle = str(PopHandle.parse(pop_handle))
    return f"{pop_handle} {commit_log_offset}"


def read_receipt_handle(text: str) -> Receipt:
    """Read a receipt handle; raises `CallRefused` for one that is invalid."""
    parts = text.split(" ")
    offset = read_int64(parts[_PARTS - 1]) if len(parts) >= _PARTS else -1
    if len(text) > _LONGEST or len(parts) < _PARTS - 1 or offset is None:
        raise CallRefused(d.Code.INVALID_RECEIPT_HANDLE, f"{text[:40]!r} is not a receipt handle")
    try:
        return Receipt(PopHandle.parse(text), offset)
    except HeaderMalformed as error:
        raise CallRefused(d.Code.INVALID_RECEIPT_HANDLE, str(error)) from error
