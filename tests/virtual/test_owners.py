"""How long queues have two owners or none while members come and go, in virtual time.

Members of Java are clients of ours that say they are Java's and keep its pauses. The network takes
no time here, so that what is seen are the pauses that the rules make.
"""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from pocketmq.balance.profile import JAVA_V5, V5
from pocketmq.model import MessageQueue
from tests.client.group.foreign import speak_java
from tests.virtual.loop import run_virtually
from tests.virtual.world import Person, World, virtual_clients

pytestmark = pytest.mark.usefixtures(virtual_clients.__name__)

LOOK = 0.005
GAPS = (0.0, 0.01, 0.03, 0.2, 0.4, 0.7, 1.1, 3.0)
STORIES = 8
AT_REST = 5.0
"""Seconds after which Java's members, too, have settled."""


class WatchedWorld(World):
    """Counts how often queues were seen with two owners or more, and how long with none."""

    owned_twice = 0
    """By the members' tables."""
    pulled_twice = 0
    """By members that pull."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed, directory, {"strategy": "AVG"})
        self.longest_unpulled = 0.0
        self._unpulled: Counter[MessageQueue] = Counter()

    async def add(self, number: int, *, java: bool) -> None:
        """Let a member join."""
        person = Person(self, number, {**self.settings, "profile": JAVA_V5 if java else V5})
        if java:
            speak_java(person.consumer)
        self.members.append(person)
        await person.start()

    async def watch(self) -> None:
        """Look at the owners again and again."""
        while True:
            self.look()
            await asyncio.sleep(LOOK)

    def look(self) -> None:
        """Count the owners of each queue, and those of them that pull."""
        owners, pulling = Counter[MessageQueue](), Counter[MessageQueue]()
        for person in self.members:
            member = person.consumer._life.current
            for held in () if member is None else member.parts.queues:
                owners[held.queue] += not held.dropped
                pulling[held.queue] += not held.dropped and not held.delayed
        for queue in self.all_queues():
            self.owned_twice += owners[queue] > 1
            self.pulled_twice += pulling[queue] > 1
            self._unpulled[queue] = 0 if pulling[queue] else self._unpulled[queue] + 1
            self.longest_unpulled = max(self.longest_unpulled, self._unpulled[queue] * LOOK)


async def tell(seed: int, directory: Path, java: frozenset[int]) -> WatchedWorld:
    """Let members come and go, messages all the while; those with the numbers in `java` are Java's."""
    chance = Random(seed)
    world = WatchedWorld(seed, directory)
    watching: asyncio.Task[None] | None = None
    try:
        await world.begin()
        numbers = chance.sample(range(100), 12)
        for number in (numbers.pop(), numbers.pop()):
            await world.add(number, java=number in java)
        await asyncio.sleep(AT_REST)
        watching = asyncio.create_task(world.watch())
        for _ in range(10):
            await world.send(4)
            joins = len(world.members) < 3 or (len(world.members) < 6 and chance.random() < 0.5)
            if joins:
                number = numbers.pop()
                await world.add(number, java=number in java)
            else:
                person = chance.choice(world.members)
                world.members.remove(person)
                await person.leave()
            await asyncio.sleep(chance.choice(GAPS))
        await asyncio.sleep(AT_REST)
        assert not world.misplaced()
        assert not world.unseen()
        assert {one.name: one.queues() for one in world.members} == world.fair_shares()
        assert not watching.done()
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.wait({watching})
        await world.end()
    return world


@pytest.mark.parametrize("seed", range(STORIES))
def test_beside_java_no_queue_has_two_owners_longer_than_among_java_alone(
    seed: int, tmp_path: Path
) -> None:
    some = frozenset(Random(seed).sample(range(100), 50))
    java = run_virtually(tell(seed, tmp_path / "java", frozenset(range(100))))
    mixed = run_virtually(tell(seed, tmp_path / "mixed", some))
    assert mixed.owned_twice <= java.owned_twice
    assert mixed.pulled_twice <= java.pulled_twice


@pytest.mark.parametrize("seed", range(STORIES))
def test_two_members_of_ours_never_pull_one_queue_and_none_is_left_for_long(
    seed: int, tmp_path: Path
) -> None:
    ours = run_virtually(tell(seed, tmp_path, frozenset()))
    assert ours.pulled_twice == 0
    assert ours.longest_unpulled <= 0.06
