"""The report as one HTML page: nothing is fetched, light and dark, to be sent to a colleague."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from pocketmq.pipelines.health.plots import (
    clock,
    gantt,
    lag_plot,
    moves_plot,
    shown,
)
from pocketmq.pipelines.health.report import GroupHealth, HealthReport
from pocketmq.pipelines.health.style import COLOURS, STYLE

MOST_LINES = 200
_LAG_CAPTION = "All queues together; dashed lines are rebalances, shaded are spikes."


def page(report: HealthReport, *, title: str = "Consumer group health") -> str:
    """Draw the report as an HTML document."""
    groups = "".join(_group(group) for group in report.groups)
    began = min(group.began for group in report.groups)
    ended = max(group.ended for group in report.groups)
    when = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    bad = "" if not report.bad else _bad(report)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>"
        f'<p class="soft">{len(report.groups)} {_plural(len(report.groups), "group")}, '
        f"from {when}, {clock(round(ended - began, 1))} observed</p>"
        f"{groups}{bad}</main></body></html>\n"
    )


def _group(group: GroupHealth) -> str:
    numbers = {member: number for number, member in enumerate(group.members)}
    seen = f"{len(group.queues)} queues, {len(group.members)} members seen"
    parts = [
        f"<section><h2>{escape(group.group)}</h2>",
        f'<p class="soft">{seen}, {escape(", ".join(group.strategies))}</p>',
        _tiles(group),
        "<h3>Who owned which queue</h3>",
        f"<figure>{gantt(group, numbers)}{_legend(group)}",
        f"<figcaption>{_caption(group)}</figcaption></figure>",
    ]
    if group.lag is not None:
        parts += [
            "<h3>Lag: messages waiting</h3>",
            f"<figure>{lag_plot(group, group.lag)}",
            f"<figcaption>{_LAG_CAPTION}</figcaption></figure>",
        ]
    if len(group.rebalances) > 1:
        parts += [
            "<h3>Queues moved, against the fewest possible</h3>",
            f"<figure>{moves_plot(group.rebalances[1:], group.began)}</figure>",
        ]
    parts += [_rebalances(group), _handovers(group), _queues(group), "</section>"]
    return "".join(parts)


def _tiles(group: GroupHealth) -> str:
    moved, least = group.moved, group.minimum
    tiles = [
        ("rebalances", str(len(group.rebalances)), ""),
        ("queues moved (fewest)", f"{moved} ({least})", "warn" if moved > least else "good"),
        ("time without owner", f"{group.unowned_seconds:.1f} s", _grade(group.unowned_seconds)),
        ("longest pause", f"{group.longest_pause:.2f} s", ""),
        ("time with two owners", f"{group.shared_seconds:.2f} s", ""),
    ]
    if group.rebalances:
        spread = group.rebalances[-1].after.group
        tiles.append(("spread at the end", str(spread), "good" if spread <= 1 else "warn"))
    if group.duplicates is not None:
        tiles.append(
            ("seen twice", f"{group.duplicates:,}", "warn" if group.duplicates else "good")
        )
    if group.lag is not None:
        tiles.append(("largest lag", f"{group.lag.largest:,}", ""))
        tiles.append(
            ("lag at the end", f"{group.lag.last:,}", "good" if not group.lag.last else "")
        )
    tiles.append(("flapping", str(len(group.flapping)), "bad" if group.flapping else "good"))
    return '<div class="tiles">' + "".join(
        f'<div class="tile {style}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value, style in tiles
    ) + "</div>"  # fmt: skip


def _grade(seconds: float) -> str:
    return "good" if seconds < 0.05 else "warn"


def _legend(group: GroupHealth) -> str:
    items = [
        f'<span><i class="k{n % COLOURS}"></i>{n + 1} {escape(member)}</span>'
        for n, member in enumerate(group.members)
    ]
    items += [
        '<span><i style="background:var(--bad)"></i>no owner</span>',
        '<span><i style="border:2px solid var(--ink)"></i>two owners</span>',
        '<span><i style="background:var(--quiet)"></i>broker away</span>',
    ]
    return f'<div class="legend">{"".join(items)}</div>'


def _caption(group: GroupHealth) -> str:
    drawn, every = len(shown(group)), len(group.queues)
    some = f"The {drawn} of {every} queues with most to tell. " if drawn < every else ""
    return f"{some}Dashed lines are rebalances of the group; point at anything for its numbers."


def _rebalances(group: GroupHealth) -> str:
    rows = [
        (
            clock(round(one.since - group.began, 1)), one.cause, f"{one.until - one.since:.2f} s",
            one.moved, one.minimum, one.first_taken,
            ", ".join(f"{topic} {spread}" for topic, spread in one.after.topics.items()),
            one.after.group, one.after.unowned,
        )
        for one in group.rebalances
    ]  # fmt: skip
    heads = (
        "at", "why", "took", "moved", "had to", "taken first", "spread by topic", "spread",
        "unowned",
    )  # fmt: skip
    return "<h3>Rebalances</h3>" + _table(heads, rows)


def _handovers(group: GroupHealth) -> str:
    rows = [
        (
            clock(round(move.at - group.began, 1)), str(move.queue), move.left, move.took,
            f"{move.pause:.2f} s", f"{move.overlap:.2f} s",
            "–" if move.duplicates is None else move.duplicates, "died" if move.died else "",
        )
        for move in group.handovers
    ]  # fmt: skip
    heads = ("at", "queue", "from", "to", "pause", "both", "twice", "")
    summary = f"{len(rows)} {_plural(len(rows), 'change')} of hands"
    return f"<details><summary>{summary}</summary>{_table(heads, rows)}</details>"


def _queues(group: GroupHealth) -> str:
    rows = [
        (
            q.queue.topic, str(q.queue), len(q.owners), q.moves, f"{q.unowned_seconds:.2f} s",
            f"{q.shared_seconds:.2f} s", "–" if q.duplicates is None else q.duplicates,
        )
        for q in group.queues
    ]  # fmt: skip
    heads = ("topic", "queue", "owners", "moves", "no owner", "two owners", "twice")
    return f"<details><summary>{len(rows)} queues</summary>{_table(heads, rows)}</details>"


def _bad(report: HealthReport) -> str:
    rows = [(line.where, line.reason) for line in report.bad]
    return f"<h2>Not readable</h2>{_table(('where', 'reason'), rows)}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    numeric = [all(_is_number(row[at]) for row in rows) for at in range(len(heads))]
    head = "".join(_cell("th", name, n) for name, n in zip(heads, numeric, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', v, n) for v, n in zip(row, numeric, strict=True))}</tr>"
        for row in rows[:MOST_LINES]
    )
    more = "" if len(rows) <= MOST_LINES else f"<p>and {len(rows) - MOST_LINES} more</p>"
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table>{more}</div>'


def _is_number(value: object) -> bool:
    return isinstance(value, int) or (
        isinstance(value, str) and (value == "–" or value.endswith(" s"))
    )


def _cell(tag: str, value: object, numeric: bool) -> str:  # noqa: FBT001
    kind = ' class="n"' if numeric else ""
    return f"<{tag}{kind}>{escape(str(value))}</{tag}>"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
