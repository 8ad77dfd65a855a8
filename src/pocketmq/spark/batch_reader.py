"""Reading topics at once: from one place to another, as they are when the query is planned."""

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pocketmq.blocking.record_reader import Bounds
from pocketmq.errors import DataLost, OptionInvalid
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.offsets import Offsets, Place
from pocketmq.spark.planning import Range, pack
from pocketmq.spark.schema import arrow_schema, wanted_columns
from pocketmq.spark.source_options import SourceOptions, source_options

if TYPE_CHECKING:
    import pyarrow as pa

    from pocketmq.spark.cluster_view import ClusterView
    from pocketmq.spark.records import Wanted

logger = logging.getLogger("pocketmq.spark")


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class BatchReader(DataSourceReader):
    """Plans on the driver, reads on the executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.columns = wanted_columns(schema)
        self.spark_schema = schema

    def partitions(self) -> list[InputPartition]:
        """Cut what there is now into tasks. Raises `DataLost`, `OptionInvalid` and `MQError`."""
        ranges = [each for each in self._ranges() if each.size > 0]
        options = self.options
        tasks = pack(ranges, at_least=options.min_partitions, per_task=options.per_partition)
        return [Task(each) for each in tasks] or [Task(())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """Give the rows of a task."""
        from pocketmq.spark.reading import read_ranges

        assert isinstance(partition, Task)
        return read_ranges(partition.ranges, self._wanted(), self.options.pulling)

    def _ranges(self) -> list[Range]:
        from pocketmq.spark.cluster_view import view_of

        options, strict = self.options, self.options.pulling.fail_on_data_loss
        view = view_of(options)
        with view.reader:
            bounds = view.bounds()
            starts = place_all(view, options.starting, bounds, "startingOffsets", strict=strict)
            ends = place_all(view, options.ending, bounds, "endingOffsets", strict=strict)
        return [Range(queue, starts[queue], ends[queue]) for queue in bounds]

    def _wanted(self) -> "Wanted":
        return wanted_rows(self.options, self.columns, self.spark_schema)


def wanted_rows(options: SourceOptions, columns: tuple[str, ...], schema: StructType) -> "Wanted":
    """Say which columns and rows a task makes."""
    from pocketmq.spark.records import Wanted

    pulling = options.pulling
    return Wanted(
        columns,
        arrow_schema(schema),
        pulling.tags,
        pulling.fail_on_data_loss,
        pulling.largest_body,
    )


def place_all(
    view: "ClusterView",
    place: Place,
    bounds: Mapping[MessageQueue, Bounds],
    option: str,
    *,
    strict: bool,
) -> Offsets:
    """Find a place in all queues.

    Raises `OptionInvalid` for an offset of a queue that is not there, and `DataLost` for one that
    the queue does not hold; not `strict`, the nearest that it holds is taken.
    """
    for queue in place.each:
        if queue not in bounds:
            raise OptionInvalid(option, f"names {queue}, which is not among the queues read")
    found: Offsets = {}
    for queue, held in bounds.items():
        offset = place.of(queue, held, partial(view.reader.offset_at, queue))
        near = min(max(offset, held.first), held.end)
        if near != offset and queue in place.each:
            span = (offset, held.first) if offset < held.first else (held.end, offset)
            why = f"{option} says {offset}, and it holds {held.first} to {held.end - 1}"
            lost = DataLost(queue.topic, queue.broker_name, queue.queue_id, span, why)
            if strict:
                raise lost
            logger.warning("%s", lost)
        found[queue] = near
    return found


def batch_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """Give the reader that the options ask for. Raises `InvalidInput`."""
    read = source_options(options, stream=False)
    if read.push_down:
        from pocketmq.spark.push_down import FilteringReader

        return FilteringReader(read, schema)
    return BatchReader(read, schema)
