"""A local session's start, reads and streams, by forks of the warm Python and by fresh processes.

python -m benchmarks.spark_start

Each session is a program of its own, in turns; a row's figure is the least of three. Seconds are
those of a step, CPU those of Spark's JVM and Python processes meanwhile. What the warm Python
imports counts in the start, and in the first read as far as it is not finished by then.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks._spark_cpu import spark_cpu
from benchmarks.spark import cluster, fill
from pocketmq.spark import spark_session
from pocketmq.spark.engine import java_process, stop_session
from pocketmq.spark.warm_python import OFF, WARM

ROUNDS = 3
ROWS = 1000
KINDS = ("forks", "fresh")
STEPS = ("start", "first read", "second read", "first stream", "second stream")


def session(kind: str, address: str) -> None:
    """Run the steps in a session, and print what each took."""
    if kind == "fresh":
        os.environ[WARM] = OFF
    began = time.monotonic()
    spark = spark_session()
    java = java_process(spark)
    print(time.monotonic() - began, spark_cpu(java), flush=True)
    options = {"nameServer": address, "subscribe": "orders", "startingOffsets": "earliest"}

    def read() -> None:
        assert spark.read.format("rocketmq").options(**options).load().count() == ROWS

    def stream() -> None:
        with tempfile.TemporaryDirectory() as checkpoint:
            frame = spark.readStream.format("rocketmq").options(**options).load()
            writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()

    works: list[Callable[[], None]] = [read, read, stream, stream]
    for work in works:
        began, used = time.monotonic(), spark_cpu(java)
        work()
        print(time.monotonic() - began, spark_cpu(java) - used, flush=True)
    stop_session(spark)


def measure(kind: str, address: str) -> list[list[float]]:
    """Return seconds and CPU seconds of each step."""
    command = [sys.executable, "-m", "benchmarks.spark_start", kind, address]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def main() -> None:
    found: dict[str, list[list[list[float]]]] = {kind: [] for kind in KINDS}
    with cluster() as (address, _):
        fill(address, ROWS, 100)
        for _ in range(ROUNDS):
            for kind in KINDS:
                found[kind].append(measure(kind, address))
    print(f"{'':16}{'forks, s':>12}{'CPU s':>8}{'fresh, s':>12}{'CPU s':>8}{'ratio':>8}{'CPU':>8}")
    for at, step in enumerate(STEPS):
        best = [[min(one[at][n] for one in found[kind]) for n in (0, 1)] for kind in KINDS]
        cells = "".join(f"{wall:12.2f}{used:8.2f}" for wall, used in best)
        ratios = "".join(f"{ours / theirs:8.2f}" for ours, theirs in zip(*best, strict=True))
        print(f"{step:16}{cells}{ratios}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        session(sys.argv[1], sys.argv[2])
    else:
        main()
