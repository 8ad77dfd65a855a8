"""A group that runs for eight hours needs no more memory, files or tasks at their end.

It runs in a process of its own, in which nothing else opens files or allocates memory.
"""

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loops import open_files
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import comes_to_rest
from tests.virtual.world import World, use_virtual_clocks

HOUR = 3600.0
FIRST, MEASURED = 3, 5
"""Hours until caches are full, and those after them."""
MOST = 125
"""Memory blocks that an hour may add, with its five messages."""


def _measure() -> tuple[int, int, int]:
    """Return the numbers of tasks, open files and allocated memory blocks."""
    gc.collect()
    return len(asyncio.all_tasks()), open_files(), sys.getallocatedblocks()


async def _hours(world: World, hours: int) -> None:
    """Let members come and go, connections break and a little be sent, hour after hour."""
    for _ in range(hours):
        await world.send(5)
        person = await world.join()
        await asyncio.sleep(HOUR / 4)
        world.houses[0].proxy.cut()
        await asyncio.sleep(HOUR / 4)
        world.members.remove(person)
        await person.leave()
        await world.members[0].lose_network()
        await asyncio.sleep(HOUR / 2)


async def _eight_hours(directory: Path) -> None:
    world = World(1, directory, {"strategy": "AVG", "history_size": 20})
    await world.begin(brokers=1)
    try:
        await world.join()
        await world.join()
        await _hours(world, FIRST)
        await comes_to_rest(world)
        early = _measure()
        await _hours(world, MEASURED)
        await comes_to_rest(world)
        late = _measure()
    finally:
        await world.end()
    assert late[:2] == early[:2]
    grown = late[2] - early[2]
    assert grown < MOST * MEASURED, f"{grown} blocks more after {MEASURED} hours"


@pytest.mark.timeout(600)
def test_eight_hours_leave_no_task_no_file_and_no_memory_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.virtual.test_eight_hours", str(tmp_path)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    use_virtual_clocks()
    run_virtually(_eight_hours(Path(sys.argv[1])))
