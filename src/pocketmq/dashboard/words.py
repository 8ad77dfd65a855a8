"""How things are written on pages: numbers, times, links; and the unknown, which is no number."""

import time
from urllib.parse import quote

UNKNOWN = "?"
"""Nobody told."""
NEVER = "–"
"""There is none."""


def count(value: float | None) -> str:
    """Write how many; None is unknown."""
    return UNKNOWN if value is None else f"{int(value):,}"


def rate(value: float | None) -> str:
    """Write how many a second; None is unknown."""
    if value is None:
        return UNKNOWN
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def percent(ratio: float | None) -> str:
    """Write a share; None is unknown."""
    return UNKNOWN if ratio is None or ratio < 0 else f"{100 * ratio:.0f} %"


def moment(time_ms: int) -> str:
    """Write when, in this machine's time; 0 is never."""
    if time_ms <= 0:
        return NEVER
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))
    except (OverflowError, ValueError, OSError):  # a peer may say anything
        return UNKNOWN


def size(length: int) -> str:
    """Write a number of bytes."""
    if length < 1024:
        return f"{length} B"
    return f"{length / 1024:,.1f} KiB" if length < 1 << 20 else f"{length / (1 << 20):,.1f} MiB"


def link_to(*parts: str) -> str:
    """Give the path of a page, such as `link_to("topics", name)`."""
    return "/" + "/".join(quote(part, safe="") for part in parts)
