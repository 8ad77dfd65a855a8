"""The lag of every queue over time, in bounded memory. No clock: times are arguments.

Rows of machine integers, one per poll, so that ten thousand queues cost 80 kB per poll. An unknown
lag is a gap, never 0.
"""

from array import array
from collections import deque
from collections.abc import Mapping

from pocketmq.model import MessageQueue

MOST_CELLS = 2_000_000
"""Numbers kept in total, 8 bytes each."""
MOST_ROWS = 1800

_NOT_KNOWN = -(1 << 63)

Series = list[tuple[float, int | None]]


class Lags:
    """A ring buffer of the lags of all queues. One thread at a time may use it."""

    def __init__(self, *, most_cells: int = MOST_CELLS, most_rows: int = MOST_ROWS) -> None:
        self._most_cells = most_cells
        self._rows: deque[tuple[float, array[int], int | None]] = deque(maxlen=most_rows)
        self._columns: dict[MessageQueue, int] = {}
        self._cells = 0

    def add(self, at: float, lags: Mapping[MessageQueue, int], queues: list[MessageQueue]) -> None:
        """Add the lags of these queues at a time; a missing lag is unknown."""
        if len(self._columns) > 2 * len(queues) + 64:
            self._forget_others(queues)
        for queue in queues:
            self._columns.setdefault(queue, len(self._columns))
        row = array("q", [_NOT_KNOWN]) * len(self._columns)
        total: int | None = 0
        for queue in queues:
            lag = lags.get(queue)
            if lag is None:
                total = None
            else:
                row[self._columns[queue]] = lag
                total = None if total is None else total + lag
        if len(self._rows) == self._rows.maxlen:
            self._drop_oldest()
        self._rows.append((at, row, total))
        self._cells += len(row)
        while self._cells > self._most_cells and len(self._rows) > 1:
            self._drop_oldest()

    def lose_sight(self, at: float) -> None:
        """Note that nothing is known from this time until the next lags."""
        if self._rows:
            if len(self._rows) == self._rows.maxlen:
                self._drop_oldest()
            self._rows.append((at, array("q"), None))

    def of(self, queue: MessageQueue) -> Series:
        """Return a queue's lag over time, oldest first; None where it is unknown."""
        column = self._columns.get(queue)
        if column is None:
            return [(at, None) for at, _, _ in self._rows]
        return [
            (at, row[column] if column < len(row) and row[column] != _NOT_KNOWN else None)
            for at, row, _ in self._rows
        ]

    def total(self) -> Series:
        """Return the sum over all queues; None where the lag of one is unknown."""
        return [(at, total) for at, _, total in self._rows]

    def span(self) -> tuple[float, float] | None:
        """Return the times of the oldest and the newest poll, None before the first."""
        return (self._rows[0][0], self._rows[-1][0]) if self._rows else None

    def _drop_oldest(self) -> None:
        self._cells -= len(self._rows.popleft()[1])

    def _forget_others(self, queues: list[MessageQueue]) -> None:
        kept = {queue: self._columns[queue] for queue in queues if queue in self._columns}
        places = list(kept.values())
        rows = [
            (at, array("q", [row[n] if n < len(row) else _NOT_KNOWN for n in places]), total)
            for at, row, total in self._rows
        ]
        self._columns = {queue: number for number, queue in enumerate(kept)}
        self._rows = deque(rows, maxlen=self._rows.maxlen)
        self._cells = sum(len(row) for _, row, _ in rows)
