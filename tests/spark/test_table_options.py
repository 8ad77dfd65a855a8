"""Options of a table: kept in its columns, without secrets, and found again."""

import pytest
from pyspark.sql.types import StringType, StructType, _parse_datatype_json_string

from pocketmq.errors import OptionInvalid
from pocketmq.spark.given_options import (
    check_table,
    kept_options,
    options_of_table,
    topic_of_table,
    with_options,
)
from pocketmq.spark.schema import full_schema, wanted_columns
from pocketmq.spark.sink_options import SINK
from pocketmq.spark.source_options import KNOWN

PROPERTIES = {
    "provider": "rocketmq",
    "owner": "me",
    "option.nameServer": "h:1",
    "option.subscribe": "orders",
    "nameServer": "h:1",
    "subscribe": "orders",
}


def through_spark(schema: StructType) -> StructType:
    found = _parse_datatype_json_string(schema.json())
    assert isinstance(found, StructType)
    return found


def test_a_table_that_is_created_is_told_by_its_properties() -> None:
    assert options_of_table(PROPERTIES) == {"nameServer": "h:1", "subscribe": "orders"}
    assert options_of_table({"nameServer": "h:1", "subscribe": "orders"}) is None
    assert options_of_table({"owner": "me"}) == {}


@pytest.mark.parametrize("secret", ["accessKey", "secretKey", "SECURITYTOKEN", "tlsKeyPassword"])
def test_secrets_are_not_kept_in_columns(secret: str) -> None:
    with pytest.raises(OptionInvalid, match="cannot be stored in a table") as refused:
        options_of_table(PROPERTIES | {f"option.{secret}": "s3cr3t"})
    assert "s3cr3t" not in str(refused.value)


def test_columns_bring_the_options_back() -> None:
    table = {"nameServer": "h:1", "subscribe": "orders", "batchSize": "1m", "Tags": "a"}
    schema = through_spark(with_options(full_schema(), table))
    assert wanted_columns(schema) == wanted_columns(full_schema())
    assert kept_options({}, schema, KNOWN) == {
        "nameServer": "h:1",
        "subscribe": "orders",
        "Tags": "a",
    }
    own = {"tags": "b"}
    assert kept_options(own, schema, KNOWN) == {
        "nameServer": "h:1",
        "subscribe": "orders",
        "tags": "b",
    }
    assert kept_options({}, schema, SINK) == {"nameServer": "h:1", "batchSize": "1m"}
    plain = {"subscribe": "x"}
    assert kept_options(plain, full_schema(), KNOWN) is plain


def test_a_table_of_one_topic_is_written_to_it() -> None:
    one = with_options(full_schema(), {"subscribe": "orders"})
    assert topic_of_table({"nameServer": "h:1"}, one) == {"nameServer": "h:1", "topic": "orders"}
    assert topic_of_table({"TOPIC": "out"}, one) == {"TOPIC": "out"}
    two = with_options(full_schema(), {"subscribe": "orders, bills"})
    assert topic_of_table({}, two) == {}
    assert topic_of_table({}, StructType().add("body", StringType())) == {}


def test_a_table_is_for_reading_writing_or_both() -> None:
    for options in (
        {"nameServer": "h:1", "subscribe": "orders"},
        {"nameServer": "h:1", "topic": "orders", "batchSize": "1m"},
        {"nameServer": "h:1", "subscribe": "orders", "topic": "out", "batchSize": "1m"},
    ):
        check_table(options)
    with pytest.raises(OptionInvalid, match="'topic' to write it"):
        check_table({"nameServer": "h:1"})
    with pytest.raises(OptionInvalid, match="cannot be combined"):
        check_table({"nameServer": "h:1", "subscribe": "orders", "subscribePattern": "o.*"})
