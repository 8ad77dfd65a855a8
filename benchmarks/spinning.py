"""What spinning gives and costs: a client that waits for each response, with it and without it.

python -m benchmarks.spinning [seconds for each row]

The cluster is a child process. CPU is that of client and servers, for each message; the fastest of
three rounds counts.
"""

import os
import sys
import time

from benchmarks._spark_cpu import tree_cpu
from benchmarks.blocking import Story, batcher, one_at_a_time
from benchmarks.producer import cluster
from pocketmq import Producer
from pocketmq.net.spinning import SWITCH

ROUNDS = 3
ROWS: tuple[tuple[str, Story], ...] = (
    ("send, one at a time", one_at_a_time),
    ("batches of 32", batcher(32)),
    ("batches of 256", batcher(256)),
)


def measure(story: Story, seconds: float) -> tuple[float, float]:
    """Return messages per second and CPU µs per message, of a new cluster and a new client."""
    with cluster() as address, Producer(address, group="bench") as producer:
        story(producer, time.perf_counter() + seconds / 2)
        cpu, started = tree_cpu(os.getpid()), time.perf_counter()
        done = story(producer, started + seconds)
        rate = done / (time.perf_counter() - started)
        return rate, (tree_cpu(os.getpid()) - cpu) / done * 1e6


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    print(f"{'':22}{'spinning/s':>12}{'CPU µs':>9}{'sleeping/s':>12}{'CPU µs':>9}{'ratio':>7}")
    for name, story in ROWS:
        best = {}
        for mode in ("on", "off"):
            os.environ[SWITCH] = mode
            measured = [measure(story, seconds) for _ in range(ROUNDS)]
            best[mode] = max(measured)
        (rate, cost), (plain, plain_cost) = best["on"], best["off"]
        rates = f"{rate:12,.0f}{cost:9.1f}{plain:12,.0f}{plain_cost:9.1f}"
        print(f"{name:22}{rates}{rate / plain:7.2f}")


if __name__ == "__main__":
    main()
