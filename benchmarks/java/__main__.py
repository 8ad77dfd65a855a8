"""Side by side with Apache RocketMQ, in one run: `make bench-java`.

python -m benchmarks.java [--quick] [--only WORD …] [--markdown FILE]

`POCKETMQ_JAVA` names the directory of a release's jars; `tools/interop_jars.py` fetches them.
"""

import argparse
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.java import balance, group_section, measures
from benchmarks.java.kafka import kafka_pair
from benchmarks.java.kafka_parts import KafkaParts, NoKafkaError, find_kafka
from benchmarks.java.page import Run, cells_of, heads, line, write_page
from benchmarks.java.pairs import Pair, four_pairs, pure_pair
from benchmarks.java.rebalance import rebalance_rows
from benchmarks.java.rows import Row
from benchmarks.java.scale import Scale
from benchmarks.java.servers import Java
from benchmarks.java.starting import idle_rows, start_row
from benchmarks.rebalance import Told

WITH_MORE = ("send", "submit", "backlog")
"""Of these there are columns without the native core, and of the last two with Kafka."""
TOGETHER = (*WITH_MORE, "pop", "special", "latency", "memory", "rebalance")
PARTS = (*TOGETHER, "flush", "guarded", "start", "balance")


def rows(
    java: Java, home: Path, scale: Scale, parts: set[str], kafka: KafkaParts | None
) -> Iterator[Row]:
    if parts & set(TOGETHER):
        with four_pairs(java, home) as pairs:
            yield from _with_more(pairs, home, scale, parts, kafka)
            if "pop" in parts:
                yield from measures.pop_rows(pairs, scale)
            if "special" in parts:
                yield from measures.special_rows(pairs, scale)
            if "latency" in parts:
                yield from measures.latency_rows(pairs, scale)
            if "memory" in parts:
                yield from measures.memory_rows(pairs)
            if "rebalance" in parts:
                yield from rebalance_rows(pairs, scale)
    if "flush" in parts:
        with four_pairs(java, home, flushDiskType="SYNC_FLUSH") as pairs:
            yield from measures.flush_rows(pairs, scale)
    if "guarded" in parts:
        yield from measures.guarded_rows(java, home, scale)
    if "start" in parts:
        yield from start_row(java, home, scale)
        yield from idle_rows(java, home, scale)


def _with_more(
    pairs: list[Pair], home: Path, scale: Scale, parts: set[str], kafka: KafkaParts | None
) -> Iterator[Row]:
    """Measure what has columns of its own; those who fill them end with it."""
    with ExitStack() as stack:
        ours = list(pairs)
        if parts & set(WITH_MORE):
            ours.append(stack.enter_context(pure_pair(home)))
        everything = list(ours)
        if kafka is not None and parts & {"submit", "backlog"}:
            everything.append(stack.enter_context(kafka_pair(kafka, home)))
        if "send" in parts:
            yield from measures.send_rows(ours, scale)
        if "submit" in parts:
            yield from measures.submit_row(everything, scale)
        if parts & {"backlog", "pop"}:
            measures.fill_backlog(everything, scale.backlog)
        if "backlog" in parts:
            yield from measures.backlog_rows(everything, scale)


def _kafka(parts: set[str]) -> KafkaParts | None:
    """Return where Kafka is; says in one line why it is left out."""
    if not parts & {"submit", "backlog"}:
        return None
    try:
        return find_kafka()
    except NoKafkaError as missing:
        print(f"bench-java: Kafka is not measured: {missing}", file=sys.stderr)
        return None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # servers shall not outlive it
        signal.signal(number, _interrupt)
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())
    parser = argparse.ArgumentParser(prog="make bench-java ARGS=…")
    parser.add_argument("--quick", action="store_true", help="show that it works, in a minute")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of Java's broker; only with --quick, for which it may leave its defaults",
    )  # fmt: skip
    parser.add_argument("--only", nargs="*", choices=PARTS, help="these parts")
    parser.add_argument("--rounds", type=int, help="rounds of each")
    parser.add_argument("--group-rounds", type=int, help="rounds of changes of each group")
    parser.add_argument("--markdown", type=Path, help="write the table as a page")
    chosen = parser.parse_args()
    if chosen.set and not chosen.quick:
        parser.error("--set needs --quick: what is measured are the defaults")
    directory = os.environ.get("POCKETMQ_JAVA")
    if not directory or not list(Path(directory).glob("rocketmq-broker-*.jar")):
        print("bench-java: POCKETMQ_JAVA names no directory of RocketMQ's jars", file=sys.stderr)
        return 2
    scale = Scale.quick() if chosen.quick else Scale()
    if chosen.rounds:
        scale = scale._replace(rounds=chosen.rounds)
    if chosen.group_rounds:
        scale = scale._replace(group_rounds=chosen.group_rounds)
    parts = set(chosen.only or PARTS)
    found: list[Row] = []
    told: list[Told] = []
    kafka = _kafka(parts)
    with tempfile.TemporaryDirectory() as home:
        settings = dict(each.split("=", 1) for each in chosen.set)
        java = Java(Path(directory), Path(home), settings)
        try:
            if parts != {"balance"}:
                print(line(heads()), flush=True)
            for row in rows(java, Path(home), scale, parts, kafka):
                found.append(row)
                print(line(cells_of(row)), flush=True)
            if "balance" in parts:
                print(group_section.line(balance.HEAD), flush=True)
                for each in balance.stories(java, Path(home), scale):
                    told.append(each)
                    print(group_section.lines(each), flush=True)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            return 130
        if chosen.markdown:
            run = Run(java.version, kafka.version if kafka else None, scale, Path(home))
            write_page(chosen.markdown, found, told, run)
    behind = [f"{row.name}: {goal}" for row in found for goal in row.missed()]
    behind += balance.missed(told)
    print(f"goals missed: {'; '.join(behind) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
