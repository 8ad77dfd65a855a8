"""Spark's part in the demo: orders to Parquet, events to a report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pocketmq as mq
from pocketmq.cli.demo.member import EVENTS, TOPIC
from pocketmq.cli.demo.spark_part import events_by_ourselves, events_by_spark, ingest_orders
from pocketmq.pipelines.health import Observations
from tests.pipelines.test_health import JOIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_orders_are_ingested_and_events_read_alike_with_and_without_spark(
    spark: "SparkSession", cluster: mq.Cluster, tmp_path: Path
) -> None:
    cluster.create_topic(TOPIC, 8)
    cluster.create_topic(EVENTS, 1)
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for number in range(50):
            order = {"number": number, "customer": "c", "amount": 1.5, "sent": 0.5}
            producer.send(mq.Message(TOPIC, json.dumps(order).encode()))
        producer.send(mq.Message(TOPIC, b"no order"))
        for event in JOIN:
            producer.send(mq.Message(EVENTS, event.to_json()))
    assert ingest_orders(spark, cluster.address, tmp_path / "parquet") == set(range(50))
    assert len(list(tmp_path.glob("parquet/bad/day=*/topic=*/batch=*/*.parquet"))) == 1
    by_spark = events_by_spark(spark, cluster.address, Observations([]))
    ourselves = events_by_ourselves(cluster.address, Observations([]))
    for observed in (by_spark, ourselves):
        assert sorted(observed.events, key=lambda event: event.started) == list(JOIN)
