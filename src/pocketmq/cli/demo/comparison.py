"""The groups of the demo side by side: what the same changes cost with each strategy."""

from collections.abc import Sequence
from html import escape
from statistics import median

import msgspec

from pocketmq.cli.demo.repeats import Repeats
from pocketmq.pipelines.health import GroupHealth
from pocketmq.pipelines.health.handovers import quantiles


class GroupResult(msgspec.Struct, frozen=True):
    """What was seen of the group with one strategy."""

    strategy: str
    health: GroupHealth
    repeats: Repeats
    waits: list[float]
    """How long messages waited for their first delivery, in seconds."""
    since: float = 0.0
    """When both groups had formed: what was before depends on which member came first."""


ROWS = (
    "queues moved",
    "  more than had to",
    "moved queue without owner, p50",
    "moved queue without owner, longest",
    "time with two owners",
    "wait of a message for its handler, p50",
    "wait of a message for its handler, longest",
    "messages twice",
    "  when queues moved",
    "  not committed by a killed member",
    "  not saved by a killed broker",
    "lag (messages not committed), median",
    "lag, largest",
    "lag, at the end",
)
"""What is compared; `–` where it was not measured."""


def compared(results: Sequence[GroupResult]) -> list[tuple[str, ...]]:
    """Return the rows of the comparison: what, and its value for each strategy."""
    values = [_values(result) for result in results]
    return [(name, *cells) for name, *cells in zip(ROWS, *values, strict=True)]


def comparison_html(results: Sequence[GroupResult]) -> str:
    """Return the comparison as a section of the report's page."""
    heads = "".join(f'<th class="n">{escape(result.strategy)}</th>' for result in results)
    rows = "".join(
        f"<tr>{_name_html(name)}"
        + "".join(f'<td class="n">{escape(value)}</td>' for value in cells)
        + "</tr>"
        for name, *cells in compared(results)
    )
    return (
        "<section><h2>Side by side</h2>"
        '<p class="soft">Both groups consumed one topic; in both, members joined, left and were '
        "killed at the same times. Counted since both had formed; times of queues are those that "
        "members recorded.</p>"
        f'<div class="wide"><table style="width:auto"><tr><th></th>{heads}</tr>{rows}</table></div>'
        "</section>"
    )


def _name_html(name: str) -> str:
    part_of_the_line_above = ' style="padding-left:1.4em"' if name.startswith(" ") else ""
    return f"<td{part_of_the_line_above}>{escape(name.strip())}</td>"


def _values(result: GroupResult) -> tuple[str, ...]:
    health, repeats, since = result.health, result.repeats, result.since
    moves = [move for move in health.handovers if move.at >= since]
    had_to = sum(one.minimum for one in health.rebalances if one.since >= since)
    shared = [span for queue in health.queues for span in queue.shared]
    pause, wait = quantiles(move.pause for move in moves), quantiles(result.waits)
    lag = [] if health.lag is None else [at.lag for at in health.lag.points if at.time >= since]
    return (
        f"{len(moves):,}",
        f"{max(0, len(moves) - had_to):,}",
        _milliseconds(None if pause is None else pause.p50),
        _milliseconds(None if pause is None else pause.longest),
        _milliseconds(sum(max(0.0, until - max(began, since)) for began, until in shared)),
        _milliseconds(None if wait is None else wait.p50),
        _milliseconds(None if wait is None else wait.longest),
        f"{repeats.total:,}",
        f"{len(repeats.by_handover):,}",
        f"{len(repeats.by_member):,}",
        f"{len(repeats.by_broker):,}",
        f"{median(lag):,.0f}" if lag else "–",
        f"{max(lag):,}" if lag else "–",
        f"{lag[-1]:,}" if lag else "–",
    )


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:,.0f} ms"
