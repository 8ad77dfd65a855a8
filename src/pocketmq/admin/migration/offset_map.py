"""Where the messages of a queue are in another one: stretches that were copied without a gap.

Pure decisions over values. Stretches are in order, of the source's offsets and of the target's.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class CopiedRange(NamedTuple):
    """Messages of a source queue, from `first` on, that lie one after another from `target` on."""

    first: int
    target: int
    size: int

    @property
    def end(self) -> int:
        """The source's offset behind the last."""
        return self.first + self.size

    @property
    def target_end(self) -> int:
        """The target's offset behind the last."""
        return self.target + self.size

    def joins(self, later: "CopiedRange") -> bool:
        """Tell whether another one goes on where this one ends, on both sides."""
        return self.end == later.first and self.target_end == later.target


class Position(NamedTuple):
    """Where a group goes on in a queue of the target, and how many messages it meets again."""

    offset: int
    again: int


def translate(stretches: Sequence[CopiedRange], offset: int) -> int | None:
    """Give where the first copied message at or behind a source offset is.

    Behind the last copied one if there is none; None if nothing was copied at all.
    """
    if not stretches:
        return None
    at = bisect_right(stretches, offset, key=lambda each: each.first) - 1
    if at < 0:
        return stretches[0].target
    found = stretches[at]
    if offset < found.end:
        return found.target + offset - found.first
    return stretches[at + 1].target if at + 1 < len(stretches) else found.target_end


def first_other(stretches: Sequence[CopiedRange], start: int) -> int:
    """Give the first offset of the target, from `start` on, that holds no copy of this queue."""
    for each in stretches:
        if each.target > start:
            break
        start = max(start, each.target_end)
    return start


def position(stretches: Sequence[CopiedRange], committed: int | None, start: int) -> Position:
    """Give where a group goes on that has come to `committed` in the source; None: not begun.

    `start` is the first offset of the target's queue. Messages that producers sent to the target
    themselves were never seen by the group: it goes on before the first of them, and meets copies
    behind it again. Nothing is passed over.
    """
    if committed is None:
        return Position(start, 0)
    reached = translate(stretches, committed)
    other = first_other(stretches, start)
    offset = other if reached is None else min(reached, other)
    return Position(offset, sum([_again(each, committed, offset) for each in stretches]))


def _again(stretch: CopiedRange, committed: int, offset: int) -> int:
    """Count the messages before `committed` that are copied to `offset` or behind it."""
    consumed = min(stretch.end, committed) - stretch.first
    skipped = max(offset - stretch.target, 0)
    return max(consumed - skipped, 0)
