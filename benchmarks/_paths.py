"""What the native core gives: benchmarks in child processes, with it and without it, in turns.

A benchmark notes the cost of each of its rows with `note`. `compare` runs it as a child with the
core and with `POCKETMQ_PURE=1`, one after the other and again, so that whatever else the machine
does meets both; the least cost of a row counts. Servers that a benchmark starts run on its path.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pocketmq import native

FILE = "POCKETMQ_BENCH_ROWS"
"""Names the file that rows are noted in, if anywhere."""
BOTH = ("messages", "frames", "producer", "consumer", "broker")
"""The benchmarks that are run on both paths."""
ROUNDS = 2

Costs = dict[str, float]


def note(row: str, cost: float) -> None:
    """Note what a row costs, in µs a message, where `compare` finds it."""
    if place := os.environ.get(FILE):
        with Path(place).open("a") as file:
            file.write(json.dumps([row, cost]) + "\n")


def measured(module: str, *, pure: bool, shown: bool) -> Costs:
    """Run a benchmark on one path; return the costs it noted. Its table is shown if asked for."""
    with tempfile.TemporaryDirectory() as directory:
        rows = Path(directory) / "rows"
        rows.touch()
        environment = os.environ | {FILE: str(rows)} | ({"POCKETMQ_PURE": "1"} if pure else {})
        command = [sys.executable, "-m", module]
        out = None if shown else subprocess.DEVNULL
        subprocess.run(command, env=environment, stdout=out, check=True)
        return least([dict([json.loads(line)]) for line in rows.read_text().splitlines()])


def least(rounds: list[Costs]) -> Costs:
    """Return the least cost of each row, in the order of the first round."""
    found: Costs = {}
    for costs in rounds:
        for row, cost in costs.items():
            found[row] = min(cost, found.get(row, cost))
    return found


def table(with_core: Costs, pure: Costs) -> list[str]:
    """Return lines with both costs and how many times less the core's is."""
    lines = [f"{'CPU µs a message':44}{'native':>10}{'pure':>10}{'pure / native':>16}"]
    for row in with_core:
        if row in pure:
            times = pure[row] / with_core[row]
            lines.append(f"{row:44}{with_core[row]:10.2f}{pure[row]:10.2f}{times:16.2f}")
    return lines


def compare(name: str, rounds: int = ROUNDS) -> None:
    """Run a benchmark on both paths, print its table and both costs; without a core, once."""
    module = f"benchmarks.{name}"
    print(f"path: {native.description}", flush=True)
    if native.core is None:
        measured(module, pure=True, shown=True)
        return
    sides: dict[bool, list[Costs]] = {False: [], True: []}
    for number in range(rounds):
        for pure, costs in sides.items():
            costs.append(measured(module, pure=pure, shown=number == 0 and not pure))
    print("\n".join(["", *table(least(sides[False]), least(sides[True]))]), flush=True)
