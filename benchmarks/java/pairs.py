"""Clients at servers that take turns.

Turns alternate, so that whatever else the machine does meets all of them; of several rounds the
median counts. While one has its turn the processes of the others are stopped: an idle Java broker
wakes up so often that it slows what is measured beside it. Cost is the processor time of all
processes of client and servers together.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.java.guards import OPEN, Guard
from benchmarks.java.processes import Child, until
from benchmarks.java.rows import PAIRS, PURE, Cell
from benchmarks.java.scale import Scale
from benchmarks.java.servers import (
    Java,
    JavaServers,
    OurServers,
    PureServers,
    Servers,
    load_of_java,
    load_of_ours,
)

TOPICS = ("sends", "batches")
SEND_FAILED = "a send failed: "
"""How Java's client begins a line about it. Ours ends instead."""


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
        """Return all processes of it, those of the servers first."""
        return [*self.servers.children, self.load, *self._more]

    def stop(self) -> None:
        """Stop the client; says which of its sends failed."""
        for line in self.load.complaints():
            if line.startswith(SEND_FAILED):
                print(f"bench-java: {self.name}: {line}", file=sys.stderr)
        self.load.stop()

    def restart(self) -> None:
        """Start the client anew."""
        self.load.kill()
        self.load.stop()
        self.load = self._make()

    def rate(self, order: str, begin: str = "") -> Cell:
        """Let the client do something; return messages a second and what they cost.

        What is done before the word `begin`, if there is one, does not count.
        """
        if begin:
            self.load.say(order)
            self.load.wait_for(begin)
        mine, theirs = self.load.cpu(), self.servers.cpu()
        if not begin:
            self.load.say(order)
        count, seconds = map(float, self.load.wait_for("done"))
        mine, theirs = self.load.cpu() - mine, self.servers.cpu() - theirs
        return Cell(count / seconds, mine / count * 1e6, theirs / count * 1e6)


@contextmanager
def four_pairs(
    java: Java, home: Path, guard: Guard = OPEN, **settings: object
) -> Iterator[list[Pair]]:
    """Start both kinds of servers, and both kinds of clients at each."""
    with ExitStack() as stack:
        theirs = stack.enter_context(JavaServers(java, home, guard, **settings))
        ours = stack.enter_context(OurServers(home, guard, **settings))
        both: tuple[Servers, ...] = (theirs, ours)
        for servers in both:
            prepare(servers)

        def of_java(servers: Servers) -> Callable[[], Child]:
            return lambda: load_of_java(java, servers)

        def of_ours(servers: Servers) -> Callable[[], Child]:
            return lambda: load_of_ours(servers)

        makers = (of_java(theirs), of_java(ours), of_ours(theirs), of_ours(ours))
        pairs = []
        for name, servers, make in zip(PAIRS, both * 2, makers, strict=True):
            pairs.append(Pair(name, servers, make))
            stack.callback(pairs[-1].stop)
        yield pairs


@contextmanager
def pure_pair(home: Path) -> Iterator[Pair]:
    """Start our servers and our client without the native core."""
    with PureServers(home) as servers:
        prepare(servers)
        pair = Pair(PURE, servers, lambda: load_of_ours(servers, pure=True))
        try:
            yield pair
        finally:
            pair.stop()


def prepare(servers: Servers) -> None:
    """Make the topics that are sent to."""
    for topic in TOPICS:
        servers.create_topic(topic)
    servers.admit(TOPICS[0])


@contextmanager
def alone(pair: Pair, pairs: Sequence[Pair]) -> Iterator[None]:
    """Stop the processes of all other pairs meanwhile, after what they wrote is on disk."""
    mine = pair.children()
    others = [child for each in pairs for child in each.children() if child not in mine]
    for child in others:
        child.signal(signal.SIGSTOP)
    # Linux would write it just then, and a slow disk would count against the pair that is next.
    os.sync()
    try:
        # A name server that was stopped for long drops its broker, which registers again later.
        until(pair.servers.is_known, f"the broker of {pair.servers.name}")
        yield
    finally:
        for child in others:
            child.signal(signal.SIGCONT)


def in_turns(pairs: Sequence[Pair], rounds: int) -> Iterator[tuple[int, Pair]]:
    """Return each pair in each round, there and back again, with all others stopped meanwhile."""
    for number in range(rounds):
        for pair in pairs if number % 2 == 0 else reversed(pairs):
            with alone(pair, pairs):
                yield number, pair


def median_of(cells: list[Cell]) -> Cell:
    return Cell(*(median(each) for each in zip(*cells, strict=True)))


class Warmth:
    """Whether something that is done again and again gets no faster: compilers take their time."""

    def __init__(self, patience: int = 2) -> None:
        self._best = 0.0
        self._since = 0
        self._patience = patience

    def add(self, rate: float) -> None:
        self._since = 0 if rate > self._best * 1.05 else self._since + 1
        self._best = max(self._best, rate)

    @property
    def reached(self) -> bool:
        return self._since >= self._patience


def rates(pairs: Sequence[Pair], order: str, scale: Scale) -> dict[str, Cell]:
    """Do the same with all pairs, in turns, after each is warm; return the medians.

    They warm up in turns, too: servers that are stopped for minutes are no longer known to their
    name server.
    """
    words = order.format(seconds=scale.seconds)
    warmth = {pair.name: Warmth() for pair in pairs}
    for _ in range(scale.warm):
        cold = [pair for pair in pairs if not warmth[pair.name].reached]
        for pair in cold:
            with alone(pair, pairs):
                warmth[pair.name].add(pair.rate(words).value)
    found: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    for _, pair in in_turns(pairs, scale.rounds):
        found[pair.name].append(pair.rate(words))
    return {name: median_of(cells) for name, cells in found.items()}
