"""Starts and ends that contradict each other, or between which there is nothing. Pure.

As in Spark's Kafka source they are refused before anything is read: a query that silently reads
nothing looks like an empty topic.
"""

from collections.abc import Mapping
from typing import Any

from pocketmq.errors import OptionInvalid
from pocketmq.spark.offsets import EARLIEST, LATEST, Offsets, OffsetSpec

_SKEW_MS = 60_000
"""By how much clocks may differ before a time counts as one in the future."""


def check_places(
    found: Mapping[str, Any], starting: OffsetSpec, ending: OffsetSpec, *, stream: bool
) -> None:
    """Refuse a start and an end between which there is nothing, or that mean nothing."""
    if starting.of_group and "groupId" not in found:
        raise OptionInvalid("startingOffsets", "is group, which requires option 'groupId'")
    if stream:
        return
    if "startingOffsets" in found and LATEST in (starting.offset, *starting.each.values()):
        raise OptionInvalid(
            "startingOffsets", "must not be latest for a batch, which would read nothing"
        )
    if "endingOffsets" in found and EARLIEST in (ending.offset, *ending.each.values()):
        raise OptionInvalid(
            "endingOffsets", "must not be earliest for a batch, which would read nothing"
        )
    began, ended = starting.time_ms, ending.time_ms
    if began is not None and ended is not None and began > ended:
        raise OptionInvalid("startingTimestamp", "is later than endingTimestamp")
    for start, end in ((starting.each, ending.each), (starting.each_ms, ending.each_ms)):
        for queue in start.keys() & end.keys():
            if 0 <= end[queue] < start[queue]:
                name = "endingOffsets" + ("ByTimestamp" if end is ending.each_ms else "")
                raise OptionInvalid(
                    name, f"ends before the start: {end[queue]} < {start[queue]} in {queue}"
                )


def check_future(found: Mapping[str, Any], starting: OffsetSpec, now_ms: int) -> None:
    """Refuse a start in the future, unless the option says that it means the end by now."""
    latest = starting.latest_time()
    given = "startingTimestamp" if starting.time_ms is not None else "startingOffsetsByTimestamp"
    strategy = "startingOffsetsByTimestampStrategy"
    if strategy in found and latest is None:
        raise OptionInvalid(
            strategy, "requires 'startingTimestamp' or 'startingOffsetsByTimestamp'"
        )
    if latest is None or found.get(strategy) == "latest" or latest <= now_ms + _SKEW_MS:
        return
    raise OptionInvalid(
        given,
        f"is in the future: {latest} > {now_ms} (ms since 1970); "
        f"set {strategy}=latest to read from the end instead",
    )


def check_ranges(starting: OffsetSpec, ending: OffsetSpec, starts: Offsets, ends: Offsets) -> None:
    """Refuse a queue that is named, and whose start is after its end. Raises `OptionInvalid`.

    Queues that are not named are empty then: nothing was stored in them in that time.
    """
    for queue in {*starting.named(), *ending.named()} & starts.keys():
        start, end = starts[queue], ends[queue]
        if start > end:
            option = "startingOffsets" if queue in starting.named() else "endingOffsets"
            raise OptionInvalid(option, f"makes {queue} start after its end: {start} > {end}")
