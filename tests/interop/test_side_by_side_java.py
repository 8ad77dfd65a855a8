"""`make bench-java` runs: both clients at both brokers, each row with its ratio. No times are held.

Sends in each run; `POCKETMQ_BENCH=all` asks for the parts that take a minute more.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.jvm import QUICK_BROKER, Jars

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
BOTH = ("one at a time", "64 in flight")
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dtls.server.mode=disabled"
"""For Java processes that live for seconds, which is not what is measured elsewhere."""


def measured(jars: Jars, page: Path, options: str, *parts: str) -> list[list[str]]:
    """Measure parts quickly; return the rows of the page."""
    command = [sys.executable, "-m", "benchmarks.java", "--quick", "--markdown", str(page)]
    for name, value in QUICK_BROKER.items():
        command += ["--set", f"{name}={value}"]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [*command, "--only", *parts],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": path, "JDK_JAVA_OPTIONS": options, "POCKETMQ_JAVA": str(jars.directory)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    failed_sends = [line for line in done.stderr.splitlines() if "a send failed" in line]
    assert not [line for line in failed_sends if "/ours: " in line], failed_sends
    _, _, *rows = [each for each in page.read_text().splitlines() if each.startswith("| ")]
    return [row.split(" | ") for row in rows]


on_request = pytest.mark.skipif(
    os.environ.get("POCKETMQ_BENCH") != "all", reason="half a minute of CPU time"
)


def test_every_pair_is_measured_and_the_page_is_written(jars: Jars, tmp_path: Path) -> None:
    rows = measured(jars, tmp_path / "page.md", QUICK, "send")
    names = [f"send, {name}" for name in (*BOTH, "batches of 32", "batches of 256")]
    assert [row[0] for row in rows[: len(names)]] == [f"| {name}" for name in names]
    for row in rows[:4]:
        assert all(float(cell.replace(" ", "")) > 0 for cell in row[2:6]), row
        assert float(row[6].replace(" ", "")) > 0, f"in pure Python: {row}"


@on_request
def test_special_sends_and_pops_are_measured(jars: Jars, tmp_path: Path) -> None:
    rows = measured(jars, tmp_path / "page.md", QUICK, "pop", "special")
    names = [f"POP receive + ack, {size}" for size in ("one at a time", "batches of 32")]
    names += ["transactions, one at a time", *(f"delayed sends, {how}" for how in BOTH)]
    assert [row[0] for row in rows] == [f"| {name}" for name in names]
    for row in rows:
        assert all(float(cell.replace(" ", "")) > 0 for cell in row[2:6]), row


@on_request
def test_starts_are_measured(jars: Jars, tmp_path: Path) -> None:
    rows = measured(jars, tmp_path / "page.md", QUICK, "start")
    assert rows[0][0] == "| start to first message stored"
    assert all(float(rows[0][column]) > 0 for column in (2, 5)), rows[0]


@on_request
def test_guarded_sends_are_measured(jars: Jars, tmp_path: Path) -> None:
    rows = measured(jars, tmp_path / "page.md", QUICK.partition(" -D")[0], "guarded")
    names = [f"{kind} sends, {how}" for kind in ("ACL-signed", "TLS") for how in BOTH]
    assert [row[0] for row in rows] == [f"| {name}" for name in names]
    for row in rows:
        assert all(float(cell.replace(" ", "")) > 0 for cell in row[2:6]), row


def test_without_jars_it_says_so() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "POCKETMQ_JAVA"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.java", "--quick"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "bench-java: POCKETMQ_JAVA names no directory of RocketMQ's jars\n"
