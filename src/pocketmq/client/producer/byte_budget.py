"""How many bytes a producer may have in flight, so that answers arrive well within the timeout.

More bytes in flight than the broker stores in that time only wait, on this side or in the network,
while their deadline runs. Pure arithmetic: the clock is the caller's. Written by one event loop;
other threads may read `limit`.
"""

START = 4 * 1024 * 1024
"""Bytes of the first limit."""
LEAST = 256 * 1024
"""The limit never falls below this; one larger message is always allowed alone."""
_QUICK = 1 / 8
"""The limit grows while answers take at most this share of the timeout, ..."""
_SLOW = 1 / 4
"""... and shrinks when they take at least this share."""


class ByteBudget:
    """The current limit of bytes in flight; never above `most`. `timeout` is a send's."""

    __slots__ = ("_most", "_quick", "_shrunk_at", "_slow", "limit")

    def __init__(self, most: int, timeout: float) -> None:
        self._most = most
        self._quick = timeout * _QUICK
        self._slow = timeout * _SLOW
        self._shrunk_at = float("-inf")
        self.limit = min(most, START)

    def answered(self, size: int, began: float, now: float, in_flight: int) -> None:
        """Adapt the limit to a request of `size` bytes that was answered, or timed out, at `now`.

        As in TCP's slow start, each quick answer adds its own size, so that the limit doubles with
        every round. It grows only while at least half of it is used: what was never in flight
        proves nothing. All requests that began before a reduction count once.
        """
        took = now - began
        if took <= self._quick:
            if in_flight * 2 >= self.limit:
                self.limit = min(self._most, self.limit + size)
        elif took >= self._slow and began > self._shrunk_at:
            self._shrunk_at = now
            lowered = int(self.limit * max(0.25, self._quick / took))
            self.limit = min(self.limit, max(lowered, LEAST))
