"""What blocking clients cost: CPU of the client's process for each message of 100 bytes.

python -m benchmarks.blocking [seconds for each row]

The cluster is a child process. Beside each row stands what the same number of bytes cost on a bare
socket: the frames are made before, and of the answers only their lengths are looked at.
"""

import asyncio
import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from benchmarks.producer import BODY, ROUNDS, TOPIC, bare, cluster, frames
from pocketmq import ConsumeFromWhere, Message, Producer, PullConsumer, SendReceipt

Story = Callable[[Producer, float], int]


def one_at_a_time(producer: Producer, until: float) -> int:
    done = 0
    while time.perf_counter() < until:
        for _ in range(8):
            producer.send(Message(TOPIC, BODY))
        done += 8
    return done


def threads(count: int) -> Story:
    """As many threads, each with one message at a time."""

    def run(producer: Producer, until: float) -> int:
        counts: list[int] = []
        workers = [
            threading.Thread(target=lambda: counts.append(one_at_a_time(producer, until)))
            for _ in range(count)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(counts)

    return run


def submitter(depth: int) -> Story:
    """Keep `depth` messages under way; the oldest is waited for before the next is submitted."""

    def run(producer: Producer, until: float) -> int:
        waiting: deque[Future[SendReceipt]] = deque()
        done = 0
        while time.perf_counter() < until:
            for _ in range(depth):
                if len(waiting) >= depth:
                    waiting.popleft().result()
                waiting.append(producer.submit(Message(TOPIC, BODY)))
            done += depth
        for future in waiting:
            future.result()
        return done

    return run


def in_windows(depth: int) -> Story:
    """Submit without looking back; the window of `depth` holds the caller up."""

    def run(producer: Producer, until: float) -> int:
        done = 0
        last: Future[SendReceipt] | None = None
        while time.perf_counter() < until:
            for _ in range(depth):
                last = producer.submit(Message(TOPIC, BODY))
            done += depth
        if last is not None:
            last.result()
        return done

    return run


def batcher(size: int) -> Story:
    def run(producer: Producer, until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            producer.send_batch([Message(TOPIC, BODY) for _ in range(size)])
            done += size
        return done

    return run


def measure(address: str, story: Story, seconds: float, window: int) -> tuple[float, float]:
    """Return messages a second and the least CPU µs for one."""
    with Producer(address, group="bench", send_timeout=30.0, window=window) as producer:
        story(producer, time.perf_counter() + seconds / 4)
        rates, costs = [], []
        for _ in range(ROUNDS):
            gc.collect()
            cpu, started = time.process_time(), time.perf_counter()
            done = story(producer, started + seconds)
            costs.append((time.process_time() - cpu) / done * 1e6)
            rates.append(done / (time.perf_counter() - started))
    return max(rates), min(costs)


def read(address: str, seconds: float) -> tuple[float, float]:
    """Iterate over what was sent; messages a second and the least CPU µs for one."""
    rates, costs = [], []
    with PullConsumer(
        address,
        group="bench",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        pull_batch=256,
    ).subscribe(TOPIC) as consumer:
        next(consumer)
        for _ in range(ROUNDS):
            cpu, started, done = time.process_time(), time.perf_counter(), 0
            while done < 5_000 and time.perf_counter() < started + seconds:
                next(consumer)
                done += 1
            costs.append((time.process_time() - cpu) / done * 1e6)
            rates.append(done / (time.perf_counter() - started))
    return max(rates), min(costs)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rows = (
        ("send, one at a time", one_at_a_time, 1, 1, 45.0),
        ("send, 8 threads", threads(8), 1, 1, None),
        ("submit, 64 under way", submitter(64), 64, 1, 18.0),
        ("submit, window of 64", in_windows(64), 64, 1, 18.0),
        ("batches of 32", batcher(32), 1, 32, 3.0),
        ("batches of 256", batcher(256), 1, 256, 1.5),
    )
    with cluster() as address:
        print(f"{'':26}{'messages/s':>12}{'CPU µs':>9}{'at most':>9}{'bare µs':>9}{'× bare':>8}")
        for name, story, depth, each, most in rows:
            broker, frame = asyncio.run(frames(address, each))
            plain = bare(broker, frame, depth, each, seconds / 3)
            rate, cost = measure(address, story, seconds, 64)
            bar = f"{most:9.2f}" if most is not None else " " * 9
            print(f"{name:26}{rate:12,.0f}{cost:9.2f}{bar}{plain:9.2f}{cost / plain:8.2f}")
        rate, cost = read(address, seconds)
        print(f"{'iterate, pulls of 256':26}{rate:12,.0f}{cost:9.2f}")


if __name__ == "__main__":
    main()
