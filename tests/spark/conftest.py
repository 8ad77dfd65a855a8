"""One cluster for all tests that need it; the Spark session is that of all tests."""

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pocketmq import Cluster


@pytest.fixture(scope="session", autouse=True)
def long_works(early_works: object) -> None:
    """Begin them, whichever test comes first."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Yield a cluster in this process that all tests share."""
    with Cluster() as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """Return a topic of two queues that no other test knows."""
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)
