"""The groups of the demo side by side: what the same changes cost with each strategy."""

from collections.abc import Sequence
from html import escape

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


ROWS = (
    "queues moved",
    "queues that had to move",
    "moved queue without owner, p50",
    "moved queue without owner, longest",
    "time with two owners",
    "wait for a handler, p50",
    "wait for a handler, longest",
    "repeats when queues changed hands",
    "repeats because a member was killed",
    "repeats because a broker was killed",
    "lag (not committed), median",
    "lag (not committed), largest",
    "lag at the end",
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
        f"<tr><td>{escape(name)}</td>"
        + "".join(f'<td class="n">{escape(value)}</td>' for value in cells)
        + "</tr>"
        for name, *cells in compared(results)
    )
    return (
        "<section><h2>Side by side</h2>"
        '<p class="soft">One topic, the same members joining, leaving and killed at the same time; '
        "times of queues are those that members recorded.</p>"
        f'<div class="wide"><table><tr><th></th>{heads}</tr>{rows}</table></div></section>'
    )


def _values(result: GroupResult) -> tuple[str, ...]:
    health, repeats, lag = result.health, result.repeats, result.health.lag
    pause, wait = health.figures.without_owner, quantiles(result.waits)
    return (
        f"{health.moved:,}",
        f"{health.minimum:,}",
        _milliseconds(None if pause is None else pause.p50),
        _milliseconds(None if pause is None else pause.longest),
        _milliseconds(health.shared_seconds),
        _milliseconds(None if wait is None else wait.p50),
        _milliseconds(None if wait is None else wait.longest),
        f"{len(repeats.by_handover):,}",
        f"{len(repeats.by_member):,}",
        f"{len(repeats.by_broker):,}",
        "–" if lag is None else f"{lag.median:,.0f}",
        "–" if lag is None else f"{lag.largest:,}",
        "–" if lag is None else f"{lag.last:,}",
    )


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:,.0f} ms"
