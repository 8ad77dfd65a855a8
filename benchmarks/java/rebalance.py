"""A group of two gets a third member, loses one in order, and one by a kill: what its users notice.

Messages come steadily to each of the queues. Pause is the longest time in which some queue's
messages waited, duplicates are messages given twice, moved are queues whose member changed.
"""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import mean

from benchmarks.java.pairs import Pair, in_turns
from benchmarks.java.processes import Child, until
from benchmarks.java.rows import Cell, Row
from benchmarks.java.scale import Scale
from benchmarks.java.servers import QUEUES

RATE = 400
_RECENT = 4 * RATE
EVENTS = ("join", "leave", "kill")


class Given:
    """What members were given: who got which message of which queue when."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int, int]] = []

    def add(self, member: str, lines: list[list[str]]) -> None:
        for words in lines:
            if len(words) == 4 and words[0] == "got":
                queue, offset, micros = map(int, words[1:])
                self.rows.append((member, queue, offset, micros))

    def pause(self, since: int) -> float:
        """Return the longest time, in ms, in which a queue's messages were given to nobody."""
        longest = 0
        for queue in range(QUEUES):
            times = sorted(row[3] for row in self.rows if row[1] == queue)
            later = [at for at in times if at >= since]
            before = max((at for at in times if at < since), default=since)
            moments = [before, *later]
            gaps = [end - start for start, end in pairwise(moments)]
            longest = max([longest, *gaps])
        return longest / 1000

    def duplicates(self) -> int:
        places = [(queue, offset) for _, queue, offset, _ in self.rows]
        return len(places) - len(set(places))

    def owners(self, since: int, until_micros: int) -> dict[int, str]:
        """Return who was given a queue's messages last in a span of time."""
        recent = sorted(self.rows[-_RECENT:], key=lambda row: row[3])
        return {queue: who for who, queue, _, at in recent if since <= at < until_micros}


class Drill:
    """One pair's group through all events."""

    def __init__(self, pair: Pair, number: int, settle: float) -> None:
        self._pair = pair
        self._topic = f"drill-{pair.name.replace('/', '-')}-{number}"
        self._settle = settle
        self._members: dict[str, Child] = {}
        self._leaving: dict[str, Child] = {}
        self._given = Given()
        self._made = 0

    def run(self) -> dict[str, tuple[float, int, int]]:
        """Return pause in ms, duplicates and moved queues of each event."""
        self._pair.servers.create_topic(self._topic)
        spare = [self._pair.second() for _ in range(3)]  # started before: a JVM takes its time
        found = {}
        try:
            for child in spare[:2]:
                self._join(child)
            seconds = self._settle * (2 * len(EVENTS) + 2) + 30
            self._pair.load.say(f"drip {self._topic} {int(seconds * RATE)} {RATE}")
            until(self._all_owned, f"a member for each queue of {self._topic}")
            self._watch(self._settle)
            found["join"] = self._event(lambda: self._join(spare[2]))
            found["leave"] = self._event(self._leave)
            found["kill"] = self._event(self._kill)
        finally:
            for child in spare:
                child.kill()
        return found

    def _join(self, child: Child) -> None:
        child.say(f"member {self._topic} {self._topic}")
        self._made += 1
        self._members[f"m{self._made}"] = child

    def _leave(self) -> None:
        name = next(iter(self._members))
        child = self._members.pop(name)
        child.say("leave")
        self._leaving[name] = child

    def _kill(self) -> None:
        name = next(iter(self._members))
        child = self._members.pop(name)
        self._given.add(name, child.lines())
        child.kill()
        self._given.add(name, child.lines())

    def _gather(self) -> None:
        for name, child in (*self._members.items(), *self._leaving.items()):
            self._given.add(name, child.lines())

    def _all_owned(self) -> bool:
        self._gather()
        now = time.time_ns() // 1000
        recent = self._given.owners(now - 1_000_000, now + 1)
        return len(recent) == QUEUES and set(recent.values()) == self._members.keys()

    def _watch(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._gather()
            time.sleep(0.02)  # between looks; members note the moments themselves

    def _event(self, happen: Callable[[], None]) -> tuple[float, int, int]:
        started = time.time_ns() // 1000
        before = self._given.owners(started - 1_000_000, started)
        twice = self._given.duplicates()
        happen()
        until(self._all_owned, "every queue to have a member again", 60)
        self._watch(self._settle)
        now = time.time_ns() // 1000
        after = self._given.owners(now - 1_000_000, now)
        moved = sum(before.get(queue) != member for queue, member in after.items())
        return self._given.pause(started), self._given.duplicates() - twice, moved


def rebalance_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    found: dict[str, list[dict[str, tuple[float, int, int]]]] = {pair.name: [] for pair in pairs}
    for number, pair in in_turns(pairs, scale.drills):
        found[pair.name].append(Drill(pair, number, scale.settle).run())
        pair.restart()  # it may be sending still
    kinds = (("pause", "ms"), ("duplicates", "messages"), ("moved", f"of {QUEUES} queues"))
    for event in EVENTS:
        for at, (kind, unit) in enumerate(kinds):
            cells = {
                name: Cell(mean(drill[event][at] for drill in drills))
                for name, drills in found.items()
            }
            yield Row(f"rebalance, {event}: {kind}", unit, cells)
