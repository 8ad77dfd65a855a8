"""Log lines that peers can cause, limited: however many there are, an operator reads a few.

Refused requests, and connections that were cut off. What goes beyond the limit is counted, and the
count is logged. Nothing of a request's fields and body is shown but what the refusal itself says,
and not even that where the request carries secrets.
"""

import asyncio
import logging

from pocketmq.model.secrets import HIDDEN
from pocketmq.protocol import RequestCode

PERIOD = 10.0
"""Seconds to which `LINES` lines belong."""
LINES = 10
_LONGEST = 200
_SECRET = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
        RequestCode.AUTH_CREATE_USER,
        RequestCode.AUTH_UPDATE_USER,
    }
)


class RefusalLog:
    """Writes a server's refusals to its log. Belongs to one event loop."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._began = float("-inf")
        self._lines = 0
        self._skipped = 0

    def refused(self, peer: str, code: int, answer: int, remark: str | None, now: float) -> None:
        """Log one refusal at `now`, by any monotonic clock, unless there were many just before."""
        if now - self._began >= PERIOD:
            self._began, self._lines = now, 0
        if self._lines >= LINES:
            self._skipped += 1
            return
        self._lines += 1
        reason = HIDDEN if code in _SECRET else (remark or "")[:_LONGEST]
        self._logger.warning(
            "%s: %s was refused with code %d: %s%s", peer, _name(code), answer, reason, self._more()
        )

    def _more(self) -> str:
        count, self._skipped = self._skipped, 0
        return f" ({count} more before it)" if count else ""


class CutOffLog:
    """Writes to the log which clients were disconnected, and why. Belongs to one event loop.

    The first is logged immediately; those of the following `PERIOD` seconds are counted and logged
    together in one line, with the last of them. Memory pressure may end thousands at a time.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._timer: asyncio.TimerHandle | None = None
        self._skipped = 0
        self._last = ("", "")

    def cut_off(self, peer: str, reason: str) -> None:
        """Log or count one connection."""
        if self._timer is not None:
            self._skipped += 1
            self._last = peer, reason
            return
        self._logger.warning('client disconnected: address=%s reason="%s"', peer, reason)
        self._set_timer()

    def close(self) -> None:
        """Log what was counted, and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._report()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._period_ended)

    def _period_ended(self) -> None:
        self._timer = None
        if self._report():
            self._set_timer()

    def _report(self) -> bool:
        count, self._skipped = self._skipped, 0
        if count:
            self._logger.warning(
                'clients disconnected: count=%d seconds=%g last=%s reason="%s"',
                count, PERIOD, *self._last,
            )  # fmt: skip
        return bool(count)


def _name(code: int) -> str:
    try:
        return f"{RequestCode(code).name} ({code})"
    except ValueError:
        return f"request {code}"
