"""A stream that cannot be read: Spark must get a reader, whose first call tells why."""

from collections.abc import Callable

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructType

from pocketmq.errors import MQError
from pocketmq.spark.schema import full_schema
from pocketmq.spark.source import RocketMQDataSource

HERE = {"nameServer": "127.0.0.1:1", "subscribe": "orders"}
CALLS: dict[str, Callable[..., object]] = {
    "initialOffset": lambda reader: reader.initialOffset(),
    "latestOffset": lambda reader: reader.latestOffset({}, ReadAllAvailable()),
    "partitions": lambda reader: reader.partitions({}, {}),
    "availableNow": lambda reader: reader.prepareForTriggerAvailableNow(),
    "read": lambda reader: reader.read(None),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("options", "schema", "reason"),
    [
        (HERE, StructType().add("bdy", StringType()), "unknown column 'bdy'"),
        (HERE | {"endingOffsets": "latest"}, full_schema(), "is not available for a stream"),
    ],
    ids=["column", "option"],
)
def test_the_reason_is_raised_by_the_first_call(
    options: dict[str, str], schema: StructType, reason: str, call: str
) -> None:
    reader = RocketMQDataSource(options).streamReader(schema)
    reader.getDefaultReadLimit()
    with pytest.raises(MQError, match=reason):
        CALLS[call](reader)
    reader.stop()
