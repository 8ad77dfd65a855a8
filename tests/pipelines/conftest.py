"""One Spark session and one cluster for all pipelines' tests."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import pocketmq as mq

pytest.importorskip("pyspark")

from pocketmq.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give a session; the one that other tests use if there is one, or they this one."""
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
    if session.sparkContext._jsc is None or gateway is None:
        return  # others have ended it
    session.stop()
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
        process.wait(30)


@pytest.fixture(scope="module")
def cluster() -> "Iterator[mq.Cluster]":
    with mq.Cluster(brokers=2, in_process=False) as running:
        yield running


@pytest.fixture
def topic(cluster: "mq.Cluster", request: pytest.FixtureRequest) -> str:
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)
