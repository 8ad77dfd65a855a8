"""The table: on the terminal as it grows, and as a page."""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from benchmarks.java.group_section import TITLE, section, with_section
from benchmarks.java.kafka_parts import CLIENT, CLIENT_VERSION
from benchmarks.java.measures import DELAY_LEVEL, RATE
from benchmarks.java.reasons import known_reasons
from benchmarks.java.rebalance import RATE as STEADY
from benchmarks.java.rows import COLUMNS, Row, Verdict
from benchmarks.java.scale import Scale
from benchmarks.java.servers import HEAP, LARGE_PULLS, QUEUES, file_system, machine
from benchmarks.rebalance import Told
from pocketmq.native import description
from pocketmq.net.loops import loop_description

WIDTH = 120
PAGE = "docs/reference/side-by-side.md"


class Run(NamedTuple):
    """What was measured, and how."""

    version: str
    kafka: str | None
    """Its version; None if it was left out."""
    scale: Scale
    home: Path
    """Where the stores lie."""


def number(value: float, unit: str) -> str:
    if unit == "messages/s":
        return f"{value:,.0f}".replace(",", " ")
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cost(row: Row, pair: str) -> str:
    cell = row.cells.get(pair)
    if cell is None or not (cell.client_cpu or cell.server_cpu):
        return ""
    return f"{cell.client_cpu:.1f} + {cell.server_cpu:.1f}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _verdicts(found: list[Verdict]) -> str:
    return ", ".join(map(str, found))


def heads() -> list[str]:
    ratios = ["ratio", "goal", "ours/Java ratio", "its goal"]
    return ["", "unit", *COLUMNS, *ratios, "CPU µs Java/Java", "CPU µs ours/ours"]


def cells_of(row: Row) -> list[str]:
    return [
        row.name,
        row.unit,
        *(number(row.cells[p].value, row.unit) if p in row.cells else "" for p in COLUMNS),
        _ratio(row.ratio()),
        _verdicts(row.verdicts()),
        _ratio(row.ratio("ours/Java")),
        _verdicts(row.client_verdicts()),
        cost(row, "Java/Java"),
        cost(row, "ours/ours"),
    ]


def line(cells: Sequence[str]) -> str:
    widths = (40, 12, *[10] * len(COLUMNS), 6, 10, 15, 9, 17, 17)
    first, *others = zip(cells, widths, strict=True)
    return first[0].ljust(first[1]) + "".join(f" {cell:>{width}}" for cell, width in others)


def _point(*lines: str) -> str:
    return fill(f"- {' '.join(lines)}", WIDTH, subsequent_indent="  ")


def _where(run: Run) -> Iterator[str]:
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    kafka = f"Kafka {run.kafka} with {CLIENT} {CLIENT_VERSION}" if run.kafka else "no Kafka"
    yield _point(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, RocketMQ {run.version}, {kafka}, {machine()};",
        f"ours: {description}, {loop_description()}; stores on {file_system(run.home)}; load",
        f"average at the end {load}",
    )
    yield _point(
        f"Java's servers: its defaults (asynchronous flush), heaps of {HEAP['broker']}",
        f"(broker) and {HEAP['namesrv']} (name server), no pre-touching; Java's client: a",
        f"heap of {HEAP['client']}; both log nothing. Ours: `pocketmq up --data`, with",
        "`--log-level error`",
    )
    yield _point(
        "pure: our client at our servers, both with `POCKETMQ_PURE=1`. Kafka: one broker with its",
        f"own controller, defaults, a heap of {HEAP['broker']}; topics of {QUEUES} partitions, and",
        "a client with its defaults but for `acks=1`",
    )
    yield _point(
        "while one pair is measured, the processes of the others are stopped (SIGSTOP): an",
        "idle Java broker wakes up often enough to slow down another measurement. Before, all that",
        "was written so far is brought to disk (sync), so that it is not written meanwhile",
    )


def _clients() -> Iterator[str]:
    yield _point(
        "Java's client sends with `DefaultMQProducer` (synchronous, with callbacks, lists) and",
        "consumes with `DefaultMQPushConsumer`; ours sends with the blocking `Producer`, 64 in",
        "flight with asyncio's and as many coroutines, and consumes with asyncio's",
        "`PushConsumer`, in the rebalances with the blocking one; the loop is the one that",
        "blocking clients and servers choose, uvloop where it is installed",
    )
    yield _point(
        "submit: from one thread, batches are the client's business. Ours: the blocking",
        "`Producer.submit`, every receipt looked at. Java's: a producer with `autoBatch` and its",
        "defaults, callbacks, at most 32768 messages in flight. Kafka's: `produce` with callbacks",
    )
    yield _point(
        "POP: a call that receives, a call that acknowledges, each waited for. Ours: the blocking",
        "`PopConsumer`. Java's: `popMessageAsync`, then `ackMessageAsync` for one message and",
        "`batchAckMessageAsync` for several, the calls its client has for it; its push consumer",
        "acknowledges one by one in the background. New groups read the same backlog each time",
    )
    yield _point(
        "transactions: the half message and its commit, a one-way request in both. Delayed:",
        f"level {DELAY_LEVEL}, two hours, so that nothing is delivered meanwhile. ACL-signed: ACL",
        "2.0, a user that may send to this one topic. TLS: certificates verified by the clients;",
        "Java's TLS is the JDK's",
    )


def _rounds(scale: Scale) -> Iterator[str]:
    large = ", ".join(f"`{name}={value}`" for name, value in LARGE_PULLS.items())
    yield _point(
        f"sends of all kinds: medians of {scale.rounds} rounds of {scale.seconds:g} s, after",
        f"warm-up rounds until they get no faster, at most {scale.warm}; POP: after",
        f"{min(scale.warm, 3)}",
    )
    yield _point(
        f"consume: a backlog of {scale.backlog} messages, medians of {scale.rounds} rounds",
        "after one warm-up, measured after the first eighth. Defaults: of brokers and clients;",
        "ours pulls up to 512 messages at once while many wait, Java's 32; Kafka's: `poll`, a",
        "message a call. Batches of 1024: pulled and handled 1024 at a time, caches of 16 batches",
        f"per queue in both clients, {large} in both brokers; Kafka's: `consume(1024)`",
    )
    yield _point(
        f"live latency: {RATE} messages per second, from just before the send to the handler,",
        f"{scale.live} messages after {scale.lead} for warm-up; medians of {scale.live_rounds}",
        "rounds after one warm-up",
    )
    yield _point(
        "start: from the start of both processes to the first stored message, the median of",
        f"{scale.starts}; idle: with that message stored, {scale.idle:g} s after as many; memory:",
        "of name server and broker after all measurements above it, one reading, shared pages",
        "counted in proportion",
    )
    yield _point(
        "rebalance: two members, then a third joins, one leaves, one is killed, at",
        f"{STEADY} messages per second; pause is the longest time in which a queue's messages",
        f"were not delivered; mean of {scale.drills} runs",
    )


def missed_points(rows: Sequence[Row], reasons: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each row that misses a goal: by how much, and where the time is spent."""
    for row in rows:
        if not (missed := row.missed()):
            continue
        words = [f"{row.name}: {', '.join(missed)} missed"]
        if row.goals.value is not None and "ours/ours" in row.cells:
            words.append(f"reached {number(row.cells['ours/ours'].value, row.unit)} {row.unit}")
        if ratio := row.ratio():
            words.append(f"reached {ratio:.2f} ×")
        if kafka := row.ratio(over="Kafka"):
            words.append(f"{kafka:.2f} × Kafka")
        if client := row.ratio("ours/Java"):
            words.append(f"ours/Java {client:.2f} ×")
        theirs, ours = cost(row, "Java/Java"), cost(row, "ours/ours")
        if theirs and ours:
            words.append(f"CPU µs, client + servers: ours {ours}, Java's {theirs}")
        if row.name in reasons:
            words.append(reasons[row.name])
        yield _point("; ".join(words))


def page(rows: Sequence[Row], run: Run) -> str:
    """Return the page of documentation."""
    right = ["---:"] * len(COLUMNS)
    marks = ["---"] * 2 + right + ["---:", "---"] * 2 + ["---:"] * 2
    table = [heads(), marks, *map(cells_of, rows)]
    text = "\n".join("| " + " | ".join(cells) + " |" for cells in table)
    intro = (
        f'`make bench-java ARGS="--markdown {PAGE}"` measures this: Java\'s '
        "client and ours, each on Java's servers and on ours, in one run, alternating. Columns "
        "are client/servers; the ratio is ours/ours divided by Java/Java, the one after it "
        "ours/Java divided by Java/Java: our client at Java's servers. For milliseconds, "
        "megabytes, seconds, percents and duplicates, less is better. A goal is our target for "
        "the ratio left of it, or for ours/ours where it has a unit. "
        f"Bodies have 100 bytes, topics {QUEUES} queues. CPU is processor time per message, client "
        "+ servers."
    )
    missed = list(missed_points(rows, known_reasons())) or ["- none"]
    parts = [
        "# Performance compared with Apache RocketMQ",
        fill(intro, WIDTH, break_on_hyphens=False),
        "\n".join([*_where(run), *_clients(), *_rounds(run.scale)]),
        text,
        "## Goals that were missed",
        "\n".join(missed),
    ]
    return "\n\n".join(parts) + "\n"


def write_page(path: Path, rows: Sequence[Row], told: Sequence[Told], run: Run) -> None:
    """Write the page; what was not measured now, of its two parts, stays as it is there."""
    old = path.read_text() if path.exists() else ""
    text = page(rows, run) if rows or not old else old
    if told:
        path.write_text(with_section(text, section(told, run.version)))
    else:
        _, title, kept = old.partition(TITLE)
        path.write_text(with_section(text, title + kept.rstrip()) if title else text)
