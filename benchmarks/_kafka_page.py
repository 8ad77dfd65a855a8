"""The measured part of a page: a table between two marks, which a run of the benchmark replaces."""

import platform
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._kafka_pair import Pair

START, END = "<!-- measured -->", "<!-- /measured -->"


def table(pair: Pair, rows: int, seconds: float) -> str:
    """Return what was measured as Markdown."""
    today = datetime.now(UTC).date().isoformat()
    spark = f"Spark {pair.bench.spark.version}"
    head = (
        f"{rows:,} rows of 100 B, `local[2]`, {platform.machine()}, {spark}, {today}; the run took "
        f"{seconds / 60:.0f} minutes. k rows per CPU second of Spark and broker; in parentheses k "
        "rows per second."
    )
    lines = [head, ""]
    if pair.compared:
        lines += ["| | PocketMQ | Kafka | ratio | goal |", "|---|---|---|---|---|"]
        for row in pair.compared:
            met = "" if row.ratio >= row.goal else ", missed"
            lines.append(
                f"| {row.name} | {row.ours.cpu / 1e3:,.0f} ({row.ours.wall / 1e3:,.0f}) | "
                f"{row.kafka.cpu / 1e3:,.0f} ({row.kafka.wall / 1e3:,.0f}) | {row.ratio:.2f} | "
                f"{row.goal:g}{met} |"
            )
        lines.append("")
    if pair.once:
        lines += ["| one micro-batch | k rows per second |", "|---|---|"]
        lines += [f"| {name} | {rate / 1e3:,.0f} |" for name, rate in pair.once]
        lines.append("")
    if pair.live:
        lines += ["| small micro-batches | ms | CPU ms of Spark |", "|---|---|---|"]
        lines += [f"| {name} | {took:,.0f} | {spent:,.0f} |" for name, took, spent in pair.live]
        lines.append("")
    return "\n".join(lines)


def write_table(page: Path, text: str) -> None:
    """Replace what is between the marks of a page. Raises ValueError if it has none."""
    whole = page.read_text("utf-8")
    before, found, rest = whole.partition(START)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"{page} does not have {START} and {END}")
    page.write_text(f"{before}{START}\n{text.strip()}\n{END}{after}", "utf-8")
