"""The stream sink: rows of micro-batches appended to topics, at least once, or exactly once."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from pocketmq.spark.sink import Written, send_rows
from pocketmq.spark.sink_options import SinkPlan, sink_plan


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceStreamArrowWriter:
    """Give what writes a stream; raises `InvalidInput` for what cannot be written."""
    plan = sink_plan(options, schema, overwrite=overwrite, stream=True)
    if plan.exactly_once is None:
        return StreamWriter(plan)
    from pocketmq.spark.exactly_once import ExactlyOnceWriter

    return ExactlyOnceWriter(plan, plan.exactly_once)


class StreamWriter(DataSourceStreamArrowWriter):
    """Sends rows; a micro-batch that Spark runs again is sent again."""

    def __init__(self, plan: SinkPlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send the rows of one task. Raises `RowRefused` or `RowsNotSent`."""
        return Written(send_rows(self.plan, iterator))
