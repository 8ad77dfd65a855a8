"""The history of a group as far as it was observed. Pure.

Two observations far apart say nothing about the time between: what differs is no rebalance that was
seen, and a queue that is found without an owner has not been without one all the time. So a history
ends at a gap and another begins after it; the gap is kept, to be shown as such.
"""

from collections import deque

import msgspec

from pocketmq.balance.story.episode import QueuePause, Rebalance
from pocketmq.balance.story.history import MOST_ENTRIES, GroupHistory
from pocketmq.balance.story.observation import Cause, GroupObservation
from pocketmq.balance.story.spans import Span

GAP = 60.0
"""Seconds between two observations after which nothing is concluded from the earlier one."""
_UNSEEN_END = Cause("unobserved", "", "its end was not observed")


class ObservedHistory:
    """The rebalances seen, and the gaps between. One thread at a time may use it."""

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
