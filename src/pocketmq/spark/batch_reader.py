"""Reading topics as a batch: a range of each queue, fixed when the query is planned.

Filters that Spark pushes down narrow the ranges: those on queue, offset, store time and tag. Spark
applies every filter again unless it is exact here, so a pushed filter may leave rows in but must
never leave a wanted row out. `FilteringReader` is a class of its own because Spark refuses a reader
that takes filters while `spark.sql.python.filterPushdown.enabled` is off.

Spark 4.3 keeps one plan for all queries of a DataFrame, with the last filters that any of them
pushed down; those that push none, and both sides of a union, would miss rows. No reader can detect
this, so there the option is refused (`source_options.PLANS_APART`).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pocketmq import by_tags
from pocketmq.spark.brief_errors import brief_rows, in_brief
from pocketmq.spark.offsets import check_ranges
from pocketmq.spark.planning import Range, pack
from pocketmq.spark.schema import arrow_schema, wanted_columns
from pocketmq.spark.source_options import SourceOptions, source_options

if TYPE_CHECKING:
    import pyarrow as pa

    from pocketmq.spark.records import RowSelection


logger = logging.getLogger("pocketmq.spark")


class Task(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class BatchReader(DataSourceReader):
    """Plans on the driver, reads on the executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.columns = wanted_columns(schema)
        self.spark_schema = schema

    @in_brief
    def partitions(self) -> list[InputPartition]:
        """Return the tasks that read what is stored now.

        Raises `DataLost`, `OptionInvalid` and `MQError`.
        """
        ranges = [each for each in self._ranges() if each.size > 0]
        options = self.options
        tasks = pack(ranges, at_least=options.min_partitions, per_task=options.per_partition)
        return [Task(each) for each in tasks] or [Task(())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Return the rows of a task."""
        from pocketmq.spark.reading import read_ranges

        assert isinstance(partition, Task)
        return brief_rows(read_ranges(partition.ranges, self._wanted(), self.options.pulling))

    def _ranges(self) -> list[Range]:
        from pocketmq.spark.cluster_view import view_of
        from pocketmq.spark.waiting import Waiting

        options, strict = self.options, self.options.pulling.fail_on_data_loss
        view = view_of(options)
        with view.reader:
            waiting = Waiting(options.reach.retry_timeout, strict=strict)
            look = waiting.complete(lambda: view.first_look(strict=strict))
            starting = options.starting
            if starting.of_group:
                starting = view.of_group(options.pulling.group, starting, look)
            starts = view.offsets_at(starting, look, "startingOffsets", strict=strict)
            ends = view.offsets_at(options.ending, look, "endingOffsets", strict=strict)
        if strict:
            check_ranges(starting, options.ending, starts, ends)
        return [Range(queue, starts[queue], ends[queue]) for queue in look.found]

    def _wanted(self) -> "RowSelection":
        return wanted_rows(self.options, self.columns, self.spark_schema)


def wanted_rows(
    options: SourceOptions, columns: tuple[str, ...], schema: StructType
) -> "RowSelection":
    """Return which columns and rows a task makes."""
    from pocketmq.spark.records import RowSelection

    pulling = options.pulling
    return RowSelection(
        columns,
        arrow_schema(schema),
        pulling.tags,
        pulling.fail_on_data_loss,
        pulling.largest_body,
    )


def batch_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Return the reader that the options ask for. Raises `InvalidInput`."""
    read = source_options(options, stream=False)
    if read.push_down:
        return FilteringReader(read, schema)
    return BatchReader(read, schema)


_QUEUE_COLUMNS = ("topic", "brokerName", "queueId")
_EQUAL = (datasource.EqualTo, datasource.EqualNullSafe)


class Narrowed(msgspec.Struct):
    """What the filters leave: allowed values of the columns that name queues, and bounds."""

    values: dict[str, set[Any]] = {}
    first: int = 0
    end: int = 2**63 - 1
    since_ms: int | None = None
    until_ms: int | None = None
    tags: frozenset[str] | None = None

    def take(self, each: datasource.Filter) -> bool:
        """Narrow by one filter; return whether it is exact, so that Spark need not apply it."""
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
            return False  # inexact: brokers find the first message of a millisecond, not the last
        if column == "tags" and values is not None and None not in values:
            held_tags = frozenset(values)
            self.tags = held_tags if self.tags is None else self.tags & held_tags
            return False  # inexact: brokers compare hashes of tags
        return False

    def _take_offsets(self, each: datasource.Filter) -> bool:
        values = _values(each)
        if values is not None:
            if len(values) != 1 or None in values:
                return False
            self.first, self.end = max(self.first, values[0]), min(self.end, values[0] + 1)
        elif isinstance(each, datasource.GreaterThan):
            self.first = max(self.first, each.value + 1)
        elif isinstance(each, datasource.GreaterThanOrEqual):
            self.first = max(self.first, each.value)
        elif isinstance(each, datasource.LessThan):
            self.end = min(self.end, each.value)
        elif isinstance(each, datasource.LessThanOrEqual):
            self.end = min(self.end, each.value + 1)
        else:
            return False
        return True

    def _take_times(self, each: datasource.Filter) -> None:
        values = _values(each)
        if values is not None and len(values) == 1 and values[0] is not None:
            self._since(values[0])
            self._until(values[0])
        elif isinstance(each, datasource.GreaterThan | datasource.GreaterThanOrEqual):
            self._since(each.value)
        elif isinstance(each, datasource.LessThan | datasource.LessThanOrEqual):
            self._until(each.value)

    def _since(self, time: Any) -> None:
        since = _ms(time)
        if since is not None:
            self.since_ms = since if self.since_ms is None else max(self.since_ms, since)

    def _until(self, time: Any) -> None:
        until = _ms(time)
        if until is not None:
            self.until_ms = until if self.until_ms is None else min(self.until_ms, until)

    def has(self, each: Range) -> bool:
        """Return whether a range's queue passes the filters."""
        queue = each.queue
        of_queue = {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
        }
        return all(of_queue[column] in held for column, held in self.values.items())


class FilteringReader(BatchReader):
    """A batch reader that takes filters from Spark."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.narrowed = Narrowed()

    def pushFilters(self, filters: list[datasource.Filter]) -> Iterable[datasource.Filter]:  # noqa: N802 - Spark's name
        """Take filters, and return those that Spark still has to apply."""
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


def _values(each: datasource.Filter) -> tuple[Any, ...] | None:
    """Return the values a filter allows, if it names them."""
    if isinstance(each, _EQUAL):
        return (each.value,)
    return tuple(each.value) if isinstance(each, datasource.In) else None


def _ms(time: Any) -> int | None:
    """Return a time in milliseconds since 1970; None for one without a time zone."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        return None
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _plain_tag(tag: str) -> bool:
    return bool(tag) and tag == tag.strip() and "|" not in tag and tag != "*"
