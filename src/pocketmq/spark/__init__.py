"""Topics as DataFrames: the data source `rocketmq` for Spark 4.2 and newer, in Python alone.

    from pocketmq.spark import spark_session

    spark = spark_session()
    orders = spark.read.format("rocketmq").options(nameServer="127.0.0.1:9876", subscribe="orders")
    orders.load().groupBy("tags").count().show()

Where this package is installed Spark finds the source by its name; `register` is for sessions that
do not search for it.
"""

from typing import TYPE_CHECKING

from pocketmq.spark.engine import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "spark_session"]


def register(spark: "SparkSession") -> None:
    """Register `format("rocketmq")` with a session."""
    from pocketmq.spark.source import RocketMQDataSource

    spark.dataSource.register(RocketMQDataSource)
