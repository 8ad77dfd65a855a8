"""Recall handles: what a producer keeps to take a delayed message back before it is due."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from msgspec import Struct

from pocketmq.errors import HeaderMalformed
from pocketmq.model.java_strings import java_split
from pocketmq.protocol.header import read_int64

_VERSION = "v1"
_BASE64 = re.compile(r"[A-Za-z0-9_-]+={0,2}\Z")  # Python's decoder passes over what is not base64


class RecallHandle(Struct, frozen=True, kw_only=True):
    """A delayed message: where it is, when it is due, and its unique key."""

    topic: str
    broker_name: str
    deliver_at_ms: int
    message_id: str

    @classmethod
    def parse(cls, text: str) -> "RecallHandle":
        """Read a handle, or raise `HeaderMalformed`. Padding may be missing, as Java allows."""
        padded = len(text) % 4 if text.endswith("=") else 0
        if padded or not _BASE64.match(text):
            raise HeaderMalformed(f"{text[:40]!r} is no recall handle")
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except Error:
            raise HeaderMalformed(f"{text[:40]!r} is no recall handle") from None
        parts = java_split(raw.decode(errors="replace"), " ")
        if len(parts) < 5 or parts[0] != _VERSION:
            raise HeaderMalformed(f"the recall handle {text[:40]!r} is not of version 1")
        deliver_at_ms = read_int64(parts[3])
        if deliver_at_ms is None:
            raise HeaderMalformed(f"the recall handle {text[:40]!r} holds no time")
        return cls(
            topic=parts[1],
            broker_name=parts[2],
            deliver_at_ms=deliver_at_ms,
            message_id=parts[4],
        )

    def __str__(self) -> str:
        parts = (_VERSION, self.topic, self.broker_name, str(self.deliver_at_ms), self.message_id)
        return urlsafe_b64encode(" ".join(parts).encode()).decode()
