"""Whether what the brokers of a static topic say about it fits together, with Java's words."""

from collections.abc import Iterable, Mapping

from pocketmq.balance.static_topics.accepting import check_limits, check_ranges
from pocketmq.errors import MappingRefused
from pocketmq.model.topics import MappedRange, MappedTopicConfig, TopicMappingDetail


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
