"""The options and columns of the sink: read when a write is planned, refused by name."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import types as spark_types
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructType

from pocketmq.errors import InvalidInput, OptionInvalid
from pocketmq.spark.sink_options import GROUP, SinkColumns, SinkPlan, sink_plan

FULL = "topic string, body binary, tags string, keys string, properties map"
KINDS: dict[str, DataType] = {
    "string": StringType(),
    "binary": spark_types.BinaryType(),
    "int": IntegerType(),
    "bigint": spark_types.LongType(),
    "double": spark_types.DoubleType(),
    "timestamp": spark_types.TimestampType(),
    "interval": spark_types.DayTimeIntervalType(),
    "ints": ArrayType(IntegerType()),
    "map": MapType(StringType(), StringType()),
    "counts": MapType(StringType(), IntegerType()),
}


def plan(
    columns: str = FULL,
    options: Mapping[str, str] | None = None,
    *,
    stream: bool = False,
    overwrite: bool = False,
) -> SinkPlan:
    schema = StructType()
    for column in columns.split(", "):
        name, kind = column.split()
        schema = schema.add(name, KINDS[kind])
    given = {"nameServer": "127.0.0.1:9876", **(options or {})}
    return sink_plan(given, schema, overwrite=overwrite, stream=stream)


def exactly_once(**options: str) -> SinkPlan:
    return plan(options={"exactlyOnce": "true", **options}, stream=True)


def test_columns_are_found_by_name_in_any_case_and_order() -> None:
    found = plan("DELAY interval, Body string, orderingkey bigint, topic string")
    assert found.columns == SinkColumns(body=1, topic=3, ordering_key=2, delay=0)
    assert (found.group, found.topic, found.exactly_once) == (GROUP, None, None)
    assert pickle.loads(pickle.dumps(found)) == found


def test_rows_of_the_source_can_be_written_as_they_are() -> None:
    columns = FULL + ", queueId int, queueOffset bigint, bornTimestamp timestamp"
    assert plan(columns).columns == SinkColumns(
        body=1, topic=0, tags=2, keys=3, properties=4, queue_id=5
    )


def test_option_topic_wins_over_the_column() -> None:
    assert plan(options={"topic": "bills"}).columns.topic == -1
    assert plan("body string", {"topic": "bills"}).topic == "bills"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("topic string", "column 'body' is missing"),
        ("body binary", "add a column 'topic', or set option 'topic'"),
        (
            "topic string, body binary, tag string",
            "unknown column 'tag'; the sink takes topic, body, tags",
        ),
        ("topic string, body int", "'body' must be binary or string, not int"),
        ("topic string, body binary, keys ints", "not array<int>"),
        ("topic string, body binary, properties counts", "not map<string,int>"),
        ("topic string, body binary, orderingKey double", "not double"),
        ("topic string, body binary, delay timestamp", "not timestamp"),
        ("topic string, body binary, BODY binary", "'body' occurs twice"),
    ],
)
def test_columns_that_cannot_be_sent_are_named(columns: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        plan(columns)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "orders"}, "'subscribe' is unknown"),
        ({"topics": "orders"}, "'topics' is unknown; did you mean 'topic'"),
        ({"topic": "a b"}, "'topic' is invalid"),
        ({"producerGroup": "a b"}, "'producerGroup' is invalid"),
        ({"batchSize": "5m"}, "'batchSize' must be from 1024 to 4194304"),
        ({"ledger": "somewhere"}, "'ledger' requires option 'exactlyOnce'"),
        ({"exactlyOnce": "true"}, "'exactlyOnce' is only available for streams"),
    ],
)
def test_options_that_cannot_work_are_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionInvalid, match=reason):
        plan(options=options)


def test_topics_are_not_overwritten() -> None:
    with pytest.raises(InvalidInput, match="can only be appended to"):
        plan(overwrite=True)


def test_the_ledger_is_beside_the_checkpoint_unless_it_is_told(tmp_path: Path) -> None:
    for checkpoint in (str(tmp_path), f"file://{tmp_path}/", f"file:{tmp_path}"):
        found = exactly_once(checkpointLocation=checkpoint)
        assert found.exactly_once is not None
        assert found.exactly_once.ledger == f"{tmp_path}/ledger"
    other = exactly_once(checkpointLocation="hdfs://a/b", ledger=f"{tmp_path}/own")
    assert other.exactly_once is not None
    assert other.exactly_once.ledger == f"{tmp_path}/own"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "requires option 'ledger', a directory"),
        ({"checkpointLocation": "hdfs://a/b"}, "set option 'ledger' to a local directory"),
        ({"ledger": "s3a://bucket/x"}, "'ledger' cannot keep its ledger in 's3a://bucket/x'"),
        ({"ledger": "l", "stagingTopic": "a b"}, "'stagingTopic' is invalid"),
        ({"ledger": "l", "topic": "t", "stagingTopic": "t"}, "must not be the target topic"),
    ],
)
def test_exactly_once_needs_a_ledger_that_works(options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionInvalid, match=reason):
        exactly_once(**options)


def test_staged_rows_cannot_be_held_back() -> None:
    with pytest.raises(OptionInvalid, match="cannot be combined with column 'delay'"):
        plan(FULL + ", delay double", {"exactlyOnce": "true", "ledger": "l"}, stream=True)
    with pytest.raises(OptionInvalid, match="cannot be combined with column 'priority'"):
        plan(FULL + ", priority int", {"exactlyOnce": "true", "ledger": "l"}, stream=True)
