"""The data source `rocketmq`: Spark's entry points.

Imports nothing heavy: Spark loads this in every process that plans or reads.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pocketmq.spark.brief_errors import in_brief
from pocketmq.spark.worker_daemon import silence_planning_daemon

silence_planning_daemon()


class RocketMQDataSource(DataSource):
    """Topics as DataFrames, read and written, as batches or streams."""

    @in_brief
    def __init__(self, options: dict[str, str]) -> None:
        """Check options as far as they are the same for all uses; raises `OptionInvalid`.

        Spark makes the source in `load()` and `save()`, long before it makes a reader or writer,
        and when a table is created.
        """
        from pocketmq.spark.given_options import check_options, options_of_table

        table = options_of_table(options)
        super().__init__(options if table is None else table)
        self._is_table = table is not None
        check_options(self.options)

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "rocketmq"

    @in_brief
    def schema(self) -> StructType:
        """Return all columns; a user-defined schema may select fewer. Raises `OptionInvalid`."""
        from pocketmq.spark.given_options import check_source, check_table, with_options
        from pocketmq.spark.schema import full_schema

        if self._is_table:
            check_table(self.options)
            return with_options(full_schema(), self.options)
        check_source(self.options)
        return full_schema()

    @in_brief
    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what topics hold now."""
        from pocketmq.spark.batch_reader import batch_reader
        from pocketmq.spark.given_options import kept_options
        from pocketmq.spark.source_options import KNOWN

        return batch_reader(kept_options(self.options, schema, KNOWN), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Read what topics hold, and new messages; raises nothing itself (see `RefusedStream`)."""
        from pocketmq.errors import MQError
        from pocketmq.spark.given_options import kept_options
        from pocketmq.spark.source_options import KNOWN
        from pocketmq.spark.stream_reader import RefusedStream, stream_reader

        try:
            return stream_reader(kept_options(self.options, schema, KNOWN), schema)
        except MQError as error:
            return RefusedStream(error)

    @in_brief
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        """Append rows to topics."""
        from pocketmq.spark.sink import batch_writer

        return batch_writer(self._sink_options(schema), schema, overwrite=overwrite)

    @in_brief
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001 - Spark's
        """Append the rows of a stream to topics."""
        from pocketmq.spark.sink import stream_writer

        return stream_writer(self._sink_options(schema), schema, overwrite=overwrite)

    def _sink_options(self, schema: StructType) -> Mapping[str, str]:
        from pocketmq.spark.given_options import kept_options, topic_of_table
        from pocketmq.spark.sink_options import SINK

        return topic_of_table(kept_options(self.options, schema, SINK), schema)
