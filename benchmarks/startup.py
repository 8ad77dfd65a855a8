"""How soon `pocketmq up` takes its first message, and what it costs until then and when idle.

python -m benchmarks.startup

Times and processor seconds are the best of several starts, beside an empty Python program's. Memory
is what belongs to the processes alone (anonymous pages; those shared after a fork counted once).
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.server_process import POCKETMQ, ServerProcess, children_of
from tests.wire_client import WireClient

STARTS = 5
IDLE = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def own_memory(pid: int) -> float:
    """Megabytes of anonymous memory; of a shared page, each process has its share."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"Pss_Anon:\s+(\d+)", text) or re.search(r"Anonymous:\s+(\d+)", text)
    assert found is not None
    return int(found[1]) / 1024


def start(*options: str, idle: float = 0.0) -> tuple[float, float, float, float]:
    """Return seconds to the first accepted send, processor seconds, megabytes, idle percent."""
    began = time.monotonic()
    with ServerProcess("up", "--port", "0", *options) as cluster:
        with WireClient(cluster.brokers["broker-0"]) as client:
            client.send("orders", b"42 EUR")
        elapsed = time.monotonic() - began
        pids = [cluster.process.pid, *children_of(cluster.process.pid)]
        used = sum(map(processor_seconds, pids))
        time.sleep(idle)
        memory = sum(map(own_memory, pids))
        idle_used = sum(map(processor_seconds, pids)) - used
        cluster.stop()
    return elapsed, used, memory, 100 * idle_used / idle if idle else 0.0


def empty_program() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.monotonic() - began


def main() -> None:
    subprocess.run([POCKETMQ, "up", "--help"], check=True, stdout=subprocess.DEVNULL)
    print(f"{'cluster':<24}{'first send':>12}{'processor':>12}{'memory':>10}{'idle':>9}")
    plain = min(empty_program() for _ in range(STARTS))
    print(f"{'an empty program':<24}{plain:>10.3f} s")
    with TemporaryDirectory() as directory:
        for title, options in (
            ("1 broker, in memory", ()),
            ("1 broker, gRPC port", ("--grpc", "0")),
            ("1 broker, on disk", ("--data", directory)),
            ("4 brokers, in memory", ("--brokers", "4")),
        ):
            rounds = [start(*options) for _ in range(STARTS)]
            idle = start(*options, idle=IDLE)
            first, used = min(each[0] for each in rounds), min(each[1] for each in rounds)
            print(f"{title:<24}{first:>10.3f} s{used:>10.2f} s{idle[2]:>7.1f} MB{idle[3]:>7.2f} %")


if __name__ == "__main__":
    main()
