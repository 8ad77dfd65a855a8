"""The table of groups that change: on the terminal, and as a section of the page.

The section can be written alone; the rest of the page stays as it was measured.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from textwrap import fill

from benchmarks._rebalance_group import HANDLERS
from benchmarks.java.balance import HEAD, LOAD, cells, missed
from benchmarks.java.reasons import known_reasons
from benchmarks.java.scale import Scale
from benchmarks.java.servers import machine
from benchmarks.rebalance import MEMBERS, QUEUES, Told

TITLE = "## Groups that change"
WIDTH = 120
_WIDTHS = (24, 8, 7, 15, 20, 16, 16, 11, 7, 5, 0)


def line(words: Sequence[str]) -> str:
    """Return a row for the terminal."""
    return " ".join(f"{word:{width}}" for word, width in zip(words, _WIDTHS, strict=True)).rstrip()


def lines(told: Told) -> str:
    """Return the rows of one way for the terminal."""
    return "\n".join(map(line, cells(told)))


def _point(*parts: str) -> str:
    return fill(f"- {' '.join(parts)}", WIDTH, subsequent_indent="  ")


def section(told: Sequence[Told], version: str) -> str:
    """Return the section of the page."""
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    intro = (
        f"Members in processes of their own share {QUEUES} queues with {LOAD.rate:g} messages/s "
        f"each; handlers take {LOAD.handler_ms:g} ms. {MEMBERS} members, then again and again one "
        "joins, one leaves, one joins, one is killed; at last all are restarted one by one under "
        f"their names. All handle up to {HANDLERS} messages at once. Java's members are "
        "`DefaultMQPushConsumer`s with their defaults else, ours have theirs but for the strategy; "
        "in the rolling restart STICKY has `return_within`. Before, servers warm up: with "
        "requests that lock queues and send, until these get no faster, for at most "
        f"{Scale().group_warm:g} s, with two groups that are not counted, and with such requests "
        "again. "
        'Measured by `make bench-java ARGS="--only balance --markdown '
        'docs/reference/side-by-side.md"`.'
    )
    points = (
        _point(
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, RocketMQ {version}, {machine()}; load",
            f"average at the end {load}",
        ),
        _point(
            "moved, fewest and twice: for each event; times: ms, p50 / p99 / max, two owners the",
            "longest. A pause is the longest time between two messages of a queue; that of queues",
            "that did not move is the machine's and the producer's",
        ),
        _point(
            "without owner: from when a member starts no more messages, or is killed, to when the",
            "next one takes the queue, as they report it; twice: messages that were started",
            "before; lost: in the whole story",
        ),
    )
    rows = [HEAD, ["---"] * len(HEAD), *(row for each in told for row in cells(each))]
    return "\n\n".join(
        [
            TITLE,
            fill(intro, WIDTH, break_on_hyphens=False),
            "\n".join(points),
            "\n".join("| " + " | ".join(row) + " |" for row in rows),
            *missed_points(told, known_reasons()),
        ]
    )


def missed_points(told: Sequence[Told], reasons: Mapping[str, str]) -> Iterator[str]:
    """Return a paragraph for members and servers that miss goals: which, and why if known."""
    for each in told:
        label = each.way.label
        goals = [goal.removeprefix(f"{label}, ") for goal in missed([each])]
        if goals:
            words = [f"Missed by {label}: {'; '.join(goals)}", reasons.get(label, "")]
            yield fill(": ".join(filter(None, words)) + ".", WIDTH, break_on_hyphens=False)


def with_section(page: str, text: str) -> str:
    """Return a page with this section instead of the one it had, if any; it is the last."""
    return f"{page.partition(TITLE)[0].rstrip()}\n\n{text}\n"
