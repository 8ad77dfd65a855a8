"""Bodies as people read them: text, JSON laid out, or bytes. Pure."""

import json

LONGEST_TEXT = 64 * 1024
LONGEST_HEX = 8 * 1024
_ROW = 16


def as_text(body: bytes) -> str | None:
    """Give a body as text; None if it is none."""
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
    """Give a body as JSON laid out in lines; None if it is none, or too long to be read."""
    if len(body) > LONGEST_TEXT or body.lstrip()[:1] not in {b"{", b"["}:
        return None
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def as_hex(body: bytes) -> str:
    """Give a body as bytes with their places, and what of them is text."""
    lines = []
    for start in range(0, min(len(body), LONGEST_HEX), _ROW):
        part = body[start : start + _ROW]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<{3 * _ROW}} {shown}")
    rest = len(body) - LONGEST_HEX
    return "\n".join(lines) + (f"\n… and {rest:,} bytes more" if rest > 0 else "")


def _cut(text: str, limit: int, size: int) -> str:
    if len(text) <= limit and size <= limit + 4:
        return text
    return f"{text[:limit]}\n… cut: the body has {size:,} bytes"
