"""Offsets of logical queues: which range holds one, and what it is in the physical queue.

A logical queue is a list of ranges in the order of their generations. The last one is led by the
broker that takes messages. Its `logic_offset` is -1 while a queue moves: the logical offsets of
messages that it takes meanwhile are not decided yet.
"""

from collections.abc import Sequence

from pocketmq.model.topics import MappedRange, TopicMapping, TopicMappingDetail

UNDECIDED = -1


def shown(part: MappedRange, physical: int) -> int:
    """Return the logical offset of a physical one; -1 while it is undecided.

    It is never outside of the range: for receipts and the first offset of a queue.
    """
    if part.logic_offset < 0:
        return UNDECIDED
    inside = max(physical, part.start_offset)
    if part.end_offset >= part.start_offset:
        inside = min(inside, part.end_offset)
    return part.logic_offset + inside - part.start_offset


def exactly(part: MappedRange, physical: int) -> int:
    """Return the logical offset of a physical one, which may be beyond the range's end."""
    return part.logic_offset + max(physical - part.start_offset, 0)


def physical(part: MappedRange, logical: int) -> int:
    """Return the physical offset of a logical one."""
    return logical - part.logic_offset + part.start_offset


def last_end(parts: Sequence[MappedRange]) -> int:
    """Return how far the mapping itself says that a queue reaches."""
    part = parts[-1]
    return part.logic_offset + max(part.end_offset - part.start_offset, 0)


def holding(parts: Sequence[MappedRange], logical: int) -> MappedRange | None:
    """Return the decided range of a logical offset, the first one if it is before all."""
    decided = [part for part in parts if part.logic_offset >= 0]
    for part in reversed(decided):
        if logical >= part.logic_offset:
            return part
    return decided[0] if decided else None


def following(parts: Sequence[MappedRange], part: MappedRange) -> MappedRange | None:
    """Return the range after this one, if its logical offset is decided."""
    later = [each for each in parts if each.gen > part.gen]
    return later[0] if later and later[0].logic_offset >= 0 else None


def rounded_up(offset: int, block: int) -> int:
    """Return where a moved queue continues: a round number that is well above `offset`.

    Messages that reach the old broker while the queue moves must stay below it.
    """
    number, rest = divmod(offset, block)
    return (number + (1 if rest < block // 2 else 2)) * block


def led_here(detail: TopicMappingDetail) -> dict[int, int]:
    """Return the logical queues that a mapping's own broker leads, with their physical queues."""
    return {
        number: parts[-1].queue_id
        for number, parts in sorted(detail.hosted_queues.items())
        if parts and parts[-1].bname == detail.bname
    }


def registered(detail: TopicMappingDetail) -> TopicMapping:
    """Return what name servers need of a mapping."""
    return TopicMapping(
        topic=detail.topic,
        scope=detail.scope,
        total_queues=detail.total_queues,
        bname=detail.bname,
        epoch=detail.epoch,
        curr_id_map=led_here(detail),
    )
