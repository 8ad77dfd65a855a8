"""Which timed messages have been delivered, or taken back: a mark in their order, and exceptions.

Messages are delivered by the moment they are due, and those of one moment as they came. So a mark
says what has been: everything up to a moment and an offset. If the clock is set back, messages come
that are due before the mark. Then the mark holds for older messages alone, those before an offset,
and a new mark begins; the older one is dropped when the new one passes it. Pure bookkeeping.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pocketmq.broker.timers.wheel import Entry

NOTHING: Entry = (0, -1)


class OlderMark(NamedTuple):
    """A mark that holds for the messages before an offset."""

    before: int
    done: Entry


class TimerProgress:
    """What is done, of one broker's timed messages."""

    def __init__(
        self, done: Entry = NOTHING, scope: int = 0, older: Iterable[OlderMark] = ()
    ) -> None:
        self.done = done
        self.scope = scope
        """Messages from this offset on came after the mark was set."""
        self.older = list(older)
        """Newest last: offsets rise from one to the next, moments fall."""
        self.ahead: dict[int, int] = {}
        """Messages that were delivered although others that are due before them were not."""

    def all_wait(self, first: int, tags: list[int]) -> bool:
        """Return whether all of these messages are certainly still to be delivered."""
        clear = not self.older or first >= self.older[-1].before
        return clear and not self.ahead and min(tags) > self.done[0]

    def is_done(self, entry: Entry) -> bool:
        """Return whether a message has been delivered."""
        offset = entry[1]
        if entry <= self.done or offset in self.ahead:
            return True
        return any(offset < mark.before and entry <= mark.done for mark in self.older)

    def came(self, entry: Entry) -> bool:
        """Take note of a new message; return whether it is due before the mark."""
        if entry[1] < self.scope or entry > self.done:
            return False
        self.older.append(OlderMark(self.scope, self.done))
        self.done = NOTHING
        return True

    def reached(self, done: Entry, scope: int) -> None:
        """Move the mark: of the messages before `scope` all up to `done` have been delivered."""
        self.done, self.scope = done, scope
        self.older = [mark for mark in self.older if mark.done > done]
        if self.ahead:
            self.ahead = {offset: due for offset, due in self.ahead.items() if (due, offset) > done}
