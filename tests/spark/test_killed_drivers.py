"""A driver's process is killed at each step of a commit; the next one completes it, without Spark."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pocketmq import Cluster
from pocketmq.spark import moving
from pocketmq.spark.connections import close_all, forget_senders
from pocketmq.spark.exactly_once import ExactlyOnceWriter, Prepared
from pocketmq.spark.ledger import CommitLedger
from tests.early import ENVIRONMENT, ROOT
from tests.spark.faulty_sink import FaultyWriter
from tests.spark.test_moving import QUERY, visible, writer_to

BODIES = [f"{number:03}" for number in range(40)]
CHILD = """
import sys
from pathlib import Path
from tests.spark.test_killed_drivers import run_driver

run_driver(*sys.argv[1:4], Path(sys.argv[4]))
"""
DECIDED = {
    "killed in a task": False,
    "killed before the decision": False,
    "killed after the decision": True,
    "killed amid the moves": True,
    "killed before the answer": True,
    "killed after commit": True,
}
"""Whether the micro-batch is decided then."""


class Named:
    """The address of a cluster that runs in another process."""

    def __init__(self, address: str) -> None:
        self.address = address


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running
        forget_senders()
        close_all()


def run_driver(address: str, topic: str, fault: str, work: Path) -> None:
    """Do what tasks and driver do for one micro-batch, and be killed."""
    plan = writer_to(Named(address), topic, work / "ledger").plan  # type: ignore[arg-type]
    writer = FaultyWriter(plan, (fault,), work, 0)
    writer.commit([prepared(writer)], 0)


def prepared(writer: ExactlyOnceWriter) -> Prepared:
    batch = pa.record_batch([pa.array(BODIES)], names=["body"])
    return writer.prepare(writer._sender(), QUERY, 0, iter([batch]), 1)


@pytest.mark.parametrize("fault", DECIDED)
def test_a_driver_that_is_killed_leaves_each_row_once(
    cluster: Cluster, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "SETTLE", 0.2)
    topic = cluster.create_topic(fault.replace(" ", "-"), 4)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, cluster.address, topic, fault, str(tmp_path)],
        env=ENVIRONMENT, cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert child.returncode == -9, child.stderr.decode()
    held = CommitLedger(str(tmp_path / "ledger")).get(QUERY, 0)
    assert (held is not None) is DECIDED[fault]
    seen = visible(cluster, topic)
    assert set(seen.values()) <= {1}
    assert bool(seen) <= DECIDED[fault], "no row is seen before the decision"
    writer = writer_to(cluster, topic, tmp_path / "ledger")
    writer.commit([Prepared(QUERY) if held else prepared(writer)], 0)
    assert visible(cluster, topic) == Counter(BODIES)
