"""The gate through which handler calls of a STICKY consumer's queue begin.

Handler threads pass it, the loop closes it. What the next owner is told ("I start nothing at this
offset or above") must be exact although threads begin calls at any time, so both happen under one
lock: a call has either begun before the gate was closed, and counts, or it does not begin.

Threads take calls in order but may pass the gate out of order. So a closed gate still lets through
what is below its limit: everything below the highest message that has begun belongs to this owner.
Queues of other consumers have no gate.
"""

import threading

_NO_LIMIT = 2**63


class StartGate:
    """Which messages of one stay of a queue may be handed to handlers."""

    __slots__ = ("_fenced", "_limit", "_lock", "_next")

    def __init__(self, first: int) -> None:
        self._lock = threading.Lock()
        self._next = first
        """The offset after the highest message that has begun."""
        self._limit = _NO_LIMIT
        self._fenced = False

    def enter(self, last: int) -> bool:
        """Begin messages up to offset `last`; False if they may not begin. Any thread may call."""
        with self._lock:
            if self._fenced or last >= self._limit:
                return False
            if last >= self._next:
                self._next = last + 1
            return True

    def close(self, settled: int = 0) -> int:
        """Let no new messages begin; return the limit, below which all belong to this owner.

        Messages below `settled` need no handler: the limit is not lower.
        """
        with self._lock:
            self._limit = min(self._limit, max(self._next, settled))
            return self._limit

    def fence(self) -> None:
        """Let nothing begin, until `lift`."""
        with self._lock:
            self._fenced = True

    def lift(self) -> None:
        """End what `fence` began."""
        with self._lock:
            self._fenced = False

    @property
    def limit(self) -> int | None:
        """The offset that `close` returned; None while the gate is open."""
        return None if self._limit == _NO_LIMIT else self._limit
