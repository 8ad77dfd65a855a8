"""The offsets of copies: ranges of a queue that were copied without a gap.

Pure decisions over values. Ranges are in order of the source's offsets and of the target's.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class CopiedRange(NamedTuple):
    """Messages of a source queue, from `first` on, whose copies are contiguous from `target` on."""

    first: int
    target: int
    size: int

    @property
    def end(self) -> int:
        """The source's offset after the last."""
        return self.first + self.size

    @property
    def target_end(self) -> int:
        """The target's offset after the last."""
        return self.target + self.size

    def joins(self, later: "CopiedRange") -> bool:
        """Return whether `later` continues this range on both sides."""
        return self.end == later.first and self.target_end == later.target


class Position(NamedTuple):
    """Where a group resumes in a queue of the target, and the number of redelivered messages."""

    offset: int
    again: int


def translate(stretches: Sequence[CopiedRange], offset: int) -> int | None:
    """Return the target offset of the first copied message at or after a source offset.

    After the last copy if there is none; None if nothing was copied.
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
    """Return the first offset of the target, from `start` on, without a copy of this queue."""
    for each in stretches:
        if each.target > start:
            break
        start = max(start, each.target_end)
    return start


def position(stretches: Sequence[CopiedRange], committed: int | None, start: int) -> Position:
    """Return where a group resumes that has committed `committed` in the source, None: nothing.

    `start` is the first offset of the target's queue. The group has never seen messages that
    producers sent to the target directly: it resumes before the first of them, and copies after it
    are redelivered. No message is ever skipped.
    """
    if committed is None:
        return Position(start, 0)
    reached = translate(stretches, committed)
    other = first_other(stretches, start)
    offset = other if reached is None else min(reached, other)
    return Position(offset, sum([_again(each, committed, offset) for each in stretches]))


def _again(stretch: CopiedRange, committed: int, offset: int) -> int:
    """Return the number of messages before `committed` whose copies are at or after `offset`."""
    consumed = min(stretch.end, committed) - stretch.first
    skipped = max(offset - stretch.target, 0)
    return max(consumed - skipped, 0)
