"""The checks of a static topic's mapping: Java's, with its words, and limits of ours.

What one broker accepts, whose mapping comes from a peer that is not trusted: limits are checked
before it is used. And whether what all brokers of a topic say about it fits together.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pocketmq.errors import MappingRefused
from pocketmq.model import MappedTopicConfig, TopicMappingDetail
from pocketmq.model.topics import MAX_STATIC_QUEUES, MappedRange

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


def check_alike(topic: str, configs: Mapping[str, MappedTopicConfig]) -> tuple[int, int]:
    """Return the epoch and the number of queues, which all brokers must agree on.

    Raises `MappingRefused`.
    """
    first: TopicMappingDetail | None = None
    for broker, config in configs.items():
        detail = config.mapping_detail
        if detail is None:
            raise MappingRefused(f"Mapping info should not be null in broker {broker}")
        check_limits(detail)
        if detail.bname != broker:
            raise MappingRefused(f"The broker name is not equal {broker} != {detail.bname} ")
        if detail.dirty:
            raise MappingRefused(f"The mapping info is dirty in broker  {broker}")
        if not detail.topic == config.topic_name == topic:
            raise MappingRefused(f"The topic name is not match for broker  {broker}")
        if first is None:
            first = detail
        if first.scope != detail.scope:
            raise MappingRefused(
                f"scope does not match {detail.scope} != {first.scope} in {broker}"
            )
        if first.epoch != detail.epoch:
            raise MappingRefused(
                f"epoch does not match {first.epoch} != {detail.epoch} in {broker}"
            )
        if first.total_queues != detail.total_queues:
            raise MappingRefused(
                f"total queue number does not match {first.total_queues} != "
                f"{detail.total_queues} in {broker}"
            )
    if first is None:
        raise MappingRefused("no broker has the topic")
    return first.epoch, first.total_queues


def led_queues(
    configs: Iterable[MappedTopicConfig], *, whole: bool = True
) -> dict[int, list[MappedRange]]:
    """Return each logical queue as its leader has it; `whole`: there must be one for each.

    Without `whole` the newest mapping decides. Raises `MappingRefused`.
    """
    details = [each.mapping_detail for each in configs if each.mapping_detail is not None]
    found: dict[int, list[MappedRange]] = {}
    for detail in sorted(details, key=lambda each: -each.epoch):
        for number, parts in detail.hosted_queues.items():
            check_ranges(parts)
            if not parts or parts[-1].bname != detail.bname:
                continue
            if number not in found:
                found[number] = parts
            elif whole:
                raise MappingRefused(f"The queue id is duplicated in broker {detail.bname}")
    total = max((detail.total_queues for detail in details), default=0)
    if whole and found.keys() != set(range(total)):
        raise MappingRefused(
            "The total queue number in config does not match the real hosted queues "
            f"{total} != {len(found)}"
        )
    _check_not_reused(found)
    return dict(sorted(found.items()))


def _check_not_reused(queues: Mapping[int, list[MappedRange]]) -> None:
    owners: dict[tuple[str | None, int], int] = {}
    for number, parts in queues.items():
        for part in parts:
            place = (part.bname, part.queue_id)
            if place in owners:
                raise MappingRefused(
                    f"global queue id {number} and {owners[place]} shared the same physical queue "
                    f"{part.bname}-{part.queue_id}"
                )
            owners[place] = number


def check_physical_queues(configs: Mapping[str, MappedTopicConfig]) -> None:
    """Check that each range has a physical queue that starts at 0. Raises `MappingRefused`."""
    for config in configs.values():
        if config.read_queue_nums < config.write_queue_nums:
            raise MappingRefused("Read queues is smaller than write queues")
        hosted = {} if config.mapping_detail is None else config.mapping_detail.hosted_queues
        for part in (part for parts in hosted.values() for part in parts):
            if part.start_offset != 0:
                raise MappingRefused("The start offset does not begin from 0")
            there = configs.get(part.bname or "")
            if there is None:
                raise MappingRefused("The broker of item does not exist")
            if part.queue_id >= there.write_queue_nums:
                raise MappingRefused("The physical queue id is overflow the write queues")
