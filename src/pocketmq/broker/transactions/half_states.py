"""The outcome of each half message in one byte: open, with the number of checks, or ended.

Pure bookkeeping over queue offsets of RMQ_SYS_TRANS_HALF_TOPIC. Whatever lies before `base` ended
long ago; whatever lies behind the last byte is open and was never asked about. A million open
transactions take a megabyte, and so do a million that ended behind one that is still open.
"""

import re
import zlib
from collections.abc import Iterator

OPEN = 0
MOST_CHECKS = 250
DISCARDED = 253
ROLLED_BACK = 254
COMMITTED = 255

_OPEN = re.compile(b"[\\x00-\\xfa]")
_REMEMBERED = 65_536
"""Ended ones that are kept at least: a producer may end one twice, and gets the same answer."""


class HalfStates:
    """The states of one broker's half messages."""

    def __init__(self, base: int = 0, states: bytes = b"") -> None:
        self.base = base
        self._states = bytearray(states)

    @property
    def end(self) -> int:
        """The offset behind the last half message with a state."""
        return self.base + len(self._states)

    def get(self, offset: int) -> int | None:
        """Return a half message's state; None if it ended too long ago."""
        at = offset - self.base
        if at < 0:
            return None
        return self._states[at] if at < len(self._states) else OPEN

    def set(self, offset: int, state: int) -> None:
        """Record a state; those before `base` cannot change any more."""
        at = offset - self.base
        if at < 0:
            return
        if at >= len(self._states):
            self._states += bytes(at + 1 - len(self._states))
        self._states[at] = state

    def open_from(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield offset and number of checks of open half messages, from one offset to another."""
        start = max(start, self.base)
        known = bytes(self._states[start - self.base : max(stop - self.base, 0)])
        for found in _OPEN.finditer(known):
            yield start + found.start(), known[found.start()]
        for offset in range(max(start, self.end), stop):
            yield offset, OPEN

    def open_count(self, stop: int) -> int:
        """Count the open half messages before an offset."""
        known = self._states[: max(stop - self.base, 0)]
        ended = sum(known.count(state) for state in (DISCARDED, ROLLED_BACK, COMMITTED))
        return len(known) - ended + max(stop - self.end, 0)

    def first_open(self, stop: int) -> int:
        """Return the first open half message before `stop`, or `stop`."""
        return next((offset for offset, _ in self.open_from(self.base, stop)), stop)

    def cut(self, first: int, end: int) -> None:
        """Forget half messages that the queue does not have: it goes from `first` to `end`."""
        if end < self.base:  # it was deleted and created again
            self.base = end
            self._states.clear()
        del self._states[max(end - self.base, 0) :]
        if first > self.base:
            del self._states[: first - self.base]
            self.base = first

    def trim(self) -> None:
        """Forget most of those that ended before the first open one."""
        found = _OPEN.search(self._states)
        ended = len(self._states) if found is None else found.start()
        if ended >= 2 * _REMEMBERED:
            self.base += ended - _REMEMBERED
            del self._states[: ended - _REMEMBERED]

    def copy(self) -> bytes:
        """Return the states from `base` on."""
        return bytes(self._states)


def pack_states(states: bytes) -> bytes:
    """Compress states to be saved."""
    return zlib.compress(states, 1)


def unpack_states(packed: bytes) -> bytes:
    """Undo `pack_states`. Raises `ValueError` for what it did not make."""
    try:
        return zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(str(error)) from error
