"""The table: on the terminal as it grows, and as a page."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill

from benchmarks.java.group_section import TITLE, section, with_section
from benchmarks.java.measures import LEAD, PAIRS, RATE, Row, Scale
from benchmarks.java.rebalance import RATE as STEADY
from benchmarks.java.servers import HEAP, LARGE_PULLS, QUEUES, file_system, machine
from benchmarks.rebalance import Told

WIDTH = 120


def number(value: float, unit: str) -> str:
    if unit == "messages/s":
        return f"{value:,.0f}".replace(",", " ")
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdict(row: Row) -> str:
    reached = row.reached()
    return row.goal + {True: " ✓", False: " ✗", None: ""}[reached]


def cost(row: Row, pair: str) -> str:
    cell = row.cells.get(pair)
    if cell is None or not (cell.client_cpu or cell.server_cpu):
        return ""
    return f"{cell.client_cpu:.1f} + {cell.server_cpu:.1f}"


def heads() -> list[str]:
    return ["", "unit", *PAIRS, "ratio", "goal", "CPU µs Java/Java", "CPU µs ours/ours"]


def cells_of(row: Row) -> list[str]:
    ratio = row.ratio()
    return [
        row.name,
        row.unit,
        *(number(row.cells[p].value, row.unit) if p in row.cells else "" for p in PAIRS),
        "" if ratio is None else f"{ratio:.2f}",
        verdict(row),
        cost(row, "Java/Java"),
        cost(row, "ours/ours"),
    ]


def line(cells: Sequence[str]) -> str:
    widths = (38, 12, 11, 11, 11, 11, 7, 10, 17, 17)
    first, *others = zip(cells, widths, strict=True)
    return first[0].ljust(first[1]) + "".join(f" {cell:>{width}}" for cell, width in others)


def _point(*lines: str) -> str:
    return fill(f"- {' '.join(lines)}", WIDTH, subsequent_indent="  ")


def page(rows: Sequence[Row], version: str, scale: Scale, home: Path) -> str:
    """Give the page of documentation; `home` is where the stores lie."""
    large = ", ".join(f"`{name}={value}`" for name, value in LARGE_PULLS.items())
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    table = [heads(), ["---"] * 2 + ["---:"] * 5 + ["---"] + ["---:"] * 2, *map(cells_of, rows)]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in table)
    points = (
        _point(
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, RocketMQ {version}, {machine()}; stores on",
            f"{file_system(home)}; load average at the end {load}",
        ),
        _point(
            f"Java's servers: its defaults (asynchronous flush), heaps of {HEAP['broker']}",
            f"(broker) and {HEAP['namesrv']} (name server), no pre-touching; Java's client: a",
            f"heap of {HEAP['client']}; both log nothing. Ours: `pocketmq up --data`, with",
            "`--log-level error`",
        ),
        _point(
            "Java's client sends with `DefaultMQProducer` (synchronous, with callbacks, lists) and",
            "consumes with `DefaultMQPushConsumer`; ours sends with the blocking `Producer`, 64 in",
            "flight with asyncio's and as many coroutines, and consumes with asyncio's",
            "`PushConsumer`, in the rebalances with the blocking one",
        ),
        _point(
            "while one pair is measured, the processes of the others are stopped (SIGSTOP): an",
            "idle Java broker wakes up often enough to slow down another measurement",
        ),
        _point(
            f"send and synchronous flush: medians of {scale.rounds} rounds of {scale.seconds:g} s,",
            f"after warm-up rounds until they get no faster, at most {scale.warm}",
        ),
        _point(
            f"consume: a backlog of {scale.backlog} messages, medians of {scale.rounds} rounds",
            "after one warm-up, measured after the first eighth. Defaults: of brokers and clients;",
            "ours pulls up to 256 messages at once while many wait, Java's 32. Batches of 1024:",
            "pulled and handled 1024 at a time, caches of 16 batches per queue in both clients,",
            f"{large} in both brokers",
        ),
        _point(
            f"live latency: {RATE} messages per second, from just before the send to the handler,",
            f"{scale.live} messages after {LEAD} for warm-up; medians of {scale.live_rounds}",
            "rounds after one warm-up",
        ),
        _point(
            "start: from the start of both processes to the first stored message, the median of",
            f"{scale.starts}; memory: of name server and broker after all measurements above it,",
            "one reading, shared pages counted in proportion",
        ),
        _point(
            "rebalance: two members, then a third joins, one leaves, one is killed, at",
            f"{STEADY} messages per second; pause is the longest time in which a queue's messages",
            f"were not delivered; mean of {scale.drills} runs",
        ),
    )
    intro = (
        '`make bench-java ARGS="--markdown docs/reference/side-by-side.md"` measures this: Java\'s '
        "client and ours, each on Java's servers and on ours, in one run, alternating. Columns "
        "are client/servers; the ratio is ours/ours divided by Java/Java. For milliseconds, "
        "megabytes, seconds and duplicates, less is better. The goal is our target for the ratio. "
        f"Bodies have 100 bytes, topics {QUEUES} queues. CPU is processor time per message, client "
        "+ servers."
    )
    parts = [
        "# Performance compared with Apache RocketMQ",
        fill(intro, WIDTH),
        "\n".join(points),
        text,
    ]
    return "\n\n".join(parts) + "\n"


def write_page(
    path: Path, rows: Sequence[Row], told: Sequence[Told], version: str, scale: Scale, home: Path
) -> None:
    """Write the page; what was not measured now, of its two parts, stays as it is there."""
    old = path.read_text() if path.exists() else ""
    text = page(rows, version, scale, home) if rows or not old else old
    if told:
        path.write_text(with_section(text, section(told, version)))
    else:
        _, title, kept = old.partition(TITLE)
        path.write_text(with_section(text, title + kept.rstrip()) if title else text)
