"""What lets Spark find `format("rocketmq")` by itself: it looks for modules so named."""

from pocketmq.spark.source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
