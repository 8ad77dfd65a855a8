"""`pocketmq demo`: the whole play on a real cluster, and its proof."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq.cli.demo.play import prove


def pocketmq(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pocketmq.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def on_a_terminal(*arguments: str) -> tuple[int, str, bytes]:
    """Run the command with a terminal of 120 columns as stdout; give what it showed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pocketmq.cli", *arguments],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal is gone
        while more := os.read(ours, 65536):
            shown += more
    os.close(ours)
    assert process.stderr is not None
    with process.stderr:
        wrong = process.stderr.read()
    return process.wait(60), shown.decode(), wrong


@pytest.mark.timeout(300)
def test_the_play_ends_with_the_proof_and_leaves_a_report(tmp_path: Path) -> None:
    """All but the Spark part, at the pace of the group, seen on a terminal."""
    code, shown, wrong = on_a_terminal(
        "demo", "--no-spark", "--pace", "0.2", "--out", str(tmp_path)
    )
    assert (code, wrong) == (0, b"")
    assert "proved: every message sent was consumed" in shown
    assert "not settled" not in shown
    assert re.search(r"broker-1\W.*-- ", shown)  # it was away for a while, and drawn so
    assert "joining" in shown
    assert "killed" in shown
    page = tmp_path / "report.html"
    assert f"report   {page}" in shown
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
