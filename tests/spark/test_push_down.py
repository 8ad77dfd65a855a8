"""Filters that Spark hands over: what they leave out, and what is left to Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pocketmq import Cluster
from pocketmq.errors import OptionInvalid
from pocketmq.spark.batch_reader import BatchReader, FilteringReader, batch_reader
from pocketmq.spark.schema import full_schema
from pocketmq.spark.source_options import PLANS_APART, source_options
from tests.spark.topics import bodies, send


def filtered(cluster: Cluster, topic: str, filters: list[Any]) -> tuple[list[str], list[Any]]:
    given = {"nameServer": cluster.address, "subscribe": topic}
    reader = FilteringReader(source_options(given, stream=False), full_schema())
    left = list(reader.pushFilters(filters))
    return bodies(reader, reader.partitions()), left


def test_queues_and_offsets_are_narrowed(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(10), queue=0)
    send(cluster, topic, ["x"], queue=1)
    at = ("queueOffset",)
    first = EqualTo(("queueId",), 0)
    for filters, found in (
        ([EqualTo(("queueId",), 1)], ["x"]),
        ([In(("queueId",), (1, 7))], ["x"]),
        ([EqualTo(("topic",), "other")], []),
        ([EqualTo(("queueId",), 1), EqualTo(("queueId",), 0)], []),
        ([first, GreaterThan(at, 6)], ["7", "8", "9"]),
        ([first, GreaterThanOrEqual(at, 6), LessThan(at, 8)], ["6", "7"]),
        ([first, LessThanOrEqual(at, 1)], ["0", "1"]),
        ([first, EqualTo(at, 4)], ["4"]),
    ):
        assert filtered(cluster, topic, filters) == (found, []), filters


def test_times_and_tags_are_narrowed_and_left_to_spark_too(cluster: Cluster, topic: str) -> None:
    send(cluster, topic, ["a"], tag="Aa")
    send(cluster, topic, ["b"], tag="BB")
    send(cluster, topic, ["c"])
    now, hour = datetime.now(UTC), timedelta(hours=1)
    stored = ("storeTimestamp",)
    for filters, found in (
        ([GreaterThan(stored, now - hour)], ["a", "b", "c"]),
        ([GreaterThan(stored, now + hour)], []),
        ([LessThan(stored, now - hour)], []),
        ([EqualTo(("tags",), "Aa")], ["a"]),
        ([In(("tags",), ("BB", "zz"))], ["b"]),
        ([EqualTo(("tags",), "Aa"), EqualTo(("tags",), "BB")], []),
        ([EqualTo(("tags",), "a||b")], ["a", "b", "c"]),
        ([IsNotNull(("body",)), EqualTo(("properties", "x"), "1")], ["a", "b", "c"]),
    ):
        assert filtered(cluster, topic, filters) == (found, filters), filters


def test_a_reader_takes_filters_only_if_it_is_told_to() -> None:
    """Spark refuses readers that do while its own setting is off."""
    given = {"nameServer": "h:1", "subscribe": "t"}
    reader = batch_reader(given, full_schema())
    assert type(reader) is BatchReader
    assert type(batch_reader(given | {"pushdown": "false"}, full_schema())) is BatchReader
    if PLANS_APART:
        told = batch_reader(given | {"pushdown": "true"}, full_schema())
        assert type(told) is FilteringReader
    else:
        with pytest.raises(OptionInvalid, match="'pushdown' would lose rows: in this version of"):
            batch_reader(given | {"pushdown": "true"}, full_schema())
    assert type(reader).pushFilters is BatchReader.__mro__[1].pushFilters  # type: ignore[attr-defined]
