"""The pytest plugin: a RocketMQ cluster for tests, without Java and without set-up.

pytest loads this module in every run, so it imports nothing of ours until a fixture is used.

    def test_orders_are_sent(rocketmq, rocketmq_topic):
        shop = Shop(nameserver=rocketmq.address, topic=rocketmq_topic)
        ...
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from pocketmq.embedded import Cluster
    from pocketmq.testing.external import AsyncCluster, ExternalCluster

_LONGEST_NAME = 60
_ADDRESS = "rocketmq_address"
_GRPC_ADDRESS = "rocketmq_grpc_address"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let tests run on a cluster that is there already."""
    group = parser.getgroup("rocketmq")
    for name, text in (
        (_ADDRESS, "name server of a running RocketMQ cluster for the fixture rocketmq"),
        (_GRPC_ADDRESS, "its proxy for RocketMQ 5's gRPC clients"),
    ):
        flag = f"--{name.replace('_', '-')}"
        group.addoption(flag, dest=name, metavar="HOST:PORT", default="", help=text)
        parser.addini(name, text, default="")


@pytest.fixture(scope="session")
def rocketmq(request: pytest.FixtureRequest) -> "Iterator[Cluster | ExternalCluster]":
    """Return a running cluster of one broker, in memory, that all tests of the run share.

    `rocketmq.address` is the name server's, `rocketmq.grpc_address` is for RocketMQ 5's gRPC
    clients. Under pytest-xdist each worker has its own. With `--rocketmq-address HOST:PORT` it is
    the cluster there.
    """
    address = _given(request, _ADDRESS)
    if address:
        from pocketmq.testing.external import ExternalCluster

        external = ExternalCluster(address, _given(request, _GRPC_ADDRESS))
        yield external
        external.reset()
        return
    with ExitStack() as running:
        yield _start(running)


@pytest.fixture
def rocketmq_aio(rocketmq: "Cluster | ExternalCluster") -> "AsyncCluster":
    """Return the same cluster for coroutines: `await rocketmq_aio.wait_for(topic, 1)`.

    A plain fixture, so that it works with pytest-asyncio, AnyIO and any other way to run them.
    """
    from pocketmq.testing.external import AsyncCluster

    return AsyncCluster(rocketmq)


@pytest.fixture
def rocketmq_cluster() -> "Iterator[Callable[..., Cluster]]":
    """Make clusters for one test alone: `rocketmq_cluster(brokers=2, faults=True)`.

    Options are those of `pocketmq.Cluster`; what was made is stopped after the test.
    """
    with ExitStack() as running:
        yield lambda *arguments, **options: _start(running, *arguments, **options)


@pytest.fixture
def rocketmq_topic(rocketmq: "Cluster | ExternalCluster", request: pytest.FixtureRequest) -> str:
    """Return a topic with 8 queues on the shared cluster that no other test knows."""
    return rocketmq.create_topic(_unique_name(request))


@pytest.fixture
def rocketmq_group(request: pytest.FixtureRequest) -> str:
    """Return the name of a producer or consumer group that no other test knows."""
    return _unique_name(request)


def _given(request: pytest.FixtureRequest, name: str) -> str:
    return str(request.config.getoption(name) or request.config.getini(name))


def _start(running: ExitStack, *arguments: Any, **options: Any) -> "Cluster":
    if sys.platform == "win32":
        pytest.skip("PocketMQ's broker runs on Linux and macOS, not on Windows")
    from pocketmq.embedded import Cluster
    from pocketmq.errors import MQError

    try:
        return running.enter_context(Cluster(*arguments, **options))
    except MQError as problem:
        pytest.fail(f"no RocketMQ cluster for this test: {problem}", pytrace=False)


def _unique_name(request: pytest.FixtureRequest) -> str:
    """Return a unique name, valid for topics and groups, that contains the test's name."""
    test = re.sub(r"[^a-zA-Z0-9_]+", "-", request.node.name).strip("-")
    return f"{test[:_LONGEST_NAME]}-{uuid4().hex[:12]}"
