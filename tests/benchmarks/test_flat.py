"""The benchmark of flat costs runs, with a row for each number of topics, connections, groups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.broker import Client, broker, send_frames

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(120)
def test_every_number_has_a_cost_and_a_ratio_to_the_first() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.flat", "--quick"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, *rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[-3] for row in rows] == ["1", "100"] * 5
    assert all(float(row[-2]) > 0 for row in rows)
    assert [row[-1] for row in rows[::2]] == ["1.00"] * 5


def test_a_round_that_is_over_before_it_begins_has_a_message() -> None:
    with broker() as process:
        client = Client(process.port)
        assert client.drive(send_frames(), 1, 0.0) == 1
        client.socket.close()
        assert process.cpu() > 0
