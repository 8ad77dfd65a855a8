"""`pocketmq demo`: the whole play on a real cluster, and its proof."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq.cli.demo.proof import prove


def pocketmq(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pocketmq.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.timeout(300)
def test_the_play_ends_with_the_proof_and_leaves_a_report(tmp_path: Path) -> None:
    """All but the Spark part, at the pace of the group."""
    done = pocketmq("demo", "--no-spark", "--pace", "0.2", "--out", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "proved: every message sent was consumed" in done.stdout
    assert "not settled" not in done.stdout
    page = tmp_path / "report.html"
    assert f"report   {page}\n" in done.stdout
    assert page.read_text().startswith("<!doctype html>")
    [group] = json.loads((tmp_path / "report.json").read_text())["groups"]
    assert group["members"] == [f"c{n}@demo" for n in range(1, 6)]
    assert len(group["queues"]) == 16
    assert [one["died"] for one in group["rebalances"] if one["died"]] == [["c1@demo"]]
    assert ["broker-1"] in [one["brokers_lost"] for one in group["rebalances"]]
    assert group["lag"]["last"] == 0


def test_the_demo_without_a_cluster() -> None:
    done = pocketmq("demo", "--offline")
    assert (done.returncode, done.stderr) == (0, "")
    assert "A fourth consumer joins" in done.stdout


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = pocketmq("demo", "--out", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not empty" in done.stderr


def test_what_was_not_consumed_is_named_and_nothing_is_proved() -> None:
    proof = prove([1, 2, 3], [1, 1, 3, 9], {1, 2})
    assert (proof.acknowledged, proof.consumed, proof.twice, proof.ingested) == (3, 2, 1, 2)
    assert (proof.lost, proof.not_ingested, proof.holds) == ([2], [3], False)
    assert "LOST: 1 were not consumed, such as [2]" in proof.lines()
    assert not any("proved" in line for line in proof.lines())


def test_nothing_sent_proves_nothing() -> None:
    assert not prove([], [], None).holds


def test_all_consumed_and_ingested_is_proved() -> None:
    proof = prove([1, 2], [2, 1, 2], {1, 2, 3})
    assert proof.lines()[-1] == "proved: every message sent was consumed"
