"""What lets Spark find `format("rocketmq")` by itself: it looks for modules of this kind of name."""

from pocketmq.spark.source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
