"""What joins, departures and deaths of members do to a group: moves, pauses, messages twice.

Members are processes of their own; a producer sends to every queue at a steady rate all the while.
The same story is told for each way to share queues, in one run; `_handovers` explains the figures.
`tell` returns the figures of one way, for other programs. On a busy machine the pauses are those of
the machine: compare with the silence of queues that did not move. Any cluster will do, also
Apache's:

    python -m benchmarks.rebalance [--name-server HOST:PORT] [--strategy AVG …] [--handler-ms 20]
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks._handovers import Figures, Record, examine, lost, percentile
from benchmarks._rebalance_group import Group, Load, Way
from benchmarks.consumer import cluster
from pocketmq.admin.admin import Admin
from pocketmq.model import TopicConfig

QUEUES = 8
MEMBERS = 4
KINDS = ("join", "leave", "kill", "rolling")
JAVA_PAUSES = Way("AVG, Java's pauses", {"strategy": "AVG"}, java_pauses=True)


class Story(NamedTuple):
    """What is to happen, and how often."""

    rounds: int = 5
    """Each is a join, a departure, another join and a death."""
    restarts: int = 1
    """Rolling restarts of all members under their names."""
    seed: int = 7


class Told(NamedTuple):
    """A way to share queues, and what it led to."""

    way: Way
    figures: list[Figures]
    lost: int
    messages: int


def tell(
    name_server: str, way: Way, story: Story, load: Load, *, queues: int = QUEUES
) -> tuple[Record, Told]:
    """Let a group live through a story; return what was written down, and its figures.

    Rolling restarts are a group of their own where members say beforehand that they will be back.
    """
    if story.rounds and story.restarts and way.restarting != way:
        changes, told = tell(name_server, way, story._replace(restarts=0), load, queues=queues)
        _, later = tell(name_server, way, story._replace(rounds=0), load, queues=queues)
        lost_in_both, messages = told.lost + later.lost, told.messages + later.messages
        return changes, Told(way, [*told.figures, *later.figures], lost_in_both, messages)
    if not story.rounds:
        way = way.restarting
    topic = f"rebalance-{time.monotonic_ns()}"
    names = asyncio.run(_create_topic(name_server, topic, queues))
    chance = random.Random(story.seed)
    with (
        TemporaryDirectory() as home,
        Group(name_server, topic, names, way, load, Path(home)) as group,
    ):
        # Members are sorted by their names: newcomers come to any place among them.
        fresh = iter(chance.sample([f"member-{number:03}" for number in range(1000)], 500))
        group.start([next(fresh) for _ in range(MEMBERS)])
        for _ in range(story.rounds):
            group.join(next(fresh))
            group.leave(chance.choice(sorted(group.present)))
            group.join(next(fresh))
            group.kill(chance.choice(sorted(group.present)))
        for _ in range(story.restarts):
            group.rolling_restart()
        record = group.finish()
    return record, Told(way, examine(record), len(lost(record)), len(record.sent))


async def _create_topic(name_server: str, topic: str, queues: int) -> list[str]:
    """Make a topic on the first broker; return its queues as members name them."""
    async with Admin(name_server) as admin:
        config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        place = (await admin.brokers.masters(None))[0]
        (await admin.topics.create(config, address=place.address)).all()
    return [f"{place.broker}:{number}" for number in range(queues)]


class Row(NamedTuple):
    """What one kind of event did, all its occurrences together. Times are milliseconds."""

    events: int
    moved: float
    minimum: float
    """For each event, as `moved` and `twice`."""
    silence: tuple[float, float, float]
    """Of queues that were taken: half of them, 99 of 100, all were not silent for longer."""
    unmoved: tuple[float, float, float]
    without_owner: tuple[float, float, float]
    two_owners: float
    twice: float


def row_of(figures: Iterable[Figures], kind: str) -> Row | None:
    """Return the row of a kind of event; None if there was none."""
    of_kind = [each for each in figures if each.kind == kind]
    count = len(of_kind)
    if not count:
        return None
    return Row(
        count,
        sum(each.moved for each in of_kind) / count,
        sum(each.minimum for each in of_kind) / count,
        _spread(time for each in of_kind for time in each.silence_moved),
        _spread(time for each in of_kind for time in each.silence_unmoved),
        _spread(time for each in of_kind for time in each.without_owner),
        max(time for each in of_kind for time in (*each.two_owners, 0.0)) * 1e3,
        sum(each.twice for each in of_kind) / count,
    )


def _spread(times: Iterable[float]) -> tuple[float, float, float]:
    found = [time * 1e3 for time in times]
    return percentile(found, 0.5), percentile(found, 0.99), max(found, default=0.0)


HEAD = (
    f"{'':22}{'':8}{'events':>7}{'moved':>7}{'fewest':>7}"
    f"{'silence of moved':>22}{'ratio':>8}{'of unmoved':>19}{'without owner':>19}"
    f"{'two owners':>12}{'twice':>7}{'lost':>6}\n"
    f"{'':51}{'p50 / p99 / max ms':>22}{'p99':>8}{'p50 / p99 / max':>19}"
    f"{'p50 / p99 / max':>19}{'max ms':>12}{'/event':>7}"
)


def table(told: Sequence[Told]) -> Iterator[str]:
    """Return the lines of a table; ratios are to the same kind of event in the first way."""
    yield HEAD
    plain = {kind: row_of(told[0].figures, kind) for kind in KINDS}
    for each in told:
        for kind in KINDS:
            row, first = row_of(each.figures, kind), plain[kind]
            if row is None:
                continue
            ratio = row.silence[1] / first.silence[1] if first and first.silence[1] else 1.0
            yield (
                f"{each.way.label:22}{kind:8}{row.events:7}{row.moved:7.1f}{row.minimum:7.1f}"
                f"{_shown(row.silence):>22}{ratio:7.2f}×{_shown(row.unmoved):>19}"
                f"{_shown(row.without_owner):>19}{row.two_owners:12.0f}{row.twice:7.1f}"
                f"{each.lost:6}"
            )


def _shown(times: tuple[float, float, float]) -> str:
    return " / ".join(f"{time:.0f}" for time in times)


def ways(
    strategies: Iterable[str], options: dict[str, object], *, orderly: bool = False
) -> list[Way]:
    """Return the ways to compare: AVG with Java's pauses, then each strategy as it is."""
    order = {"orderly": True} if orderly else {}
    return [
        JAVA_PAUSES._replace(options={**JAVA_PAUSES.options, **order}),
        *(Way(name, {"strategy": name, **order, **options}) for name in strategies),
    ]


@contextmanager
def _server(name_server: str | None) -> Iterator[str]:
    if name_server is not None:
        yield name_server
        return
    with cluster() as (address, _):
        yield address


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rebalance")
    add = parser.add_argument
    add("--name-server", help="of a cluster that runs; without it, one is started")
    add("--strategy", action="append", help="compare this one with AVG in Java's time")
    add("--options", default="{}", help="more options of these consumers, as JSON")
    add("--orderly", action="store_true", help="messages of a queue one after another")
    add("--handler-ms", type=float, action="append", help="how long a handler takes")
    add("--rate", type=float, default=Load().rate, help="messages a second for each queue")
    add("--rounds", type=int, default=Story().rounds)
    add("--restarts", type=int, default=Story().restarts)
    chosen = parser.parse_args()
    story = Story(chosen.rounds, chosen.restarts)
    compared = ways(chosen.strategy or ["AVG"], json.loads(chosen.options), orderly=chosen.orderly)
    with _server(chosen.name_server) as address:
        for handler_ms in chosen.handler_ms or [0.0, 20.0]:
            load = Load(chosen.rate, handler_ms)
            print(
                f"{MEMBERS} members, {QUEUES} queues, {load.rate:g} messages/s each, "
                f"handlers of {handler_ms:g} ms",
                flush=True,
            )
            told = [tell(address, way, story, load)[1] for way in compared]
            print("\n".join(table(told)), flush=True)


if __name__ == "__main__":
    main()
