"""Times that a form sends. Pure but for the time zone of this machine."""

from datetime import datetime

from pocketmq.errors import InvalidInput


def time_ms(text: str) -> int:
    """Return a time in milliseconds since 1970, 0 for an empty field. Raises `InvalidInput`."""
    text = text.strip()
    if not text:
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{text!r} is not a time; use for example 2026-01-31T12:00") from None
