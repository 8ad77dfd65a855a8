"""A writing process is killed at random moments: everything it was promised is there afterwards."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pocketmq.store import MessageStore, StoreOptions
from tests.store.messages import kept

ROOT = Path(__file__).parents[2]


def write_until_killed(
    path: Path, run: int, moment: float
) -> tuple[dict[tuple[int, int], str], int]:
    """Let a process write for a while after its first promise; give its promises."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer", str(path), str(run)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    deadline = time.monotonic() + moment
    while time.monotonic() < deadline:
        lines.append(process.stdout.readline())
    process.kill()
    lines += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    promised: dict[tuple[int, int], str] = {}
    saved = 0
    for line in lines:
        if not line.endswith("\n"):
            break  # the process was killed while it printed
        queue_id, offset, *name = line.split()
        if queue_id == "saved":
            saved = int(offset)
        else:
            promised[int(queue_id), int(offset)] = name[0]
    return promised, saved


@pytest.mark.timeout(120)
def test_nothing_promised_is_lost_when_a_process_is_killed(tmp_path: Path) -> None:
    chance = random.Random(20_240_817)
    promised: dict[tuple[int, int], str] = {}
    for run in range(5):
        more, saved = write_until_killed(tmp_path / "s", run, chance.uniform(0.0, 0.5))
        assert more
        promised |= more
        store = MessageStore.open(tmp_path / "s", StoreOptions(segment_size=200_000))
        assert store.recovered.damage == []
        documents = dict(store.metadata.documents("run"))
        assert int(documents[str(run)]) >= saved
        for queue_id in range(3):
            queue = store.make_queue("T", queue_id)
            found = {n: body.split(b".")[0].decode() for n, body in kept(store, queue).items()}
            assert list(found) == list(range(queue.next_offset))
            assert len(set(found.values())) == len(found)
            wanted = {offset: name for (q, offset), name in promised.items() if q == queue_id}
            assert wanted.items() <= found.items()
        store.close()
