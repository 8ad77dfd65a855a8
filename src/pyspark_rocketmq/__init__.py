"""Lets Spark find `format("rocketmq")` by itself: it imports modules named `pyspark_…`."""

from pocketmq.spark.source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
