"""Whatever happens to a group with STICKY, nothing is lost; while nothing fails, nothing is twice."""

from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq.balance.profile import V4, V5
from pocketmq.errors import MQError
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import TIMES, Schedule, comes_to_rest
from tests.virtual.sticky import StickyWorld
from tests.virtual.world import TOPIC, virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)

SCHEDULES = 30 * TIMES
"""How many to run of each kind, calm and not; every combination of settings comes twice."""
CHUNKS = 4


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


class SeekingSchedule(Schedule):
    """A life in which queues are sought back and reset while they move, and connections are cut."""

    def __init__(self, world: StickyWorld) -> None:
        super().__init__(world)
        self._events = [
            (6, self._send),
            (2, self._wait),
            (3, self._join),
            (3, self._leave),
            (1, self._die),
            (2, self._member_cut),
            (2, self._slow),
            (8, self._seek),
            (2, self._reset),
        ]

    async def _seek(self) -> None:
        """Go back in a queue, and let the next thing happen meanwhile."""
        world = self._world
        person = world.random.choice([*world.members, None])
        held = sorted(person.queues(), key=str) if person is not None else []
        if person is None or not held:
            return
        queue = world.random.choice(held)
        member = person.consumer._life.running()
        offset = world.random.randint(0, max(0, member.noted_offset(queue)))
        self._note(f"{person.name} seeks {queue} {offset}")

        async def seek() -> None:
            with suppress(MQError):  # it may be given away, or the member gone
                await person.consumer.seek(queue, offset)

        member.tasks.spawn(seek(), "seek")

    async def _reset(self) -> None:
        """Reset all members to the first offset, as brokers request it."""
        self._note("reset")
        for person in self._world.members:
            member = person.consumer._life.current
            if member is not None:
                work = member.reset_offsets(TOPIC, dict.fromkeys(person.queues(), 0))
                member.tasks.spawn(work, "reset")


async def live(
    seed: int, directory: Path, *, calm: bool, kind: type[Schedule] | None = None
) -> None:
    """Run one schedule; report what happened if it ends badly."""
    settings: dict[str, object] = {
        "orderly": seed % 3 == 0,
        "profile": V4 if seed // 3 % 5 == 0 else V5,
        "settle": 0.05,
    }
    if kind is SeekingSchedule:
        settings["drain_wait"] = 1e5  # an instruction that is not obeyed must show
    world = StickyWorld(seed, directory, settings)
    world.calm = calm
    schedule = CalmSchedule(world) if calm else (kind or Schedule)(world)
    try:
        await world.begin()
        slow = [0.2, 2.5, 6.0] if isinstance(schedule, SeekingSchedule) else [0.0, 0.0, 0.2]
        world.patience = world.random.choice(slow)
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(2))
def test_whatever_is_sought_and_reset_nothing_is_lost_and_every_queue_finds_one_owner(
    chunk: int, tmp_path: Path
) -> None:
    for seed in range(chunk, SCHEDULES // 2, 2):
        run_virtually(live(seed, tmp_path / str(seed), calm=False, kind=SeekingSchedule))
