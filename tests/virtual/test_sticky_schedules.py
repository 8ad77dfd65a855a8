"""Whatever happens to a group with STICKY, nothing is lost; while nothing fails, nothing is twice."""

import os
from pathlib import Path

import pytest

from pocketmq.balance.profile import V4, V5
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import Schedule, comes_to_rest
from tests.virtual.sticky import StickyWorld
from tests.virtual.world import virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)

SCHEDULES = int(os.environ.get("POCKETMQ_SCHEDULES", "1000")) // 10
"""How many to run of each kind, calm and not."""
CHUNKS = 6


class CalmSchedule(Schedule):
    """A life in which members come and go, and nothing fails."""

    def __init__(self, world: StickyWorld) -> None:
        super().__init__(world)
        self._events = [
            (6, self._send),
            (4, self._wait),
            (3, self._join),
            (3, self._leave),
            (1, self._slow),
            (1, self._more_queues),
        ]


async def live(seed: int, directory: Path, *, calm: bool) -> None:
    """Run one schedule; report what happened if it ends badly."""
    settings: dict[str, object] = {
        "orderly": seed % 3 == 0,
        "profile": V4 if seed // 3 % 5 == 0 else V5,
        "settle": 0.05,
    }
    world = StickyWorld(seed, directory, settings)
    world.calm = calm
    schedule = CalmSchedule(world) if calm else Schedule(world)
    try:
        await world.begin()
        world.patience = world.random.choice([0.0, 0.0, 0.2])
        await world.join()
        await schedule.run(world.random.randrange(4, 24))
        await comes_to_rest(world)
        assert not world.broken, world.broken
        assert world.last_stored == world.offsets()  # nothing was stored unseen
    except BaseException as error:
        error.add_note(f"seed {seed}, calm {calm}, {settings}\n" + "\n".join(schedule.log))
        error.add_note("\n".join(world.broken))
        raise
    finally:
        await world.end()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_while_nothing_fails_nothing_is_lost_or_twice_and_no_offset_goes_back(
    chunk: int, tmp_path: Path
) -> None:
    for seed in range(chunk, SCHEDULES, CHUNKS):
        run_virtually(live(seed, tmp_path / str(seed), calm=True))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whatever_fails_nothing_is_lost_and_every_queue_finds_one_owner(
    chunk: int, tmp_path: Path
) -> None:
    for seed in range(chunk, SCHEDULES, CHUNKS):
        run_virtually(live(seed, tmp_path / str(seed), calm=False))
