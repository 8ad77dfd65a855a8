"""Offsets of many queues: the JSON that Spark keeps, what users write in options, where to start.

A stream's offset is `{topic: {broker: {queue: offset}}}`. Three marks stand beside the topics,
under names no topic can have: `@fresh` marks an initial offset, `@begin` holds the start of
queues that were not in the offset before, and `@since` the first message of each queue, by
offset and store time: a queue whose first message is another one was recreated.

Why: Spark passes no checkpoint path to a Python source, and asks for the initial offset again
after a restart. By then `latest` is another place, and what was written in between would be
lost. So the end of batch 0, which the checkpoint keeps, carries its own start in `@begin`; if
the start is `@fresh`, that is what counts.

Starts and ends that contradict each other, or between which there is nothing, are refused
before anything is read, as in Spark's Kafka source: such a query looks like an empty topic.

Pure: no I/O, no state.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from pocketmq.blocking.record_reader import Bounds
from pocketmq.errors import InvalidInput, OptionInvalid
from pocketmq.model import MessageQueue

Offsets = dict[MessageQueue, int]
T = TypeVar("T")

EARLIEST = -2
LATEST = -1
_BEGIN = "@begin"
_FRESH = "@fresh"
_SINCE = "@since"
_SKEW_MS = 60_000
"""By how much clocks may differ before a time counts as one in the future."""


class FirstMessage(NamedTuple):
    """The first message that a queue holds; the time is -1 if there is none."""

    offset: int
    stored_ms: int

    def is_of_another_queue_than(self, later: "FirstMessage") -> bool:
        """Return whether a queue whose first message was this one must have been recreated since.

        In one queue a message keeps its offset and its store time, and times never decrease.
        Deleting old messages moves the first one on; a slave may still hold earlier ones.
        """
        if self.stored_ms < 0 or later.stored_ms < 0:
            return False
        if self.offset == later.offset:
            return self.stored_ms != later.stored_ms
        return later.offset < self.offset and later.stored_ms > self.stored_ms


class StreamOffset(msgspec.Struct, frozen=True):
    """The position of a stream."""

    queues: Offsets
    begin: Offsets = {}
    """The start of queues that the offset before did not have."""
    fresh: bool = False
    """Whether this is an initial offset, which may differ after a restart."""
    since: dict[MessageQueue, FirstMessage] = {}
    """The first message of each queue, as far as known."""

    def to_json(self) -> dict[str, Any]:
        """Return what Spark keeps."""
        found: dict[str, Any] = nested(self.queues)
        if self.begin:
            found[_BEGIN] = nested(self.begin)
        if self.fresh:
            found[_FRESH] = True
        if self.since:
            found[_SINCE] = nested({queue: list(first) for queue, first in self.since.items()})
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "StreamOffset":
        """Read what Spark kept; raises `InvalidInput` for anything else."""
        try:
            tables = dict(_items(found))
            plain = {name: table for name, table in tables.items() if not name.startswith("@")}
            return cls(
                flat(plain),
                flat(tables.get(_BEGIN, {})),
                bool(tables.get(_FRESH)),
                flat(tables.get(_SINCE, {}), _first_message),
            )
        except InvalidInput as problem:
            raise InvalidInput(
                f"the checkpoint is of another source: {problem}; use another checkpointLocation"
            ) from problem


def _first_message(value: Any) -> FirstMessage:
    if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
        return FirstMessage(*value)
    raise InvalidInput(f"{value!r} is not an offset and a time")


def _offset(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < EARLIEST:
        raise InvalidInput(f"{value!r} is not an offset")
    return value


def _time(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{value!r} is not a time in milliseconds since 1970")
    return value


class OffsetSpec(msgspec.Struct, frozen=True):
    """A start or an end as options name it: earliest or latest, times, offsets, a group's."""

    offset: int = LATEST
    """`EARLIEST` or `LATEST`, for queues that nothing else names."""
    each: Offsets = {}
    time_ms: int | None = None
    each_ms: Offsets = {}
    """Times in milliseconds, by queue."""
    of_group: bool = False
    """Whether the committed offsets of the query's group count, where there are some."""

    def of(self, queue: MessageQueue, bounds: Bounds, at_time: Callable[[int], int]) -> int:
        """Return the offset in a queue; one that the user named may be out of bounds."""
        time_ms = self.each_ms.get(queue, self.time_ms)
        if time_ms is not None:
            return at_time(time_ms)
        named = self.each.get(queue, self.offset)
        if named == EARLIEST:
            return bounds.first
        return bounds.end if named == LATEST else named

    def times(self, queues: Iterable[MessageQueue]) -> Offsets:
        """Return the time of each queue that starts or ends by its time."""
        if self.time_ms is not None:
            return dict.fromkeys(queues, self.time_ms)
        return {queue: self.each_ms[queue] for queue in queues if queue in self.each_ms}

    def named(self) -> Collection[MessageQueue]:
        """Return the queues that the option names."""
        return {**self.each, **self.each_ms}

    def latest_time(self) -> int | None:
        """Return the latest time among those given."""
        times = [*self.each_ms.values(), *([] if self.time_ms is None else [self.time_ms])]
        return max(times, default=None)


def read_place(text: str, default: int, *, group: bool = False) -> OffsetSpec:
    """Read `earliest`, `latest`, or JSON such as `{"orders": {"broker-a": {"0": 12, "1": -2}}}`.

    Queues that the JSON does not name get `default`; with `group`, so do those that a group has no
    offset of. Raises `InvalidInput`.
    """
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return OffsetSpec(EARLIEST if word == "earliest" else LATEST)
    if group and word == "group":
        return OffsetSpec(default, of_group=True)
    also = ", or group for the committed offsets of groupId" if group else ""
    try:
        return OffsetSpec(default, flat(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            'must be earliest, latest or JSON such as {"orders": {"broker-a": {"0": 12, "1": -2}}}'
            f" (-2 is earliest, -1 latest){also}: {error}"
        ) from None


def read_times(text: str, default: int) -> OffsetSpec:
    """Read JSON such as `{"orders": {"broker-a": {"0": 1767225600000}}}`: times by queue.

    Queues that it does not name get `default`. Raises `InvalidInput`.
    """
    try:
        return OffsetSpec(default, each_ms=flat(json.loads(text), _time))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            'must be JSON such as {"orders": {"broker-a": {"0": 1767225600000}}}, '
            f"in milliseconds since 1970: {error}"
        ) from None


def nested(offsets: Mapping[MessageQueue, Any]) -> dict[str, Any]:
    """Return offsets, or other values of queues, as nested JSON: topic, broker, queue."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for queue in sorted(offsets, key=_order):
        brokers = found.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return found


def flat(found: Any, read: Callable[[Any], T] = _offset) -> dict[MessageQueue, T]:  # type: ignore[assignment]
    """Read what `nested` returns; raises `InvalidInput` for any other form."""
    values: dict[MessageQueue, T] = {}
    for topic, brokers in _items(found):
        for broker, queues in _items(brokers):
            for number, value in _items(queues):
                if not (number.isascii() and number.isdigit() and len(number) < 10):
                    raise InvalidInput(f"{number!r} is not a queue number")
                values[MessageQueue(topic, broker, int(number))] = read(value)
    return values


def _items(found: Any) -> list[tuple[str, Any]]:
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{found!r} is not an object")
    return list(found.items())


def _order(queue: MessageQueue) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id


def lag(ends: Mapping[MessageQueue, int], reached: Mapping[MessageQueue, int]) -> Offsets:
    """Return the number of messages left to read in each queue; 0 for an unknown queue."""
    return {queue: max(0, end - reached.get(queue, end)) for queue, end in ends.items()}


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
