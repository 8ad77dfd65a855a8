"""One cluster for the tests of a module, and programs of their own for what ends a process."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from pocketmq import Cluster
from pocketmq.blocking import calls_in_flight
from tests.interrupts import ctrl_c

__all__ = ["cluster", "ctrl_c", "program", "topic"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, in_process=False) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=4)


@pytest.fixture
def no_check_hides_a_lost_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make threads that wait for a call wait for its end alone, not look for it each second."""
    monkeypatch.setattr(calls_in_flight, "_CHECK_INTERVAL", 1000.0)


def program(text: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a Python program of its own; `sys.argv[1:]` are the arguments."""
    return subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", "-c", textwrap.dedent(text), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
