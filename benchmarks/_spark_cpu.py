"""CPU time of a process and all it has started, dead processes included; from Linux' /proc."""

import os
from pathlib import Path
from typing import NamedTuple

from pocketmq.spark.warm_python import warm_process

_TICK = os.sysconf("SC_CLK_TCK")
_seen: dict[int, dict[tuple[int, str], float]] = {}
"""By root: what its grandchildren had used when they were last seen."""


class _Process(NamedTuple):
    parent: int
    began: str
    own: float
    reaped: float
    """Of the children that it has waited for."""


def spark_cpu(java: int) -> float:
    """Return the same of Spark: of its JVM, and of the warm Python and its forks."""
    warm = warm_process()
    return tree_cpu(java) + (0.0 if warm is None else tree_cpu(warm))


def tree_cpu(root: int) -> float:
    """Return seconds of user and system time of a process tree; never less than before.

    Linux adds the time of a dead process to its parent's, if that waits for it. Java does. The
    daemons of Spark's Python workers do not: the time of a worker that ends would be missing, and
    the query that runs just then, whichever it is, would seem to be cheaper. It counts as it was
    in the call before.
    """
    found = _processes()
    children: dict[int, list[int]] = {}
    for number, process in found.items():
        children.setdefault(process.parent, []).append(number)
    seen = _seen.setdefault(root, {})
    alive, waiting, total = set(), [root], 0.0
    while waiting:
        number = waiting.pop()
        if number not in found:
            continue
        process = found[number]
        total += process.own + process.reaped
        waiting += children.get(number, [])
        if number != root and process.parent != root:
            alive.add((number, process.began))
            seen[number, process.began] = process.own + process.reaped
    return total + sum(used for key, used in seen.items() if key not in alive)


def _processes() -> dict[int, _Process]:
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        own, reaped = (sum(map(int, fields[at : at + 2])) / _TICK for at in (11, 13))
        found[int(entry.name)] = _Process(int(fields[1]), fields[19], own, reaped)
    return found
