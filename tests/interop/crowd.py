"""Clients of both kinds that are members of many groups at once, one group for each way to share.

What each owns is compared with what Java's rule gives it: exactly that, no less and no more.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from pocketmq.balance.allocation import Strategy, StrategySettings, allocate
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.model import MessageQueue
from tests.interop.jvm import Jars, Process, wait_until

STRATEGIES = (
    *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"),
    *("MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONFIG"),
)
WAYS = ("concurrent", "orderly")
GROUPS = [*(f"{strategy}-{way}" for strategy in STRATEGIES for way in WAYS), "AVG-broadcasting"]
FEWER = [
    *("AVG-concurrent", "AVG-orderly", "CONSISTENT_HASH-orderly"),
    *("CONFIG-concurrent", "AVG-broadcasting"),
]
"""Every way to consume: what a broker has a part in. Which queues are whose, members work out."""
ROOT = Path(__file__).parents[2]


class Rooms:
    """Rooms as `Crowd.java` tells them: `room@broker`, `address@room-name`."""

    def room_of_queue(self, queue: MessageQueue) -> str:
        return queue.broker_name.split("@")[0]

    def room_of_member(self, member: str) -> str:
        return member.split("@")[1].split("-", maxsplit=1)[0]


def queue_of(topic: str, text: str) -> MessageQueue:
    broker, _, number = text.rpartition("/")
    return MessageQueue(topic, broker, int(number))


def strategy_of(name: str, configured: Iterable[MessageQueue]) -> Strategy:
    rooms = frozenset({"east", "west"})
    settings = StrategySettings(rooms=rooms, resolver=Rooms(), queues=tuple(configured))
    return strategy_by_name(name, settings)


class Person(Process):
    """A client: its lines by group."""

    def __init__(self, command: list[str], directory: Path, configured: list[MessageQueue]) -> None:
        super().__init__(command, directory)
        self.configured = configured
        self._seen = 0
        self._client_id = ""
        self._owned: dict[str, set[str]] = {}
        self._got: dict[str, list[tuple[str, str]]] = {}
        self._losses: dict[str, Counter[str]] = {}
        self._held: dict[str, list[tuple[str, int, int]]] = {}
        self._shares: dict[tuple[str, tuple[str, ...], frozenset[MessageQueue]], set[str]] = {}

    @property
    def client_id(self) -> str:
        self._read()
        return self._client_id

    def owned(self, group: str) -> set[str]:
        self._read()
        return self._owned.get(group, set())

    def got(self, group: str) -> list[tuple[str, str]]:
        """Place and body of every message of a group, in the order of their arrival."""
        self._read()
        return self._got.get(group, [])

    def held(self, group: str) -> list[tuple[str, int, int]]:
        """Queue and offset of every message, and how often the queue had been lost before it."""
        self._read()
        return self._held.get(group, [])

    def _read(self) -> None:
        """Take in the lines that have come since; each is read once, there are thousands."""
        for line in self.lines[self._seen :]:
            self._seen += 1
            first, _, rest = line.partition(" ")
            if first == "is":
                self._client_id = rest
            elif rest.startswith("owns"):
                now = set(rest.split()[1:])
                self._lose(first, self._owned.get(first, set()) - now)
                self._owned[first] = now
            elif rest.startswith("lost"):
                self._lose(first, set(rest.split()[1:]))
            elif rest.startswith("got "):
                _, place, body = rest.split(" ", 2)
                self._got.setdefault(first, []).append((place, body))
                queue, _, offset = place.rpartition("@")
                losses = self._losses.get(first, Counter())[queue]
                self._held.setdefault(first, []).append((queue, int(offset), losses))

    def _lose(self, group: str, queues: set[str]) -> None:
        self._losses.setdefault(group, Counter()).update(queues)

    def share(self, group: str, members: list[str], queues: set[MessageQueue]) -> set[str]:
        """Return its share by the group's rule, computed once: it is asked many times per second."""
        asked = group, tuple(members), frozenset(queues)
        if asked not in self._shares:
            self._shares[asked] = self._share(group, members, queues)
        return self._shares[asked]

    def _share(self, group: str, members: list[str], queues: set[MessageQueue]) -> set[str]:
        strategy, _, way = group.rpartition("-")
        found: Iterable[MessageQueue] = queues
        if way != "broadcasting":
            rule = strategy_of(strategy, self.configured)
            found = allocate(rule, group, self.client_id, queues, members)
        return {f"{queue.broker_name}/{queue.queue_id}" for queue in found}


class Crowd:
    """Those who were there, and those who still are."""

    def __init__(
        self,
        jars: Jars,
        home: Path,
        stack: ExitStack,
        address: str,
        topic: str,
        groups: list[str],
    ) -> None:
        self.groups = groups
        self._jars = jars
        self._home = home
        self._stack = stack
        self._address = address
        self._topic = topic
        self.everybody: list[Person] = []
        self.present: list[Person] = []

    def java(self, name: str, *queues: str) -> Person:
        return self._join(self._jars.compiled(self._home, "Crowd"), self._home, name, queues)

    def python(self, name: str, *queues: str) -> Person:
        command = [sys.executable, "-m", "tests.interop.crowd_member", str(self._home)]
        return self._join(command, ROOT, name, queues)

    def _join(
        self, command: list[str], directory: Path, name: str, queues: tuple[str, ...]
    ) -> Person:
        words = [self._address, self._topic, name, ",".join(queues), *self.groups]
        configured = [queue_of(self._topic, text) for text in queues]
        person = self._stack.enter_context(Person([*command, *words], directory, configured))
        self.everybody.append(person)
        self.present.append(person)
        return person

    def leave(self, person: Person) -> None:
        self.present.remove(person)
        person.say("leave")
        assert "left" in person.wait_for_end()

    def kill(self, person: Person) -> None:
        self.present.remove(person)
        person.kill()

    def share(self, queues: set[MessageQueue], what: str) -> None:
        """Wait until each member of each group owns what the rule gives it; else say who does not."""
        try:
            wait_until(lambda: not self.astray(queues), what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.astray(queues)}") from None

    def astray(self, queues: set[MessageQueue]) -> dict[str, tuple[set[str], set[str]]]:
        """Return who owns something else than its share, in which group: what, and what it should."""
        for person in self.present:
            person.check_alive()
        ids = [person.client_id for person in self.present]
        if not all(ids):
            return {"not yet there": (set(), set())}
        return {
            f"{group} {person.client_id}": (owned, wanted)
            for group in self.groups
            for person in self.present
            if (owned := person.owned(group)) != (wanted := person.share(group, ids, queues))
        }

    def consumed(self, group: str) -> set[str]:
        return {body for person in self.everybody for _, body in person.got(group)}
