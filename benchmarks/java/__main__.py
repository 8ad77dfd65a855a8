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
from pathlib import Path

from benchmarks.java import balance, group_section, measures
from benchmarks.java.page import cells_of, heads, line, write_page
from benchmarks.java.rebalance import rebalance_rows
from benchmarks.java.servers import Java
from benchmarks.java.starting import start_row
from benchmarks.rebalance import Told

PARTS = ("send", "backlog", "latency", "memory", "rebalance", "flush", "start", "balance")


def rows(java: Java, home: Path, scale: measures.Scale, parts: set[str]) -> Iterator[measures.Row]:
    if parts & {"send", "backlog", "latency", "memory", "rebalance"}:
        with measures.four_pairs(java, home) as pairs:
            if "send" in parts:
                yield from measures.send_rows(pairs, scale)
            if "backlog" in parts:
                yield from measures.backlog_rows(pairs, scale)
            if "latency" in parts:
                yield from measures.latency_rows(pairs, scale)
            if "memory" in parts:
                yield from measures.memory_rows(pairs)
            if "rebalance" in parts:
                yield from rebalance_rows(pairs, scale)
    if "flush" in parts:
        with measures.four_pairs(java, home, flushDiskType="SYNC_FLUSH") as pairs:
            yield from measures.flush_rows(pairs, scale)
    if "start" in parts:
        yield from start_row(java, home, scale)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # servers shall not outlive it
        signal.signal(number, _interrupt)
    logging.getLogger("pocketmq").addHandler(logging.NullHandler())
    parser = argparse.ArgumentParser(prog="make bench-java ARGS=…")
    parser.add_argument("--quick", action="store_true", help="show that it works, in a minute")
    parser.add_argument("--only", nargs="*", choices=PARTS, help="these parts")
    parser.add_argument("--rounds", type=int, help="rounds of each")
    parser.add_argument("--group-rounds", type=int, help="rounds of changes of each group")
    parser.add_argument("--markdown", type=Path, help="write the table as a page")
    chosen = parser.parse_args()
    directory = os.environ.get("POCKETMQ_JAVA")
    if not directory or not list(Path(directory).glob("rocketmq-broker-*.jar")):
        print("bench-java: POCKETMQ_JAVA names no directory of RocketMQ's jars", file=sys.stderr)
        return 2
    scale = measures.Scale.quick() if chosen.quick else measures.Scale()
    if chosen.rounds:
        scale = scale._replace(rounds=chosen.rounds)
    if chosen.group_rounds:
        scale = scale._replace(group_rounds=chosen.group_rounds)
    parts = set(chosen.only or PARTS)
    found: list[measures.Row] = []
    told: list[Told] = []
    with tempfile.TemporaryDirectory() as home:
        java = Java(Path(directory), Path(home))
        try:
            if parts != {"balance"}:
                print(line(heads()), flush=True)
            for row in rows(java, Path(home), scale, parts):
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
            write_page(chosen.markdown, found, told, java.version, scale, Path(home))
    behind = [row.name for row in found if row.reached() is False]
    behind += balance.missed(told)
    print(f"goals missed: {', '.join(behind) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
