"""One Spark session and one cluster for all tests that need them."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pocketmq.spark import spark_session

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
    gateway = session.sparkContext._gateway
    yield session
    session.stop()
    assert gateway is not None
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        process.wait(30)
