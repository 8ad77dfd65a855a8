"""One cluster for all tests that need it; the Spark session is that of all tests."""

from collections.abc import Iterator

import pytest

import pocketmq as mq

pytest.importorskip("pyspark")


@pytest.fixture(scope="session", autouse=True)
def long_works(early_works: object) -> None:
    """Begin them, whichever test comes first."""


@pytest.fixture(scope="session")
def cluster() -> "Iterator[mq.Cluster]":
    with mq.Cluster(brokers=2, in_process=False) as running:
        yield running


@pytest.fixture
def topic(cluster: "mq.Cluster", request: pytest.FixtureRequest) -> str:
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)
