"""Groups that change: Java's members on Java's servers, ours with AVG and with STICKY on both.

Each way lives through the same story (`benchmarks.rebalance`); `benchmarks/_handovers.py` explains
the figures. Goals are those of STICKY.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks._rebalance_group import Load, Way
from benchmarks.java.scale import Scale
from benchmarks.java.servers import Java, JavaServers, OurServers, Servers
from benchmarks.java.steady import STEADY_TOPIC, until_steady
from benchmarks.rebalance import KINDS, Row, Story, Told, row_of, tell

LOAD = Load(rate=100.0, handler_ms=20.0)
COMMIT_INTERVAL = 0.1
LONGEST_MS = {"join": 25.0, "leave": 25.0, "kill": 60.0}
"""Without an owner, for 99 of 100 queues that were moved."""
HEAD = (
    *("members / servers", "event", "events", "moved / fewest", "pause of moved", "of unmoved"),
    *("without owner", "two owners", "twice", "lost", "goals"),
)


class Goal(NamedTuple):
    """One thing that is to be reached, and whether it was."""

    text: str
    reached: bool


def stories(java: Java, home: Path, scale: Scale) -> Iterator[Told]:
    """Let a group live through the story in each way; servers that are not used do not run."""
    story = Story(rounds=scale.group_rounds)
    with JavaServers(java, home) as theirs:
        _warm_up(theirs, scale.group_warm)
        command = (*java.command(theirs.home, "member", "GroupMember"),)
        apache = Way("Java", {}, java_pauses=True, command=command)
        for way in (apache, *_ours()):
            yield _told(theirs, way, story)
    with OurServers(home) as ours:
        _warm_up(ours, scale.group_warm)
        for way in _ours():
            yield _told(ours, way, story)


def _warm_up(servers: Servers, seconds: float) -> None:
    """Let servers answer every kind of request often: a Java broker is slow at first."""
    servers.create_topic(STEADY_TOPIC)
    until_steady(servers.port, seconds)
    for way in _ours():
        _told(servers, way, Story(rounds=1, restarts=0))
    until_steady(servers.port, seconds)


def _ours() -> tuple[Way, ...]:
    return tuple(Way(f"ours, {name}", {"strategy": name}) for name in ("AVG", "STICKY"))


def _told(servers: Servers, way: Way, story: Story) -> Told:
    _, told = tell(servers.namesrv, way, story, LOAD)
    label = f"{way.label} / {servers.name}"
    return told._replace(way=way._replace(label=label))


def goals(kind: str, row: Row, lost: int) -> list[Goal]:
    """Return what STICKY is to reach in a kind of event."""
    bound, text = 0.0, "twice 0"
    if kind == "kill":  # in flight, and finished since the last commit
        bound = row.minimum * LOAD.rate * (COMMIT_INTERVAL + LOAD.handler_ms / 1e3)
        text = f"twice ≤ {bound:.0f}"
    found = [
        Goal(text, row.twice <= bound),
        Goal("fewest moves", row.moved == row.minimum),
        Goal("two owners 0", row.two_owners == 0),
        Goal("lost 0", lost == 0),
    ]
    if kind in LONGEST_MS:
        limit = LONGEST_MS[kind]
        found.append(Goal(f"without owner p99 < {limit:.0f} ms", row.without_owner[1] < limit))
    return found


def cells(told: Told) -> Iterator[list[str]]:
    """Return the rows of a table that one way fills."""
    for kind in KINDS:
        row = row_of(told.figures, kind)
        if row is None:
            continue
        sticky = told.way.options.get("strategy") == "STICKY"
        marked = goals(kind, row, told.lost) if sticky else []
        yield [
            told.way.label,
            kind,
            str(row.events),
            f"{row.moved:.1f} / {row.minimum:.1f}",
            *(_spread(each) for each in (row.silence, row.unmoved, row.without_owner)),
            f"{row.two_owners:.0f}",
            f"{row.twice:.1f}",
            str(told.lost),
            ", ".join(f"{goal.text} {'✓' if goal.reached else '✗'}" for goal in marked),
        ]


def missed(told: Sequence[Told]) -> list[str]:
    """Return the goals of STICKY that were not reached."""
    return [
        f"{each.way.label}, {kind}: {goal.text}"
        for each in told
        if each.way.options.get("strategy") == "STICKY"
        for kind in KINDS
        if (row := row_of(each.figures, kind)) is not None
        for goal in goals(kind, row, each.lost)
        if not goal.reached
    ]


def _spread(times: tuple[float, float, float]) -> str:
    return " / ".join(f"{time:.0f}" for time in times)
