"""Whatever happens to a group, in the end every queue has one owner and nothing is lost."""

from pathlib import Path

import pytest

from pocketmq.balance.profile import V4, V5
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import TIMES, Schedule, comes_to_rest
from tests.virtual.world import World, virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)

SCHEDULES = 135 * TIMES
"""How many to run; with 135 every combination of settings comes three times."""
CHUNKS = 9
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")


async def live(seed: int, directory: Path) -> None:
    """Run one schedule; report what happened if it ends badly."""
    settings: dict[str, object] = {
        "strategy": STRATEGIES[seed % 3],
        "orderly": seed // 3 % 3 == 0,
        "profile": V4 if seed // 9 % 5 == 0 else V5,
    }
    world = World(seed, directory, settings)
    schedule = Schedule(world)
    try:
        await world.begin()
        world.patience = world.random.choice([0.0, 0.0, 0.2])
        await world.join()
        await schedule.run(world.random.randrange(4, 24))
        await comes_to_rest(world)
    except BaseException as error:
        error.add_note(f"seed {seed}, {settings}\n" + "\n".join(schedule.log))
        raise
    finally:
        await world.end()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_queue_finds_one_owner_and_nothing_is_lost(chunk: int, tmp_path: Path) -> None:
    for seed in range(chunk, SCHEDULES, CHUNKS):
        run_virtually(live(seed, tmp_path / str(seed)))
