"""What a broker accepts as the mapping of a static topic: Java's checks, and limits of ours.

A mapping comes from a peer that is not trusted: limits are checked before it is used.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.errors import MappingRefused
from pocketmq.model.static_topics import MAX_STATIC_QUEUES
from pocketmq.model.topics import MappedRange, TopicMappingDetail

MAX_RANGES = 64
"""Generations of one logical queue at most; those whose messages have expired are dropped."""
MAX_PHYSICAL_QUEUES = 65_536
LARGEST_OFFSET = 1 << 60
_LONGEST_NAME = 255


def check_limits(detail: TopicMappingDetail) -> None:
    """Refuse numbers that no real mapping has. Raises `MappingRefused`."""
    names = [detail.topic, detail.scope, detail.bname]
    if not 0 <= detail.total_queues <= MAX_STATIC_QUEUES:
        raise MappingRefused(f"{detail.total_queues} queues; 0 to {MAX_STATIC_QUEUES} are allowed")
    for number, parts in detail.hosted_queues.items():
        if not 0 <= number < detail.total_queues:
            raise MappingRefused(f"queue {number} is not one of {detail.total_queues} queues")
        if len(parts) > MAX_RANGES:
            raise MappingRefused(f"queue {number} has more than {MAX_RANGES} ranges")
        for part in parts:
            names.append(part.bname)
            offsets = (part.logic_offset, part.start_offset, part.end_offset)
            if not all(-1 <= offset <= LARGEST_OFFSET for offset in offsets):
                raise MappingRefused(f"queue {number} has an invalid offset")
            if not 0 <= part.queue_id < MAX_PHYSICAL_QUEUES or not 0 <= part.gen < 1 << 31:
                raise MappingRefused("The field is illegal, should not be negative")
    if not all(name and len(name) <= _LONGEST_NAME for name in names):
        raise MappingRefused("a name is missing or too long")


def check_ranges(parts: Sequence[MappedRange]) -> None:
    """Check one logical queue: generations and offsets grow. Raises `MappingRefused`."""
    newer: MappedRange | None = None
    for part in reversed(parts):
        if part.start_offset < 0 or part.gen < 0 or part.queue_id < 0:
            raise MappingRefused("The field is illegal, should not be negative")
        if part.end_offset != -1 and part.end_offset < part.start_offset:
            raise MappingRefused("The endOffset is smaller than the start offset")
        if newer is not None:
            if part.logic_offset < 0:
                raise MappingRefused("The non-latest item has negative logic offset")
            if part.gen >= newer.gen:
                raise MappingRefused("The gen does not increase monotonically")
            reach = part.logic_offset + max(part.end_offset - part.start_offset, 0)
            if newer.logic_offset != -1 and reach >= newer.logic_offset:
                raise MappingRefused("The base logic offset does not increase monotonically")
        newer = part


def accepted(
    new: TopicMappingDetail, old: TopicMappingDetail | None, *, force: bool
) -> TopicMappingDetail:
    """Return the mapping that replaces the old one. Raises `MappingRefused`.

    Queues that the new one lacks stay as they were. `force` skips the comparison with the old one.
    """
    check_limits(new)
    for parts in new.hosted_queues.values():
        check_ranges(parts)
    if old is None:
        return new
    if not force:
        _compare(new, old)
    hosted = {**old.hosted_queues, **new.hosted_queues}
    if any(number >= new.total_queues for number in hosted):
        raise MappingRefused("a static topic cannot have fewer queues than before")
    return msgspec.structs.replace(new, hosted_queues=hosted)


def _compare(new: TopicMappingDetail, old: TopicMappingDetail) -> None:
    if new.epoch < old.epoch:
        raise MappingRefused(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
    if new.scope != old.scope:
        raise MappingRefused(f"Can't accept data with unmatched scope {new.scope} != {old.scope}")
    same = new.epoch == old.epoch
    for number, before in old.hosted_queues.items():
        after = new.hosted_queues.get(number)
        if after is None:
            if same:
                raise MappingRefused("Cannot accept equal epoch with null data")
        elif before:
            _check_immutable(before, after, same=same)


def _check_immutable(
    before: Sequence[MappedRange], after: Sequence[MappedRange], *, same: bool
) -> None:
    """Check that known ranges are as they were; old ones may be gone, new ones may follow."""
    if not after:
        raise MappingRefused("The new item list is null or empty")
    known: Mapping[int, MappedRange] = {part.gen: part for part in before}
    for part in after:
        old = known.get(part.gen)
        if old is None:
            continue
        decided = old.logic_offset not in {-1, part.logic_offset}
        if _place(old) != _place(part) or decided:
            raise MappingRefused(f"the range of generation {part.gen} cannot be changed")
    if same and _place(before[-1]) != _place(after[-1]):
        raise MappingRefused("The new leader is different but epoch equal")


def _place(part: MappedRange) -> tuple[int, str | None, int, int]:
    return part.gen, part.bname, part.queue_id, part.start_offset
