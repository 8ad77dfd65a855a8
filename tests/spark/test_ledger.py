"""The ledger of exactly-once streams: the first decision holds, for as long as it may matter."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pocketmq.errors import BatchDecided, LedgerUnusable
from pocketmq.spark.ledger import KEPT, BatchDecision, Chunk, CommitLedger, QueueStart

QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"


def decision(*ids: str) -> BatchDecision:
    chunks = [Chunk("broker-0", 1, 7, each, "orders", ("broker-0", 2)) for each in ids]
    start = QueueStart("orders", "broker-0", 2, 40)
    return BatchDecision(staging="staging", chunks=chunks, starts=[start])


def test_the_first_decision_holds(tmp_path: Path) -> None:
    ledger = CommitLedger(str(tmp_path / "not" / "yet"))
    assert (ledger.get(QUERY, 0), ledger.last(QUERY)) == (None, -1)
    assert ledger.decide(QUERY, 0, decision("a", "b")) == (decision("a", "b"), True)
    assert ledger.decide(QUERY, 0, decision("c")) == (decision("a", "b"), False)
    assert ledger.decide(QUERY, 0, decision("a", "b")) == (decision("a", "b"), False)
    assert ledger.get(QUERY, 0) == decision("a", "b")
    assert ledger.last(QUERY) == 0


def test_of_many_who_decide_at_once_one_does(tmp_path: Path) -> None:
    ready = threading.Barrier(8)
    outcomes = []

    def decide(name: str) -> None:
        ready.wait()
        outcomes.append(CommitLedger(str(tmp_path)).decide(QUERY, 5, decision(name)))

    threads = [threading.Thread(target=decide, args=(f"t{at}",)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({holds.chunks[0].message_id for holds, _ in outcomes}) == 1
    assert [just_now for _, just_now in outcomes].count(True) == 1
    assert [path.name for path in (tmp_path / QUERY).iterdir()] == ["5.json"]


def test_a_batch_is_not_decided_after_a_later_one(tmp_path: Path) -> None:
    """A driver that was thought dead comes too late, even if its decision would be the first."""
    ledger = CommitLedger(str(tmp_path))
    ledger.decide(QUERY, 7, decision("a"))
    with pytest.raises(BatchDecided, match=f"batch 6 of query {QUERY} arrived after batch 7"):
        ledger.decide(QUERY, 6, decision("b"))


def test_the_last_decisions_are_kept(tmp_path: Path) -> None:
    ledger = CommitLedger(str(tmp_path))
    for batch in range(KEPT + 2):
        ledger.decide(QUERY, batch, decision("a"))
    ledger.ended(QUERY, 0)
    assert ledger.has_ended(QUERY, 0)
    assert not ledger.has_ended(QUERY, 1)
    assert ledger.prune(QUERY) == 2
    left = sorted(int(path.stem) for path in (tmp_path / QUERY).glob("*.json"))
    assert left == list(range(2, KEPT + 2))
    assert not ledger.has_ended(QUERY, 0)


def test_a_lock_is_held_by_one_and_ends_with_its_process(tmp_path: Path) -> None:
    ledger = CommitLedger(str(tmp_path))
    script = (
        "import sys; from pocketmq.spark.ledger import CommitLedger\n"
        f"with CommitLedger({str(tmp_path)!r}).locked({QUERY!r}, 1.0):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(LedgerUnusable, match="another process has held the lock"):
            ledger.locked(QUERY, 0.1).__enter__()
        child.kill()
    with ledger.locked(QUERY, 5.0):
        pass


def test_a_ledger_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / QUERY).mkdir()
    (tmp_path / QUERY / "3.json").write_text("half a fi")
    with pytest.raises(LedgerUnusable, match=r"3\.json"):
        CommitLedger(str(tmp_path)).get(QUERY, 3)
    with pytest.raises(LedgerUnusable, match=r"'\.\./other' is not a query id"):
        CommitLedger(str(tmp_path)).get("../other", 3)
    with pytest.raises(LedgerUnusable):
        CommitLedger(str(tmp_path / QUERY / "3.json")).decide(QUERY, 0, decision("a"))
