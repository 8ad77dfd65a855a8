"""Observations read from topics, through Spark.

Events and samples are few and are decoded here; of deliveries, which may be many, one message may
hold several, a line each.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from pocketmq import RebalanceEvent
from pocketmq.pipelines.health.observed import (
    AND_MORE,
    BadLine,
    DeliveryRecord,
    Observations,
    OffsetSample,
    decoded,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "brokerName string, queueId int, queueOffset bigint, body binary"


def read_topics(
    spark: "SparkSession",
    observed: Observations,
    *,
    name_server: str,
    topics: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Observations:
    """Add what topics hold: `topics` names those of `events`, `offsets`, `deliveries`.

    `options` are further options of the source, such as credentials.
    """
    reach = {"nameServer": name_server, **(options or {})}
    bad = list(observed.bad)
    events, offsets, deliveries = list(observed.events), list(observed.offsets), observed.deliveries
    if "events" in topics:
        lines = _lines(spark, reach, topics["events"])
        events += decoded(lines, RebalanceEvent.from_json, bad)
    if "offsets" in topics:
        lines = _lines(spark, reach, topics["offsets"])
        offsets += decoded(lines, msgspec.json.Decoder(OffsetSample).decode, bad)
    if "deliveries" in topics:
        lines = _lines(spark, reach, topics["deliveries"])
        more = decoded(lines, msgspec.json.Decoder(DeliveryRecord).decode, bad)
        deliveries = [*(deliveries or ()), *more]
    return Observations(events, offsets, deliveries, _first(bad))


def _lines(
    spark: "SparkSession", reach: Mapping[str, str], topic: str
) -> Iterator[tuple[str, bytes]]:
    frame = spark.read.format("rocketmq").schema(_COLUMNS).options(**reach, subscribe=topic).load()
    for row in frame.toLocalIterator():
        where = f"{topic} {row['brokerName']}:{row['queueId']} offset {row['queueOffset']}"
        for line in bytes(row["body"]).splitlines():
            if line.strip():
                yield where, line


def _first(bad: list[BadLine], most: int = 1000) -> list[BadLine]:
    """Keep a topic of something else from filling the report."""
    more = len(bad) - most
    return bad if more <= 0 else [*bad[:most], BadLine(AND_MORE, f"{more} of the same kind")]
