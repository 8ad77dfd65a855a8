"""A data source without a broker: the most that Spark's Python API gives for the same columns."""

import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pocketmq.spark.schema import full_schema

SIZE = 8192


class Synthetic(DataSource):
    """The same columns from memory: one decoded batch, again and again."""

    @classmethod
    def name(cls) -> str:
        return "synthetic"

    def schema(self) -> StructType:
        return full_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return SyntheticReader(schema, int(self.options["rows"]), int(self.options["body"]))


class SyntheticReader(DataSourceReader):
    def __init__(self, schema: StructType, rows: int, body: int) -> None:
        self.spark_schema, self.rows, self.body = schema, rows, body

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self.rows // 10)] * 10

    def read(self, partition: InputPartition) -> Iterator[Any]:
        from pocketmq.spark.connections import settle

        settle()
        batch = batch_of(self.spark_schema.json(), self.body)
        left = int(partition.value)
        while left > 0:
            yield batch.slice(0, min(left, SIZE))
            left -= SIZE


@cache
def batch_of(schema_text: str, body: int) -> Any:
    """Make a batch, once for each process."""
    import pyarrow as pa

    from pocketmq.spark.schema import arrow_schema

    moment = 1_700_000_000_000_000
    rows = range(SIZE)
    values: dict[str, Any] = {
        "topic": ["orders"] * SIZE,
        "brokerName": ["broker-0"] * SIZE,
        "queueId": [3] * SIZE,
        "queueOffset": list(rows),
        "body": [os.urandom(body) for _ in rows],
        "tags": ["paid"] * SIZE,
        "keys": [f"A{i}" for i in rows],
        "properties": [[("region", "eu"), ("shop", "7"), ("n", str(i))] for i in rows],
        "messageId": [f"{i:032X}" for i in rows],
        "bornTimestamp": [moment + i for i in rows],
        "storeTimestamp": [moment + i for i in rows],
        "bornHost": ["127.0.0.1:40000"] * SIZE,
        "reconsumeTimes": [0] * SIZE,
    }
    spark_schema = StructType.fromJson(json.loads(schema_text))
    schema = arrow_schema(spark_schema)
    arrays = [pa.array(values[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
