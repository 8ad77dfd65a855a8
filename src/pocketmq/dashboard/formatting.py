"""How values are shown on pages (numbers, times, links, message bodies), and times of a form read.

Pure, but for the time zone of this machine.
"""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue

UNKNOWN = "?"
"""Shown for a value that is not known, which is never shown as 0."""
NEVER = "–"
"""Shown where there is no value."""


def count(value: float | None) -> str:
    """Format a count; None is unknown."""
    return UNKNOWN if value is None else f"{int(value):,}"


def rate(value: float | None) -> str:
    """Format a rate per second; None is unknown."""
    if value is None:
        return UNKNOWN
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def percent(ratio: float | None) -> str:
    """Format a ratio in percent; None is unknown."""
    return UNKNOWN if ratio is None or ratio < 0 else f"{100 * ratio:.0f} %"


def moment(time_ms: int) -> str:
    """Format a time in this machine's time zone, which it names: `… 12:00:00 +0100`; 0 is never."""
    if time_ms <= 0:
        return NEVER
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(time_ms / 1000))
    except (OverflowError, ValueError, OSError):  # a peer may send anything
        return UNKNOWN


def time_ms(text: str) -> int:
    """Return a time in milliseconds since 1970, 0 for an empty field. Raises `InvalidInput`."""
    text = text.strip()
    if not text:
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{text!r} is not a time; use for example 2026-01-31T12:00") from None


def size(length: int) -> str:
    """Format a number of bytes."""
    if length < 1024:
        return f"{length} B"
    return f"{length / 1024:,.1f} KiB" if length < 1 << 20 else f"{length / (1 << 20):,.1f} MiB"


def link_to(*parts: str) -> str:
    """Return the path of a page, such as `link_to("topics", name)`."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


LONGEST_TEXT = 64 * 1024
LONGEST_HEX = 8 * 1024
_ROW = 16


def body_forms(body: bytes) -> dict[str, str]:
    """Return a body in every form that it can be read in, by the form's name."""
    forms = {
        "JSON": as_json(body),
        "Text": as_text(body),
        "MessagePack": as_msgpack(body),
        "Bytes": as_hex(body),
    }
    return {name: text for name, text in forms.items() if text is not None}


def as_text(body: bytes) -> str | None:
    """Return a body as text; None if it is not text."""
    try:
        text = body[: LONGEST_TEXT + 4].decode()
    except UnicodeDecodeError as error:
        cut = len(body) > LONGEST_TEXT and error.start >= LONGEST_TEXT
        if not cut:
            return None
        text = body[: error.start].decode()
    if any(ord(char) < 32 and char not in "\t\r\n" for char in text[:LONGEST_TEXT]):
        return None
    return _cut(text, LONGEST_TEXT, len(body))


def as_json(body: bytes) -> str | None:
    """Return a body as indented JSON; None if it is not JSON, or too long."""
    if len(body) > LONGEST_TEXT or body.lstrip()[:1] not in {b"{", b"["}:
        return None
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def as_msgpack(body: bytes) -> str | None:
    """Return MessagePack as indented JSON; None if it is not a map or array, or too long."""
    if len(body) > LONGEST_TEXT or not (
        0x80 <= _first(body) <= 0x9F or 0xDC <= _first(body) <= 0xDF
    ):
        return None
    try:
        found = msgspec.msgpack.decode(body)
        return json.dumps(found, indent=2, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def _first(body: bytes) -> int:
    return body[0] if body else 0


def as_hex(body: bytes) -> str:
    """Return a body as a hex dump with printable characters."""
    lines = []
    for start in range(0, min(len(body), LONGEST_HEX), _ROW):
        part = body[start : start + _ROW]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<{3 * _ROW}} {shown}")
    rest = len(body) - LONGEST_HEX
    return "\n".join(lines) + (f"\n… and {rest:,} more bytes" if rest > 0 else "")


def _cut(text: str, limit: int, size: int) -> str:
    if len(text) <= limit and size <= limit + 4:
        return text
    return f"{text[:limit]}\n… truncated: the body has {size:,} bytes"


def leaders_text(leaders: Mapping[MessageQueue, str]) -> str:
    """Return which broker leads which logical queues of a static topic; empty for other topics."""
    by_broker: dict[str, list[str]] = {}
    for queue, broker in leaders.items():
        by_broker.setdefault(broker, []).append(str(queue.queue_id))
    if not by_broker:
        return ""
    parts = [f"{broker} leads {', '.join(ids)}" for broker, ids in sorted(by_broker.items())]
    return f"Static topic; logical queues: {'; '.join(parts)}."
