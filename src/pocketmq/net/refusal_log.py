"""Refused requests in the log: who was refused what and why, however many there are.

A few lines a while; what comes beyond is counted and told with the next line. Nothing of a
request's fields and body is shown but what the refusal itself says, and not even that where the
request carries secrets. Knows neither sockets nor handlers.
"""

import logging

from pocketmq.model.secrets import HIDDEN
from pocketmq.protocol.codes import RequestCode

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
        self._passed_over = 0

    def refused(self, peer: str, code: int, answer: int, remark: str | None, now: float) -> None:
        """Tell of one refusal at `now`, by any steady clock, unless there were many just before."""
        if now - self._began >= PERIOD:
            self._began, self._lines = now, 0
        if self._lines >= LINES:
            self._passed_over += 1
            return
        self._lines += 1
        reason = HIDDEN if code in _SECRET else (remark or "")[:_LONGEST]
        self._logger.warning(
            "%s: %s was refused with code %d: %s%s", peer, _name(code), answer, reason, self._more()
        )

    def _more(self) -> str:
        count, self._passed_over = self._passed_over, 0
        return f" ({count} more before it)" if count else ""


def _name(code: int) -> str:
    try:
        return f"{RequestCode(code).name} ({code})"
    except ValueError:
        return f"request {code}"
