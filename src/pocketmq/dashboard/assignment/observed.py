"""A group as far as it was observed: its rebalances, and the lag of every queue over time.

Pure and bounded; times are arguments. Two observations far apart say nothing about the time
between: what differs is no rebalance that was seen. So a history ends at a gap and another
begins after it; the gap is kept, to be shown as such. Lags are rows of machine integers, one
per poll: ten thousand queues cost 80 kB per poll. An unknown lag is a gap, never 0.
"""

from array import array
from collections import deque
from collections.abc import Mapping

import msgspec

from pocketmq.balance.story.episode import QueuePause, Rebalance
from pocketmq.balance.story.history import MOST_ENTRIES, GroupHistory
from pocketmq.balance.story.observation import Cause, GroupObservation
from pocketmq.balance.story.spans import Span
from pocketmq.model import MessageQueue

GAP = 60.0
"""Seconds between two observations after which nothing is concluded from the earlier one."""
_UNSEEN_END = Cause("unobserved", "", "its end was not observed")


class ObservedHistory:
    """The rebalances seen, and the gaps between. One thread at a time may use it.

    A queue that is found without an owner after a gap has not been without one all the time.
    """

    def __init__(self) -> None:
        self.current = GroupHistory()
        """The history since the last gap."""
        self.gaps: deque[Span] = deque(maxlen=MOST_ENTRIES)
        """Times in which the group was not observed."""
        self._earlier: list[Rebalance] = []
        self._last: float | None = None

    def observe(self, now: GroupObservation) -> bool:
        """Add an observation; return whether there is a gap before it."""
        gap = self._last is not None and now.at - self._last > GAP
        if gap and self._last is not None:
            cut = [_cut_off(each, self._last) for each in self._renumbered()]
            self._earlier = [*self._earlier, *cut][-MOST_ENTRIES:]
            self.gaps.append((self._last, now.at))
            self.current = GroupHistory()
        self._last = now.at
        self.current.observe(now)
        return gap

    def entries(self) -> list[Rebalance]:
        """Return the rebalances seen, oldest first."""
        if not self._earlier:
            return self.current.entries()
        return [*self._earlier, *self._renumbered()][-MOST_ENTRIES:]

    def _renumbered(self) -> list[Rebalance]:
        """Return the entries since the last gap; numbers go on."""
        entries = self.current.entries()
        if not self._earlier:
            return entries
        before = self._earlier[-1].number
        return [msgspec.structs.replace(each, number=before + each.number) for each in entries]


def _cut_off(entry: Rebalance, at: float) -> Rebalance:
    """Return an entry as it was when observation ended."""
    if entry.ended is not None and all(pause.ended is not None for pause in entry.pauses):
        return entry
    causes = (*entry.causes, _UNSEEN_END)
    pauses = tuple(_last_seen(pause, at) for pause in entry.pauses)
    ended = at if entry.ended is None else entry.ended
    return msgspec.structs.replace(entry, ended=ended, settled=True, causes=causes, pauses=pauses)


def _last_seen(pause: QueuePause, at: float) -> QueuePause:
    if pause.ended is not None:
        return pause
    return msgspec.structs.replace(pause, ended=max(at, pause.began), most=None)


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
