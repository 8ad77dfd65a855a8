"""Filters that Spark hands over in batch: those that decide about queues, offsets, times and tags.

Spark still applies every filter itself, unless it is exact here; so what is pushed down only has to
leave out nothing that is wanted. The reader is a class of its own because Spark refuses one that
takes filters while its setting for that is off.

Spark (4.3) keeps what a DataFrame's first filters came to, and uses it again for later queries of
the same DataFrame that have no filter to hand over: those would miss rows. So with push-down every
query has to begin with a `load()` of its own, and it is off unless asked for.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from pocketmq.client.filters import by_tags
from pocketmq.spark.batch_reader import BatchReader
from pocketmq.spark.planning import Range
from pocketmq.spark.source_options import SourceOptions

_QUEUE_COLUMNS = ("topic", "brokerName", "queueId")
_EQUAL = (EqualTo, EqualNullSafe)


class Narrowed(msgspec.Struct):
    """What the filters leave: values of columns that tell queues, and bounds."""

    values: dict[str, set[Any]] = {}
    first: int = 0
    end: int = 2**63 - 1
    since_ms: int | None = None
    until_ms: int | None = None
    tags: frozenset[str] | None = None

    def take(self, each: Filter) -> bool:
        """Narrow by one filter; tell whether it need not be applied again."""
        path: tuple[str, ...] = getattr(each, "attribute", ())
        column = path[0] if len(path) == 1 else None
        values = _values(each)
        if column in _QUEUE_COLUMNS and values is not None:
            held = self.values.get(column)
            self.values[column] = set(values) if held is None else held & set(values)
            return True
        if column == "queueOffset":
            return self._take_offsets(each)
        if column == "storeTimestamp":
            self._take_times(each)
            return False  # brokers know the first message of a millisecond, not the last
        if column == "tags" and values is not None and None not in values:
            held_tags = frozenset(values)
            self.tags = held_tags if self.tags is None else self.tags & held_tags
            return False  # a broker compares hashes
        return False

    def _take_offsets(self, each: Filter) -> bool:
        values = _values(each)
        if values is not None:
            if len(values) != 1 or None in values:
                return False
            self.first, self.end = max(self.first, values[0]), min(self.end, values[0] + 1)
        elif isinstance(each, GreaterThan):
            self.first = max(self.first, each.value + 1)
        elif isinstance(each, GreaterThanOrEqual):
            self.first = max(self.first, each.value)
        elif isinstance(each, LessThan):
            self.end = min(self.end, each.value)
        elif isinstance(each, LessThanOrEqual):
            self.end = min(self.end, each.value + 1)
        else:
            return False
        return True

    def _take_times(self, each: Filter) -> None:
        values = _values(each)
        if values is not None and len(values) == 1 and values[0] is not None:
            self._since(values[0])
            self._until(values[0])
        elif isinstance(each, GreaterThan | GreaterThanOrEqual):
            self._since(each.value)
        elif isinstance(each, LessThan | LessThanOrEqual):
            self._until(each.value)

    def _since(self, moment: Any) -> None:
        since = _ms(moment)
        if since is not None:
            self.since_ms = since if self.since_ms is None else max(self.since_ms, since)

    def _until(self, moment: Any) -> None:
        until = _ms(moment)
        if until is not None:
            self.until_ms = until if self.until_ms is None else min(self.until_ms, until)

    def has(self, each: Range) -> bool:
        """Tell whether a queue is among those wanted."""
        queue = each.queue
        of_queue = {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
        }
        return all(of_queue[column] in held for column, held in self.values.items())


class FilteringReader(BatchReader):
    """A reader of batches that leaves out what filters leave out."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.narrowed = Narrowed()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take filters, and give back those Spark has to apply all the same."""
        left = [each for each in filters if not self.narrowed.take(each)]
        tags = self.narrowed.tags
        pulling = self.options.pulling
        if tags and pulling.wanted.expression == "*" and all(map(_plain_tag, tags)):
            pulling = msgspec.structs.replace(pulling, wanted=by_tags(*sorted(tags)), tags=tags)
            self.options = msgspec.structs.replace(self.options, pulling=pulling)
        return left

    def _ranges(self) -> list[Range]:
        from pocketmq.spark.connections import reader_of

        found = self.narrowed
        if found.tags is not None and not found.tags:
            return []
        pulling = self.options.pulling
        reader = reader_of(pulling.reach, pulling.group)
        ranges = []
        for each in filter(found.has, super()._ranges()):
            start, end = max(each.start, found.first), min(each.end, found.end)
            if found.since_ms is not None and start < end:
                start = max(start, reader.offset_at(each.queue, found.since_ms))
            if found.until_ms is not None and start < end:
                end = min(end, reader.offset_at(each.queue, found.until_ms + 1))
            ranges.append(Range(each.queue, start, max(start, end)))
        return ranges


def _values(each: Filter) -> tuple[Any, ...] | None:
    """Give the values a filter allows, if it names them."""
    if isinstance(each, _EQUAL):
        return (each.value,)
    return tuple(each.value) if isinstance(each, In) else None


def _ms(moment: Any) -> int | None:
    """Give the millisecond a moment lies in; Spark hands over times that know their zone."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _plain_tag(tag: str) -> bool:
    return bool(tag) and tag == tag.strip() and "|" not in tag and tag != "*"
