"""One Spark session and one cluster for all tests that need them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pocketmq import Cluster
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give a cluster in this process that all tests share."""
    with Cluster() as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Give a topic of two queues that no other test knows."""
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the session that all tests share: two cores, compiled once and not again."""
    session = spark_session(
        "pocketmq tests",
        master="local[2,2]",  # a task that fails is tried twice
        config={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss4m",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    stop_session(session)
