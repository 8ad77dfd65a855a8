"""What a pull of a logical queue is answered, given what the physical queue answered.

The rules are Java's (PullMessageProcessor): at the end of a range the client continues in the next
one at once; an offset that was deleted in the middle of the queue is skipped, not an error.
"""

from collections.abc import Sequence

import msgspec

from pocketmq.balance.static_topics import ranges
from pocketmq.errors import ResponseCode
from pocketmq.model.topics import MappedRange

_FOUND = int(ResponseCode.SUCCESS)
_NOTHING = int(ResponseCode.PULL_NOT_FOUND)
_AGAIN = int(ResponseCode.PULL_RETRY_IMMEDIATELY)
_MOVED = int(ResponseCode.PULL_OFFSET_MOVED)


class Pulled(msgspec.Struct, frozen=True):
    """The numbers of an answer to a pull."""

    code: int
    next_offset: int
    min_offset: int
    max_offset: int


class LogicalAnswer(Pulled, frozen=True):
    """The same in logical offsets, and what is added to the offsets in the messages."""

    delta: int


def logical_answer(
    parts: Sequence[MappedRange], part: MappedRange, asked: int, pulled: Pulled
) -> LogicalAnswer:
    """Convert what the physical queue of a range answered to a pull from `asked` on."""
    code, after, low, high = msgspec.structs.astuple(pulled)
    if code != _FOUND:
        code, part, after, low, high = _revised(parts, part, asked, pulled)
    if part.end_offset > part.start_offset:
        after = min(after, part.end_offset)
    return LogicalAnswer(
        code,
        ranges.exactly(part, after),
        ranges.exactly(part, max(part.start_offset, low)),
        max(ranges.exactly(part, high), ranges.last_end(parts)),
        part.logic_offset - part.start_offset,
    )


def _revised(
    parts: Sequence[MappedRange], part: MappedRange, asked: int, pulled: Pulled
) -> tuple[int, MappedRange, int, int, int]:
    code, after, low, high = msgspec.structs.astuple(pulled)
    first = ranges.holding(parts, 0)
    is_first = first is not None and first.gen == part.gen
    is_last = parts[-1].gen == part.gen
    if asked < low:
        return _MOVED if is_first else _AGAIN, part, low, low, high
    if is_last:
        if asked > high and code == _MOVED:
            after = high
        return code, part, after, low, high
    if asked < high:
        return code, part, after, low, high
    following = ranges.following(parts, part)
    if following is None:  # it is moving: where it continues is not decided yet
        return _NOTHING, part, after, low, high
    start = following.start_offset
    return _AGAIN, following, start, start, start
