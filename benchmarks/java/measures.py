"""What is measured of four pairs: Java's client and ours, each on Java's broker and on ours.

Of some rows there are more columns: ours without the native core, and Kafka.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.java.goals import SUBMIT
from benchmarks.java.guards import Certificate, Guard
from benchmarks.java.pairs import Pair, four_pairs, in_turns, median_of, rates
from benchmarks.java.processes import Child
from benchmarks.java.rows import Cell, Row
from benchmarks.java.scale import Scale
from benchmarks.java.servers import LARGE_PULLS, Java, Servers

RATE = 200
DELAY_LEVEL = 18
"""Two hours: nothing is delivered while it is measured."""
SENDS = (
    ("one at a time", "one sends {seconds}"),
    ("64 in flight", "flight sends 64 {seconds}"),
    ("batches of 32", "batch batches 32 {seconds}"),
    ("batches of 256", "batch batches 256 {seconds}"),
)
DELAYED = (
    ("one at a time", f"one sends {{seconds}} {DELAY_LEVEL}"),
    ("64 in flight", f"flight sends 64 {{seconds}} {DELAY_LEVEL}"),
)


def send_rows(pairs: Sequence[Pair], scale: Scale) -> Iterator[Row]:
    for name, order in SENDS:
        yield Row(f"send, {name}", "messages/s", rates(pairs, order, scale))


def submit_row(pairs: Sequence[Pair], scale: Scale) -> Iterator[Row]:
    """Submit from one thread, and let the client make batches."""
    yield Row(SUBMIT, "messages/s", rates(pairs, "submit batches {seconds}", scale))


def flush_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    for name, order in SENDS[:2]:
        cells = rates(pairs, order, scale)
        yield Row(f"synchronous flush, {name}", "messages/s", cells)


def special_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    """Send what brokers store elsewhere first."""
    cells = rates(pairs, "transact sends {seconds}", scale)
    yield Row("transactions, one at a time", "messages/s", cells)
    for name, order in DELAYED:
        yield Row(f"delayed sends, {name}", "messages/s", rates(pairs, order, scale))


def guarded_rows(java: Java, home: Path, scale: Scale) -> Iterator[Row]:
    """Send to brokers that ask who one is, and over TLS."""
    guards = (("ACL-signed", Guard(accounts=True)), ("TLS", Guard(False, Certificate.make(home))))
    for kind, guard in guards:
        with four_pairs(java, home, guard) as pairs:
            for name, order in SENDS[:2]:
                cells = rates(pairs, order, scale)
                yield Row(f"{kind} sends, {name}", "messages/s", cells)


BACKLOGS = (("defaults", 1), ("batches of 1024", 1024))


def fill_backlog(pairs: Sequence[Pair], count: int) -> None:
    """Store messages to consume, once at each kind of servers."""
    for servers in _all_servers(pairs):
        servers.create_topic("backlog")
        pair = next(each for each in pairs if each.servers is servers)
        pair.load.say(f"fill backlog {count}")
        pair.load.wait_for("done")


def _all_servers(pairs: Sequence[Pair]) -> list[Servers]:
    return list({id(pair.servers): pair.servers for pair in pairs}.values())


def backlog_rows(pairs: Sequence[Pair], scale: Scale) -> Iterator[Row]:
    """Consume a backlog: new groups, the same messages each time."""
    for name, size in BACKLOGS:
        if size > 1:
            for servers in _all_servers(pairs):
                servers.change(LARGE_PULLS)
        found: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
        for number, pair in in_turns(pairs, scale.rounds + 1):
            group = _group("backlog", pair, f"{size}-{number}")
            order = f"consume backlog {group} {scale.backlog} {size}"
            cell = pair.rate(order, begin="begun")
            pair.load.wait_for("closed")
            if number:  # the first one warms up
                found[pair.name].append(cell)
        cells = {each: median_of(rounds) for each, rounds in found.items()}
        yield Row(f"consume a backlog, {name}", "messages/s", cells)


def _group(what: str, pair: Pair, number: object) -> str:
    return f"{what}-{pair.name.replace('/', '-')}-{number}"


POPS = (("one at a time", 1), ("batches of 32", 32))


def pop_rows(pairs: Sequence[Pair], scale: Scale) -> Iterator[Row]:
    """Receive and acknowledge: new groups, the same messages each time."""
    for name, size in POPS:
        found: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
        warm = min(scale.warm, 3)
        for number, pair in in_turns(pairs, warm + scale.rounds):
            group = _group("pop", pair, f"{size}-{number}")
            cell = pair.rate(f"pop backlog {group} {size} {scale.seconds}", begin="begun")
            if number >= warm:
                found[pair.name].append(cell)
        cells = {each: median_of(rounds) for each, rounds in found.items()}
        yield Row(f"POP receive + ack, {name}", "messages/s", cells)


def latency_rows(pairs: list[Pair], scale: Scale) -> Iterator[Row]:
    """Measure how long a message takes from one client to another, at a steady rate."""
    middles: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    tails: dict[str, list[Cell]] = {pair.name: [] for pair in pairs}
    with ExitStack() as stack:
        listeners = {}
        for pair in pairs:
            listeners[pair.name] = pair.second()
            stack.callback(listeners[pair.name].stop)
        for number, pair in in_turns(pairs, scale.live_rounds + 1):
            middle, tail = _latency(pair, listeners[pair.name], number, scale)
            if number:  # the first one warms up
                middles[pair.name].append(Cell(middle / 1000))
                tails[pair.name].append(Cell(tail / 1000))
    for name, found in (("p50", middles), ("p99", tails)):
        cells = {each: median_of(rounds) for each, rounds in found.items()}
        yield Row(f"live latency, {name}", "ms", cells)


def _latency(pair: Pair, listener: Child, number: int, scale: Scale) -> tuple[float, float]:
    name = _group("live", pair, number)
    pair.servers.create_topic(name)
    listener.say(f"listen {name} {name} {scale.lead} {scale.live}")
    listener.wait_for("listening")
    pair.load.say(f"drip {name} {scale.lead + scale.live} {RATE}")
    pair.load.wait_for("done")
    middle, tail = map(float, listener.wait_for("done"))
    listener.wait_for("closed")
    return middle, tail


def memory_rows(pairs: list[Pair]) -> Iterator[Row]:
    """Measure what the servers have in memory after all of this."""
    theirs, ours = pairs[0].servers.memory(), pairs[-1].servers.memory()
    for at, name in enumerate(("files they map included", "their own")):
        cells = {"Java/Java": Cell(theirs[at]), "ours/ours": Cell(ours[at])}
        yield Row(f"servers' memory, {name}", "MB", cells)
