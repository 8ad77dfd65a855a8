"""Random lives of a group: what happens, in which order, and how long nothing does."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import msgspec

from tests.virtual.world import QUEUES, TOPIC, World

TIMES = int(os.environ.get("POCKETMQ_SCHEDULES", "1"))
"""How many times as many schedules to run as every change must pass."""
REST = 400.0
"""Virtual seconds in which everything must have found its place again."""
CALM = 45
"""Seconds for which that must be so: more than any timer of a client takes."""
_MOST_MEMBERS = 5


class Schedule:
    """Draws events from a world's source of chance, and carries them out."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.log: list[str] = []
        self._events: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (6, self._send),
            (4, self._wait),
            (3, self._join),
            (2, self._leave),
            (2, self._die),
            (2, self._member_cut),
            (2, self._cut),
            (1, self._silence),
            (2, self._slow),
            (1, self._kill_broker),
            (2, self._open_broker),
            (1, self._more_queues),
            (1, self._name_server_restarts),
            (1, self._clock_jumps),
        ]

    async def run(self, events: int) -> None:
        """Let so many things happen, then heal everything."""
        world = self._world
        weights = [weight for weight, _ in self._events]
        for _ in range(events):
            ((_, event),) = world.random.choices(self._events, weights)
            await event()
        await self._heal()

    def _note(self, what: str) -> None:
        self.log.append(f"{asyncio.get_running_loop().time():8.1f} {what}")

    async def _heal(self) -> None:
        world = self._world
        for house in world.houses:
            house.proxy.pass_through()
            if house.broker is None:
                await house.open()
        if not world.members:
            await world.join()
        self._note("healed")

    async def _send(self) -> None:
        count = self._world.random.randrange(1, 12)
        self._note(f"send {count}")
        await self._world.send(count)

    async def _wait(self) -> None:
        seconds = self._world.random.choice([0.0, 0.1, 1.0, 3.0, 10.0, 25.0])
        self._note(f"wait {seconds}")
        await asyncio.sleep(seconds)

    async def _join(self) -> None:
        if len(self._world.members) < _MOST_MEMBERS:
            self._note("join")
            await self._world.join()

    async def _leave(self) -> None:
        if self._world.members:
            person = self._world.random.choice(self._world.members)
            self._note(f"leave {person.name}")
            self._world.members.remove(person)
            await person.leave()

    async def _die(self) -> None:
        if self._world.members:
            person = self._world.random.choice(self._world.members)
            self._note(f"die {person.name}")
            self._world.members.remove(person)
            await person.die()

    async def _member_cut(self) -> None:
        if self._world.members:
            person = self._world.random.choice(self._world.members)
            self._note(f"cut {person.name}")
            await person.lose_network()

    async def _cut(self) -> None:
        house = self._world.random.choice(self._world.houses)
        reset = self._world.random.random() < 0.5
        self._note(f"cut {house.name}")
        house.proxy.cut(reset=reset)

    async def _silence(self) -> None:
        """Let a broker's network swallow everything for a while."""
        house = self._world.random.choice(self._world.houses)
        seconds = self._world.random.choice([1.0, 10.0, 40.0])
        self._note(f"silence {house.name} for {seconds}")
        house.proxy.swallow()
        await asyncio.sleep(seconds)
        house.proxy.pass_through()

    async def _slow(self) -> None:
        house = self._world.random.choice(self._world.houses)
        seconds = self._world.random.choice([0.0, 0.05, 0.5])
        self._note(f"slow {house.name} by {seconds}")
        house.proxy.delay(seconds)

    async def _kill_broker(self) -> None:
        house = self._world.random.choice(self._world.houses)
        self._note(f"kill {house.name}")
        await house.kill()

    async def _open_broker(self) -> None:
        for house in self._world.houses:
            if house.broker is None:
                self._note(f"open {house.name}")
                await house.open()

    async def _more_queues(self) -> None:
        """Change the number of a topic's queues on one broker."""
        house = self._world.random.choice(self._world.houses)
        if house.broker is None:
            return
        count = self._world.random.randrange(QUEUES, QUEUES + 4)
        topics = house.broker.state.topics
        config = topics.get(TOPIC)
        assert config is not None
        if count > config.read_queue_nums:  # queues with messages are not taken away
            self._note(f"{count} queues on {house.name}")
            changed = msgspec.structs.replace(config, read_queue_nums=count, write_queue_nums=count)
            topics.update(changed, self._world.clock.now_ms())

    async def _name_server_restarts(self) -> None:
        self._note("name server restarts")
        await self._world.name_server.stop()
        await asyncio.sleep(self._world.random.choice([0.0, 5.0, 35.0]))
        await self._world.start_name_server()

    async def _clock_jumps(self) -> None:
        seconds = self._world.random.choice([-3600.0, -5.0, 5.0, 3600.0])
        self._note(f"the wall clock jumps by {seconds}")
        self._world.clock.shift += seconds


async def comes_to_rest(world: World) -> None:
    """Wait until every queue has one owner and all that was sent is handled and committed.

    That must last: members who have not noticed yet what happened look content, too.
    """
    quiet = 0
    for _ in range(int(REST)):
        quiet = 0 if _unrest(world) else quiet + 1
        if quiet == CALM:
            break
        await asyncio.sleep(1.0)
    assert quiet == CALM, _unrest(world)
    assert {member.name: member.queues() for member in world.members} == world.fair_shares()
    if world.settings.get("orderly"):
        for queue, offsets in world.order.items():
            assert offsets == sorted(offsets), f"{queue} out of order: {offsets}"


def _unrest(world: World) -> dict[str, object]:
    """Return what is not as it should be."""
    found = {
        "without one owner": world.misplaced(),
        "unseen": world.unseen()[:5],
        "not committed": world.lagging(),
    }
    return {name: value for name, value in found.items() if value}
