"""Offsets of many queues: the JSON that Spark keeps, what users write in options, where to start.

A stream's offset is `{topic: {broker: {queue: offset}}}`. Two marks stand beside the topics, under
names no topic can have: `@fresh` marks an initial offset, and `@begin` holds the start of queues
that were not in the offset before.

Why: Spark passes no checkpoint path to a Python source, and asks for the initial offset again after
a restart. By then `latest` is another place, and what was written in between would be lost. So the
end of batch 0, which the checkpoint keeps, carries its own start in `@begin`; if the start is
`@fresh`, that is what counts.

Pure: no I/O, no state.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pocketmq.blocking.record_reader import Bounds
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue

Offsets = dict[MessageQueue, int]

EARLIEST = -2
LATEST = -1
_BEGIN = "@begin"
_FRESH = "@fresh"


class StreamOffset(msgspec.Struct, frozen=True):
    """The position of a stream."""

    queues: Offsets
    begin: Offsets = {}
    """The start of queues that the offset before did not have."""
    fresh: bool = False
    """Whether this is an initial offset, which may differ after a restart."""

    def to_json(self) -> dict[str, Any]:
        """Return what Spark keeps."""
        found: dict[str, Any] = nested(self.queues)
        if self.begin:
            found[_BEGIN] = nested(self.begin)
        if self.fresh:
            found[_FRESH] = True
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "StreamOffset":
        """Read what Spark kept; raises `InvalidInput` for anything else."""
        plain = {name: table for name, table in found.items() if not name.startswith("@")}
        return cls(flat(plain), flat(found.get(_BEGIN, {})), bool(found.get(_FRESH)))


class OffsetSpec(msgspec.Struct, frozen=True):
    """A start or an end as options name it: earliest or latest, a time, or offsets by queue."""

    offset: int = LATEST
    """`EARLIEST` or `LATEST`, for queues that are not in `each`."""
    each: Offsets = {}
    time_ms: int | None = None

    def of(self, queue: MessageQueue, bounds: Bounds, at_time: Callable[[int], int]) -> int:
        """Return the offset in a queue; one that the user named may be out of bounds."""
        if self.time_ms is not None:
            return at_time(self.time_ms)
        named = self.each.get(queue, self.offset)
        if named == EARLIEST:
            return bounds.first
        return bounds.end if named == LATEST else named


def read_place(text: str, default: int) -> OffsetSpec:
    """Read `earliest`, `latest`, or JSON such as `{"orders": {"broker-a": {"0": 12, "1": -2}}}`.

    Queues that the JSON does not name get `default`. Raises `InvalidInput`.
    """
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return OffsetSpec(EARLIEST if word == "earliest" else LATEST)
    try:
        return OffsetSpec(default, flat(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            'must be earliest, latest or JSON such as {"orders": {"broker-a": {"0": 12, "1": -2}}}'
            f" (-2 is earliest, -1 latest): {error}"
        ) from None


def nested(offsets: Mapping[MessageQueue, int]) -> dict[str, Any]:
    """Return offsets as nested JSON: topic, broker, queue."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets, key=_order):
        brokers = found.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return found


def flat(found: Any) -> Offsets:
    """Read what `nested` returns; raises `InvalidInput` for any other form."""
    offsets: Offsets = {}
    for topic, brokers in _items(found):
        for broker, queues in _items(brokers):
            for number, offset in _items(queues):
                if not (number.isascii() and number.isdigit() and len(number) < 10):
                    raise InvalidInput(f"{number!r} is not a queue number")
                if isinstance(offset, bool) or not isinstance(offset, int) or offset < EARLIEST:
                    raise InvalidInput(f"{offset!r} is not an offset")
                offsets[MessageQueue(topic, broker, int(number))] = offset
    return offsets


def _items(found: Any) -> list[tuple[str, Any]]:
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{found!r} is not an object")
    return list(found.items())


def _order(queue: MessageQueue) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id


def lag(ends: Mapping[MessageQueue, int], reached: Mapping[MessageQueue, int]) -> Offsets:
    """Return the number of messages left to read in each queue; 0 for an unknown queue."""
    return {queue: max(0, end - reached.get(queue, end)) for queue, end in ends.items()}
