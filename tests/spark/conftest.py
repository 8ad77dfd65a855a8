"""One Spark session and one cluster for all tests that need them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the session that all tests share: two cores, compiled once and not again."""
    session = spark_session(
        "pocketmq tests",
        master="local[2]",
        config={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss4m",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    stop_session(session)
