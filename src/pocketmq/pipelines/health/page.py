"""The report as one self-contained HTML page, for light and dark mode.

HTML and SVG by hand: the page must open from a mail without a server, and a chart library would put
a megabyte of JavaScript into each report.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from pocketmq.pipelines.health.plots import COLOURS, clock, gantt, lag_plot, moves_plot, shown
from pocketmq.pipelines.health.report import GroupHealth, HealthReport

MOST_LINES = 200
_KINDS = {
    "overlap": "the previous owner finished its last messages while the next one started",
    "drain": "the previous owner finished its messages, then the next one started",
    "orphan": "the queue had no owner, or its owner was gone",
    "foreign": "from or to a member that does not hand over",
    "lost": "the lock was refused to the owner, which dropped the queue",
}
_LAG_CAPTION = "All queues; dashed lines are rebalances, spikes are shaded."


def page(
    report: HealthReport, *, title: str = "Consumer group health", first_section: str = ""
) -> str:
    """Return the report as an HTML document; `first_section` is HTML above the groups."""
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
        f"{first_section}{groups}{bad}</main></body></html>\n"
    )


def _group(group: GroupHealth) -> str:
    numbers = {member: number for number, member in enumerate(group.members)}
    seen = f"{len(group.queues)} queues, {len(group.members)} members seen"
    parts = [
        f"<section><h2>{escape(group.group)}</h2>",
        f'<p class="soft">{seen}, {escape(", ".join(group.strategies))}{_mode(group)}</p>',
        _tiles(group),
        "<h3>Queue owners over time</h3>",
        f"<figure>{gantt(group, numbers)}{_legend(group)}",
        f"<figcaption>{_caption(group)}</figcaption></figure>",
    ]
    if group.lag is not None:
        parts += [
            "<h3>Lag</h3>",
            f"<figure>{lag_plot(group, group.lag)}",
            f"<figcaption>{_LAG_CAPTION}</figcaption></figure>",
        ]
    if len(group.rebalances) > 1:
        parts += [
            "<h3>Queues moved, and the minimum</h3>",
            f"<figure>{moves_plot(group.rebalances[1:], group.began)}</figure>",
        ]
    parts += [_rebalances(group), _handovers(group), _queues(group), "</section>"]
    return "".join(parts)


def _tiles(group: GroupHealth) -> str:
    moved, least = group.moved, group.minimum
    tiles = [
        ("rebalances", str(len(group.rebalances)), ""),
        ("queues moved (minimum)", f"{moved} ({least})", "warn" if moved > least else "good"),
        ("time without owner", f"{group.unowned_seconds:.1f} s", _grade(group.unowned_seconds)),
        ("longest pause", f"{group.longest_pause:.2f} s", ""),
        ("time with two owners", f"{group.shared_seconds:.2f} s", ""),
    ]
    pause = group.figures.without_owner
    if pause is not None:
        both = f"{1000 * pause.p50:.0f} / {1000 * pause.p99:.0f} ms"
        tiles.append(("pause of a moved queue, p50 / p99", both, ""))
    if group.figures.lost:
        tiles.append(("queues lost to a refused lock", str(group.figures.lost), "bad"))
    if group.rebalances:
        spread = group.rebalances[-1].after.group
        tiles.append(("final spread", str(spread), "good" if spread <= 1 else "warn"))
    if group.duplicates is not None:
        tiles.append(
            ("duplicates", f"{group.duplicates:,}", "warn" if group.duplicates else "good")
        )
    if group.lag is not None:
        tiles.append(("peak lag", f"{group.lag.largest:,}", ""))
        tiles.append(("final lag", f"{group.lag.last:,}", "good" if not group.lag.last else ""))
    tiles.append(("flapping", str(len(group.flapping)), "bad" if group.flapping else "good"))
    return '<div class="tiles">' + "".join(
        f'<div class="tile {style}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value, style in tiles
    ) + "</div>"  # fmt: skip


def _mode(group: GroupHealth) -> str:
    """Return how members shared queues, if it was not always as in Java."""
    return "" if set(group.modes) <= {"java"} else f", mode {escape(', '.join(group.modes))}"


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
        '<span><i style="background:var(--quiet)"></i>broker down, or with a foreign member</span>',
    ]
    return f'<div class="legend">{"".join(items)}</div>'


def _caption(group: GroupHealth) -> str:
    drawn, every = len(shown(group)), len(group.queues)
    some = f"The {drawn} of {every} queues with most moves. " if drawn < every else ""
    return f"{some}Dashed lines are rebalances; hover for details."


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
        "at", "cause", "duration", "moved", "minimum", "first owners", "spread by topic", "spread",
        "unowned",
    )  # fmt: skip
    return "<h3>Rebalances</h3>" + _table(heads, rows)


def _handovers(group: GroupHealth) -> str:
    rows = [
        (
            clock(round(move.at - group.began, 1)), str(move.queue), f"{move.left} → {move.took}",
            move.kind or "–", "–" if move.offset is None else move.offset, f"{move.pause:.3f} s",
            f"{move.overlap:.3f} s", "–" if move.draining is None else f"{move.draining:.3f} s",
            "–" if move.duplicates is None else move.duplicates, "died" if move.died else "",
        )
        for move in group.handovers
    ]  # fmt: skip
    heads = (
        "at", "queue", "from → to", "kind", "offset", "no owner", "two owners", "drained after",
        "duplicates", "",
    )  # fmt: skip
    summary = f"{len(rows)} {_plural(len(rows), 'handover')}"
    table = f"<details><summary>{summary}</summary>{_table(heads, rows)}{_clocks(group)}</details>"
    return f"{_kinds(group)}{table}"


def _kinds(group: GroupHealth) -> str:
    """Return the hand-overs by kind, if members reported any."""
    figures = group.figures
    rows = [
        (
            kind, number,
            *((f"{q.p50:.3f} s", f"{q.p99:.3f} s", f"{q.longest:.3f} s")
              if (q := figures.by_kind.get(kind)) else ("–", "–", "–")),
            _KINDS.get(kind, ""),
        )
        for kind, number in figures.kinds.items()
    ]  # fmt: skip
    heads = ("kind", "count", "no owner, p50", "p99", "longest", "meaning")
    return f"<h3>Hand-overs by kind</h3>{_table(heads, rows)}" if rows else ""


def _clocks(group: GroupHealth) -> str:
    if not group.figures.doubtful:
        return ""
    return (
        f'<p class="soft">{group.figures.doubtful:.3f} s of the time with two owners lie between '
        "machines: their clocks may differ by as much.</p>"
    )


def _queues(group: GroupHealth) -> str:
    rows = [
        (
            q.queue.topic, str(q.queue), len(q.owners), q.moves, f"{q.unowned_seconds:.2f} s",
            f"{q.shared_seconds:.2f} s", "–" if q.duplicates is None else q.duplicates,
        )
        for q in group.queues
    ]  # fmt: skip
    heads = ("topic", "queue", "owners", "moves", "no owner", "two owners", "duplicates")
    return f"<details><summary>{len(rows)} queues</summary>{_table(heads, rows)}</details>"


def _bad(report: HealthReport) -> str:
    rows = [(line.where, line.reason) for line in report.bad]
    return f"<h2>Unreadable lines</h2>{_table(('where', 'reason'), rows)}"


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


STYLE = """
:root{color-scheme:light dark;--paper:#fcfcfb;--ink:#1a1a19;--soft:#6b6a66;--rule:#e3e2dd;
  --card:#ffffff;--bad:#d03b3b;--warn:#b26a00;--good:#2d7d32;--line:#2a78d6;--quiet:#b9b8b2;
  --c0:#2a78d6;--c1:#1baf7a;--c2:#eda100;--c3:#4a3aa7;--c4:#e87ba4;--c5:#008300;--c6:#eb6834;
  --c7:#7a5c3e}
@media (prefers-color-scheme:dark){:root{--paper:#1a1a19;--ink:#f2f1ed;--soft:#a3a29c;
  --rule:#383835;--card:#232321;--bad:#e66767;--warn:#e0a63f;--good:#6cc070;--line:#5b9be6;
  --quiet:#5c5b57;--c0:#3987e5;--c1:#199e70;--c2:#c98500;--c3:#9085e9;--c4:#d55181;--c5:#4c9a4c;
  --c6:#d95926;--c7:#a98a6a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0 0 4px}
h2{font-size:19px;margin:36px 0 4px}
h3{font-size:15px;margin:26px 0 6px}
p{margin:4px 0}
.soft{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;
  min-width:132px}
.tile b{display:block;font-size:21px;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.bad b{color:var(--bad)}
.warn b{color:var(--warn)}
.good b{color:var(--good)}
figure{margin:8px 0;background:var(--card);border:1px solid var(--rule);border-radius:8px;
  padding:12px}
figcaption{color:var(--soft);font-size:13px;margin-top:8px}
svg{width:100%;height:auto;display:block;font:11px system-ui,sans-serif}
svg text{fill:var(--ink)}
svg text.on{fill:#fff;font-weight:600}
svg text.small{fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}
.mark{stroke:var(--ink);stroke-dasharray:3 3;opacity:.55}
.line{fill:none;stroke:var(--line);stroke-width:2;stroke-linejoin:round}
.dot{fill:var(--line)}
.spike{fill:var(--bad);opacity:.14}
.absent{fill:var(--quiet);opacity:.45}
.unowned{fill:var(--bad)}
.shared{fill:none;stroke:var(--ink);stroke-width:1.6}
.moved{fill:var(--c0)}
.minimum{fill:var(--quiet)}
.again{opacity:.6}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin-top:8px}
.legend i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:6px;
  vertical-align:-1px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;width:100%}
th{text-align:left;color:var(--soft);font-weight:500}
td,th{padding:3px 14px 3px 0;white-space:nowrap;border-bottom:1px solid var(--rule)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
details summary{cursor:pointer;color:var(--soft);font-size:13px;margin:8px 0}
"""
STYLE += "".join(
    f".c{n}{{fill:var(--c{n})}}.k{n}{{background:var(--c{n})}}\n" for n in range(COLOURS)
)
