"""Looking for messages: what a visitor may ask, and asking it."""

import time
from collections.abc import Mapping
from datetime import datetime

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import FOR_EVER, FoundMessages
from pocketmq.errors import InvalidInput, RouteNotFound

WAYS = {
    "id": "Message id",
    "key": "Key",
    "time": "Time",
}
LIMIT = 64
"""Messages of each broker, or of each queue when looked for by time."""
_HOUR_MS = 3_600_000
_LONGEST = 1024


class Search(msgspec.Struct, frozen=True):
    """What to look for; times are milliseconds, 0 where nothing was said."""

    topic: str = ""
    by: str = "time"
    value: str = ""
    begin_ms: int = 0
    end_ms: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Search":
        """Read the fields of a form. Raises `InvalidInput` for what is no time or too long."""
        fields = {name: query.get(name, "").strip() for name in ("topic", "by", "value")}
        if any(len(text) > _LONGEST for text in fields.values()):
            raise InvalidInput(f"nothing that is looked for has more than {_LONGEST} characters")
        way = fields["by"] if fields["by"] in WAYS else "time"
        begin, end = (_time_ms(query.get(name, "").strip()) for name in ("from", "to"))
        return cls(fields["topic"], way, fields["value"], begin, end)

    @property
    def wanted(self) -> bool:
        """Whether there is enough to look for."""
        return bool(self.topic) and (self.by == "time" or bool(self.value))


async def look(admin: Admin, search: Search) -> FoundMessages:
    """Look for messages. Raises `MQError`: no such topic, no such message, no answer."""
    end_ms = search.end_ms or FOR_EVER
    if search.by == "id":
        return FoundMessages([await admin.messages.by_id(search.topic, search.value)])
    if search.by == "key":
        return await admin.messages.by_key(
            search.topic, search.value, LIMIT, begin_ms=search.begin_ms, end_ms=end_ms
        )
    begin_ms = search.begin_ms or int(time.time() * 1000) - _HOUR_MS
    try:
        return await admin.messages.between(search.topic, begin_ms, end_ms, LIMIT)
    except RouteNotFound:
        raise InvalidInput(f"there is no topic {search.topic!r}") from None


def _time_ms(text: str) -> int:
    if not text:
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{text!r} is no time: give 2026-01-31T12:00") from None
