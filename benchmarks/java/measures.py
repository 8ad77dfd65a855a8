"""What is measured of four pairs: Java's client and ours, each on Java's broker and on ours.

Pairs take turns, so that whatever else the machine does meets all of them; of several rounds the
median counts. While one has its turn the processes of the others are held: an idle Java broker
wakes up so often that it slows what is measured beside it. Cost is the processor time of all
processes of client and servers together.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.java.processes import Child
from benchmarks.java.servers import (
    LARGE_PULLS,
    Java,
    JavaServers,
    OurServers,
    Servers,
    load_of_java,
    load_of_ours,
)

PAIRS = ("Java/Java", "Java/ours", "ours/Java", "ours/ours")
"""Client and servers."""
RATE = 200
LEAD = 3 * RATE
"""Live messages before those that count: a new consumer takes its time to find its queues."""


class Scale(NamedTuple):
    """How long it all takes."""

    rounds: int = 5
    seconds: float = 2.0
    warm: int = 10
    """Rounds before those that count, at most; fewer if they get no faster."""
    backlog: int = 400_000
    live: int = 1000
    live_rounds: int = 3
    drills: int = 2
    starts: int = 3
    settle: float = 3.0
    group_rounds: int = 5
    """Each is two joins, a departure and a death, in each way to share queues."""

    @classmethod
    def quick(cls) -> "Scale":
        """Give one that shows that everything works, and nothing else."""
        once = {"rounds": 1, "warm": 1, "live_rounds": 1, "drills": 1, "starts": 1}
        once["group_rounds"] = 1
        return cls(**once, seconds=0.3, backlog=4_000, live=200, settle=1.5)


class Cell(NamedTuple):
    """What one pair came to."""

    value: float
    client_cpu: float = 0.0
    """µs a message."""
    server_cpu: float = 0.0


class Row(NamedTuple):
    """One measure of all pairs."""

    name: str
    unit: str
    cells: dict[str, Cell]
    goal: str = ""
    goal_ratio: float | None = None
    """What ours/ours over Java/Java must reach; below it if `less`."""
    less: bool = False

    def ratio(self) -> float | None:
        if "Java/Java" not in self.cells or "ours/ours" not in self.cells:
            return None
        base = self.cells["Java/Java"].value
        return self.cells["ours/ours"].value / base if base else None

    def reached(self) -> bool | None:
        ratio = self.ratio()
        if ratio is None or self.goal_ratio is None:
            return None
        return ratio <= self.goal_ratio if self.less else ratio >= self.goal_ratio


class Pair:
    """A client of one kind at servers of one kind."""

    def __init__(self, name: str, servers: Servers, make: Callable[[], Child]) -> None:
        self.name = name
        self.servers = servers
        self._make = make
        self._more: list[Child] = []
        self.load = make()

    def second(self) -> Child:
        """Start another client."""
        self._more.append(self._make())
        return self._more[-1]

    def children(self) -> list[Child]:
        """Give all processes of it, those of the servers first."""
        return [*self.servers.children, self.load, *self._more]

    def stop(self) -> None:
        self.load.stop()

    def restart(self) -> None:
        """Start the client anew."""
        self.load.kill()
        self.load.stop()
        self.load = self._make()

    def rate(self, order: str) -> Cell:
        """Have the client do something; give messages a second and what they cost."""
        mine, theirs = self.load.cpu(), self.servers.cpu()
        self.load.say(order)
        count, seconds = map(float, self.load.wait_for("done"))
        mine, theirs = self.load.cpu() - mine, self.servers.cpu() - theirs
        return Cell(count / seconds, mine / count * 1e6, theirs / count * 1e6)


@contextmanager
def four_pairs(java: Java, home: Path, **settings: object) -> Iterator[list[Pair]]:
    """Start both kinds of servers, and both kinds of clients at each."""
    with ExitStack() as stack:
        theirs = stack.enter_context(JavaServers(java, home, **settings))
        ours = stack.enter_context(OurServers(home, **settings))
        both: tuple[Servers, ...] = (theirs, ours)
        for servers in both:
            for topic in ("sends", "batches"):
                servers.create_topic(topic)

        def of_java(servers: Servers) -> Callable[[], Child]:
            return lambda: load_of_java(java, servers.home, servers.namesrv)

        def of_ours(servers: Servers) -> Callable[[], Child]:
            return lambda: load_of_ours(servers.namesrv)

        makers = (of_java(theirs), of_java(ours), of_ours(theirs), of_ours(ours))
        pairs = []
        for name, servers, make in zip(PAIRS, both * 2, makers, strict=True):
            pairs.append(Pair(name, servers, make))
            stack.callback(pairs[-1].stop)
        yield pairs


@contextmanager
def alone(pair: Pair, pairs: list[Pair]) -> Iterator[None]:
    """Hold the processes of all other pairs meanwhile."""
    mine = pair.children()
    others = [child for each in pairs for child in each.children() if child not in mine]
    for child in others:
        child.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for child in others:
            child.signal(signal.SIGCONT)


def _median(cells: list[Cell]) -> Cell:
    return Cell(*(median(each) for each in zip(*cells, strict=True)))


def _warm_up(pair: Pair, order: str, rounds: int) -> None:
    """Do it until it gets no faster: compilers of both sides take their time."""
    best, since = 0.0, 0
    for _ in range(rounds):
        rate = pair.rate(order).value
        since = 0 if rate > best * 1.05 else since + 1
        best = max(best, rate)
        if since == 2:
            return


def in_turns(pairs: list[Pair], rounds: int) -> Iterator[tuple[int, Pair]]:
    """Give each pair so many turns, there and back again, with all others held meanwhile."""
    for number in range(rounds):
        for pair in pairs if number % 2 == 0 else reversed(pairs):
            with alone(pair, pairs):
                yield number, pair


def rates(pairs: list[Pair], order: str, scale: Scale) -> dict[str, Cell]:
    """Do the same with all pairs, in turns, after each is warm; give the medians."""
    for pair in pairs:
        with alone(pair, pairs):
            _warm_up(pair, order.format(seconds=scale.seconds), scale.warm)
    found: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    for _, pair in in_turns(pairs, scale.rounds):
        found[pair.name].append(pair.rate(order.format(seconds=scale.seconds)))
    return {name: _median(cells) for name, cells in found.items()}


SENDS = (
    ("one at a time", "one sends {seconds}", "≥ 2.5 ×", 2.5),
    ("64 in flight", "flight sends 64 {seconds}", "≥ 2 ×", 2.0),
    ("batches of 32", "batch batches 32 {seconds}", "", None),
    ("batches of 256", "batch batches 256 {seconds}", "≥ 1 ×", 1.0),
)


def send_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    for name, order, goal, ratio in SENDS:
        yield Row(f"send, {name}", "messages/s", rates(pairs, order, scale), goal, ratio)


def flush_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    for name, order, *_ in SENDS[:2]:
        cells = rates(pairs, order, scale)
        yield Row(f"synchronous flush, {name}", "messages/s", cells)


BACKLOGS = (("defaults", 1, "≥ 2 ×", 2.0), ("batches of 1024", 1024, "≥ 1.3 ×", 1.3))


def backlog_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    """Consume a backlog: new groups, the same messages each time."""
    for servers in {id(pair.servers): pair.servers for pair in pairs}.values():
        servers.create_topic("backlog")
    for pair in (pairs[0], pairs[1]):
        pair.load.say(f"fill backlog {scale.backlog}")
        pair.load.wait_for("done")
    for name, size, goal, ratio in BACKLOGS:
        if size > 1:
            for pair in (pairs[0], pairs[1]):
                pair.servers.change(LARGE_PULLS)
        found: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
        for number, pair in in_turns(pairs, scale.rounds + 1):
            cell = _consume(pair, f"{size}-{number}", scale.backlog, size)
            if number:  # the first one warms up
                found[pair.name].append(cell)
        cells = {each: _median(rounds) for each, rounds in found.items()}
        yield Row(f"consume a backlog, {name}", "messages/s", cells, goal, ratio)


def _consume(pair: Pair, name: str, count: int, size: int) -> Cell:
    group = f"backlog-{pair.name.replace('/', '-')}-{name}"
    pair.load.say(f"consume backlog {group} {count} {size}")
    pair.load.wait_for("begun")
    mine, theirs = pair.load.cpu(), pair.servers.cpu()
    done, seconds = map(float, pair.load.wait_for("done"))
    mine, theirs = pair.load.cpu() - mine, pair.servers.cpu() - theirs
    pair.load.wait_for("closed")
    return Cell(done / seconds, mine / done * 1e6, theirs / done * 1e6)


def latency_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    """Tell how long a message takes from one client to another, at 200 a second."""
    middles: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    tails: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    with ExitStack() as stack:
        listeners = {}
        for pair in pairs:
            listeners[pair.name] = pair.second()
            stack.callback(listeners[pair.name].stop)
        for number, pair in in_turns(pairs, scale.live_rounds + 1):
            middle, tail = _latency(pair, listeners[pair.name], number, scale.live)
            if number:  # the first one warms up
                middles[pair.name].append(Cell(middle / 1000))
                tails[pair.name].append(Cell(tail / 1000))
    for name, found in (("p50", middles), ("p99", tails)):
        cells = {each: _median(rounds) for each, rounds in found.items()}
        yield Row(f"live latency, {name}", "ms", cells)


def _latency(pair: Pair, listener: Child, number: int, count: int) -> tuple[float, float]:
    name = f"live-{pair.name.replace('/', '-')}-{number}"
    pair.servers.create_topic(name)
    listener.say(f"listen {name} {name} {LEAD} {count}")
    listener.wait_for("listening")
    pair.load.say(f"drip {name} {LEAD + count} {RATE}")
    pair.load.wait_for("done")
    middle, tail = map(float, listener.wait_for("done"))
    listener.wait_for("closed")
    return middle, tail


def memory_rows(pairs: list[Pair]) -> Iterator[Row]:
    """Tell what the servers have in memory after all of this."""
    theirs, ours = pairs[0].servers.memory(), pairs[-1].servers.memory()
    for at, name in enumerate(("files they map included", "their own")):
        cells = {"Java/Java": Cell(theirs[at]), "ours/ours": Cell(ours[at])}
        goal, ratio = ("< 1/8", 1 / 8) if at else ("", None)
        yield Row(f"servers' memory, {name}", "MB", cells, goal, ratio, less=True)
