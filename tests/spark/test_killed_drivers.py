"""A driver's process is killed at each step of a commit; the next one completes it, without Spark."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq import Cluster
from pocketmq.spark import moving
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.exactly_once import Prepared
from pocketmq.spark.ledger import CommitLedger
from tests.early import ENVIRONMENT, ROOT
from tests.spark.killed_driver import prepared
from tests.spark.test_moving import BODIES, QUERY, visible, writer_to

DRIVER = "tests.spark.killed_driver"
DECIDED = {
    "killed in a task": False,
    "killed before the decision": False,
    "killed after the decision": True,
    "killed amid the moves": True,
    "killed before the answer": True,
    "killed after commit": True,
}
"""Whether the micro-batch is decided then."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running
        forget_senders()


@pytest.mark.parametrize("fault", DECIDED)
def test_a_driver_that_is_killed_leaves_each_row_once(
    cluster: Cluster, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "SETTLE", 0.2)
    topic = cluster.create_topic(fault.replace(" ", "-"), 4)
    child = subprocess.run(
        [sys.executable, "-m", DRIVER, cluster.address, topic, fault, str(tmp_path)],
        env=ENVIRONMENT, cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert child.returncode == -9, child.stderr.decode()
    held = CommitLedger(str(tmp_path / "ledger")).get(QUERY, 0)
    assert (held is not None) is DECIDED[fault]
    seen = visible(cluster, topic)
    assert set(seen.values()) <= {1}
    assert bool(seen) <= DECIDED[fault], "no row is seen before the decision"
    writer = writer_to(cluster.address, topic, tmp_path / "ledger")
    writer.commit([Prepared(QUERY) if held else prepared(writer)], 0)
    assert visible(cluster, topic) == Counter(BODIES)
