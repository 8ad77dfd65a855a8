"""At no moment is an offset stored past a message that nobody has handled.

Handlers are slow and fail, members seek, leave and die in the midst of it, brokers and their
network fail; every offset is looked at the moment it is stored, and not only when all is over.
"""

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from pocketmq.balance.profile import V4, V5
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.virtual.loop import run_virtually
from tests.virtual.schedule import Schedule, comes_to_rest
from tests.virtual.world import Person, World, virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)

SCHEDULES = 32
CHUNKS = 4


class HardWorld(World):
    """Where handlers are slow and fail, and every stored offset is looked at."""

    def __init__(self, seed: int, directory: Path, settings: dict[str, object]) -> None:
        super().__init__(seed, directory, settings)
        self.failures = self.random.choice([0.0, 0.1, 0.4])
        self.orderly = bool(settings.get("orderly"))
        self.settled: set[tuple[str, int, int]] = set()
        """Places of messages whose handler has come to an end that counts."""
        self.at_work: dict[tuple[str, int], int] = defaultdict(int)
        """Handlers of an orderly consumer that work on a queue now."""
        self.collisions: list[tuple[str, int]] = []
        """Queues on which two handlers worked at once."""
        self._home: dict[str, tuple[str, int, int]] = {}
        self.sound: dict[MessageQueue, int] = defaultdict(int)
        """How far all is settled, as far as was looked."""
        self.last_stored: dict[MessageQueue, int] = {}
        """Offset of each queue that was stored last."""
        self.too_far: list[str] = []
        """Offsets that were stored past what was not settled."""

    async def handled(self, person: Person, message: ReceivedMessage) -> None:
        """Take some time, fail now and then, and take note of what is settled."""
        (key,) = message.keys
        lane = message.broker_name, message.queue_id
        # What comes back out of the retry topic was seen before, in its own place.
        home = self._home.setdefault(key, (*lane, message.queue_offset))
        if self.orderly:
            self.at_work[lane] += 1
            if self.at_work[lane] > 1:  # raised here it would be the handler's failure
                self.collisions.append(lane)
        try:
            await asyncio.sleep(self.random.random() * self.patience)
            if self.random.random() < self.failures:
                if not self.orderly:  # sent back: it comes again, and its queue goes on
                    self.settled.add(home)
                raise ValueError("not this time")
        finally:
            if self.orderly:
                self.at_work[lane] -= 1
        self.settled.add(home)
        if key not in self.seen:
            self.order[lane].append(message.queue_offset)
        self.seen[key].append(person.name)

    def stored(self, queue: MessageQueue, offset: int) -> None:
        """See that everything before it is settled."""
        self.last_stored[queue] = offset
        for place in range(self.sound[queue], offset):
            if (queue.broker_name, queue.queue_id, place) not in self.settled:
                self.too_far.append(f"{offset} is stored past {place} of {queue}")
                return  # raised here it would be the request's failure
        self.sound[queue] = max(self.sound[queue], offset)


class HardSchedule(Schedule):
    """Seeks, besides all the rest; brokers keep their locks if `gentle`."""

    def __init__(self, world: World, *, gentle: bool) -> None:
        super().__init__(world)
        self._events.append((8, self._seek))
        if gentle:
            self._events = [
                (weight, event)
                for weight, event in self._events
                if event not in (self._kill_broker, self._clock_jumps)
            ]

    async def _seek(self) -> None:
        """Make a member start a queue again, at any place before."""
        world = self._world
        assert isinstance(world, HardWorld)
        held = [(who, queue) for who in world.members for queue in sorted(who.queues(), key=str)]
        if not held:
            return
        person, queue = world.random.choice(held)
        offset = world.random.randrange(world.sound[queue] + 1)
        self._note(f"{person.name} seeks {offset} in {queue}")
        try:
            await person.consumer.seek(queue, offset)
        except MQError as error:
            self._note(str(error))


async def live(seed: int, directory: Path) -> None:
    """Run one schedule; say what happened if it ends badly."""
    orderly = seed % 2 == 0
    settings: dict[str, object] = {
        "orderly": orderly,
        "profile": V4 if seed % 5 == 0 else V5,
        "strategy": "AVG",
        "stop_wait": (0.0, 1.0, 30.0)[seed % 3],
        "suspend_queue": 0.1,
        "persist_interval": 0.5,
        "persist_first_after": 0.1,
        "threads": 4,
    }
    world = HardWorld(seed, directory, settings)
    schedule = HardSchedule(world, gentle=orderly)
    try:
        await world.begin()
        world.patience = world.random.choice([0.1, 1.0, 8.0])
        await world.join()
        await world.send(100)
        await schedule.run(world.random.randrange(6, 20))
        world.patience, world.failures = 0.0, 0.0
        await comes_to_rest(world)
        assert world.too_far == []
        assert world.collisions == []
        assert world.last_stored == world.offsets()  # nothing was stored unseen
    except BaseException as error:
        error.add_note(f"seed {seed}, {settings}\n" + "\n".join(schedule.log))
        error.add_note("\n".join(world.too_far))
        raise
    finally:
        await world.end()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_offset_is_stored_past_what_is_not_handled(chunk: int, tmp_path: Path) -> None:
    for seed in range(chunk, SCHEDULES, CHUNKS):
        run_virtually(live(seed, tmp_path / str(seed)))
