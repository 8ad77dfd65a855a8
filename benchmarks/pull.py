"""What a message costs the process of a pull consumer: out of a backlog, polled or iterated over.

The cluster runs in a process of its own. Cost is the processor time of this process for each
message; beside it stands what it takes to pull the same messages over a plain socket and find them
in the answers.

python -m benchmarks.pull
"""

import asyncio
import time
from typing import Any

from benchmarks.consumer import BACKLOG, FIRST, ROUNDS, WARM, cluster, fill, raw
from pocketmq.client.pull import PullConsumer


async def poll(names: str, group: str, **settings: Any) -> tuple[float, float]:
    """Poll the backlog; give messages a second, and CPU µs a message."""
    async with PullConsumer(names, group=group, consume_from=FIRST, **settings) as consumer:
        consumer.subscribe("orders")
        seen = 0
        while seen < WARM:
            seen += len(await consumer.poll(10))
        first, cpu, wall = seen, time.process_time(), time.perf_counter()
        while seen < BACKLOG:
            seen += len(await consumer.poll(10))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return (seen - first) / wall, cpu / (seen - first) * 1e6


async def iterate(names: str, group: str, **settings: Any) -> tuple[float, float]:
    """Iterate over the backlog; the same figures."""
    async with PullConsumer(names, group=group, consume_from=FIRST, **settings) as consumer:
        consumer.subscribe("orders")
        seen, cpu, wall = 0, 0.0, 0.0
        async for _ in consumer:
            seen += 1
            if seen == WARM:
                cpu, wall = time.process_time(), time.perf_counter()
            elif seen == BACKLOG:
                break
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return (seen - WARM) / wall, cpu / (seen - WARM) * 1e6


def main() -> None:
    with cluster() as (names, port):
        fill(port)
        print(f"{'':34}{'messages/s':>12}{'CPU µs':>9}{'× raw':>9}", flush=True)
        rows = [
            ("poll, pulls of 10", poll, 10),
            ("poll, pulls of 32", poll, 32),
            ("poll, pulls of 256", poll, 256),
            ("async for, pulls of 32", iterate, 32),
            ("async for, pulls of 256", iterate, 256),
        ]
        plain = {count: raw(port, count) for count in (10, 32, 256)}
        for number, (name, way, count) in enumerate(rows):
            results = [
                asyncio.run(way(names, f"p{number}_{turn}", pull_batch=count))
                for turn in range(ROUNDS)
            ]
            rate, cost = max(rate for rate, _ in results), min(cost for _, cost in results)
            print(f"{name:34}{rate:12,.0f}{cost:9.2f}{cost / plain[count]:9.2f}", flush=True)


if __name__ == "__main__":
    main()
