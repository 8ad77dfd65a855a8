"""What a message costs the consumer's process: out of a backlog, to a handler.

The cluster runs in a process of its own. Cost is the processor time of this process, all threads
together, for each message from the pull to the noted offset; beside it stands what it takes to
pull the same messages over a plain socket and find them in the answers. Then how long a message
takes from a producer in another process to a handler, at 200 a second.

python -m benchmarks.consumer
"""

import asyncio
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._paths import note
from benchmarks.broker import QUEUES, Client, pull_frame, send_frames
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.model import ConsumeFromWhere, Message
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.pulled import decode_pulled

BACKLOG = 160_000
ROUNDS = 3
WARM = BACKLOG // 8
"""Messages handled before the clock starts."""
SETTINGS = ["maxTransferCountOnMessageInMemory=1024", "maxTransferBytesOnMessageInMemory=1048576"]
"""Brokers give 32 messages a pull at most unless told otherwise."""
RATE = 200
LIVE = 1200
LEAD = 2 * RATE
"""Messages sent before those that count: queues are first pulled half a second after they were
assigned, as Java's 5.x clients do it."""
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@contextmanager
def cluster() -> Iterator[tuple[str, int]]:
    """A cluster in a child process: the name server's address, the broker's port."""
    command = [sys.executable, "-m", "benchmarks._cluster_process", *SETTINGS]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        _, names, broker = child.stdout.readline().split()
        yield names, int(broker.rpartition(":")[2])
    finally:
        child.terminate()
        child.wait(30)


def fill(port: int) -> None:
    """Send the backlog."""
    client, frames = Client(port), send_frames(256)
    for _ in range(-(-BACKLOG // (256 * QUEUES))):
        for frame in frames:
            assert client.ask(frame).code == 0
    client.socket.close()


def raw(port: int, count: int) -> float:
    """Pull and decode without a client; give CPU µs a message."""
    costs = []
    for queue in range(ROUNDS):
        client, offset, cpu = Client(port), 0, time.process_time()
        while (answer := client.ask(pull_frame(queue, offset, count))).code == 0:
            for message in decode_pulled(answer.body, DeliveryContext()):
                assert message.body_size == 100
            offset = int(answer.ext["nextBeginOffset"])
        costs.append((time.process_time() - cpu) / offset * 1e6)
        client.socket.close()
    return min(costs)


class Count:
    """Handlers that only count, and the processor time while they did."""

    def __init__(self) -> None:
        self.seen = 0
        self.cpu = self.wall = 0.0
        self.done = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def one(self, message: object) -> None:  # noqa: ARG002 - a handler
        self.seen += 1
        if self.seen == WARM:
            self.cpu, self.wall = -time.process_time(), -time.perf_counter()
        elif self.seen == BACKLOG:
            self._end()

    async def one_async(self, message: object) -> None:
        self.one(message)

    def many(self, messages: list[object]) -> None:
        before = self.seen
        self.seen += len(messages)
        if before < WARM <= self.seen:
            self.cpu, self.wall = -time.process_time(), -time.perf_counter()
        elif before < BACKLOG <= self.seen:
            self._end()

    async def many_async(self, messages: list[object]) -> None:
        self.many(messages)

    def _end(self) -> None:
        self.cpu += time.process_time()
        self.wall += time.perf_counter()
        self._loop.call_soon_threadsafe(self.done.set)


async def consume(
    names: str, group: str, choose: Callable[[Count], Any], **settings: Any
) -> tuple[float, float]:
    """Return messages a second, and CPU µs a message."""
    count = Count()
    consumer = PushConsumer(names, group=group, consume_from=FIRST, **settings)
    consumer.subscribe("orders", "*", choose(count))
    async with consumer:
        async with asyncio.timeout(120):
            await count.done.wait()
    handled = BACKLOG - WARM
    return handled / count.wall, count.cpu / handled * 1e6


def backlog(names: str, port: int) -> None:
    plain = {count: raw(port, count) for count in (32, 256)}
    print(f"{'':34}{'messages/s':>12}{'CPU µs':>9}{'target':>9}{'× raw':>9}", flush=True)
    rows: list[tuple[str, Callable[[Count], Any], int, float]] = [
        ("one message a call, def", lambda count: count.one, 1, 7.0),
        ("one message a call, async def", lambda count: count.one_async, 1, 7.0),
        ("batches of 256, def", lambda count: count.many, 256, 2.5),
        ("batches of 256, async def", lambda count: count.many_async, 256, 2.5),
    ]
    for number, (name, choose, batch, target) in enumerate(rows):
        settings = {"handler_batch": batch, "pull_batch": max(batch, 32)}
        results = [
            asyncio.run(consume(names, f"g{number}_{turn}", choose, **settings))
            for turn in range(ROUNDS)
        ]
        rate, cost = max(rate for rate, _ in results), min(cost for _, cost in results)
        times = cost / plain[settings["pull_batch"]]
        print(f"{name:34}{rate:12,.0f}{cost:9.2f}{target:9.2f}{times:9.2f}", flush=True)
        note(name, cost)


async def live(names: str) -> tuple[float, float]:
    """Return the median and the 99th percentile of the way to a handler, in ms."""
    taken: list[float] = []
    enough = asyncio.Event()

    async def handler(message: ReceivedMessage) -> None:
        (sent,) = struct.unpack(">d", message.body[:8])
        if not sent:
            return
        taken.append((time.time() - sent) * 1e3)
        if len(taken) == LIVE:
            enough.set()

    assigned = asyncio.Event()
    consumer = PushConsumer(names, group="live")
    consumer.on_assigned(lambda _: assigned.set())
    consumer.subscribe("live", "*", handler)
    async with consumer:
        async with asyncio.timeout(30):
            await assigned.wait()
        command = [sys.executable, "-m", "benchmarks.consumer", "send", names]
        child = await asyncio.create_subprocess_exec(*command)
        async with asyncio.timeout(60):
            await enough.wait()
        await child.wait()
    taken.sort()
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100]


async def send_live(names: str) -> None:
    """Send at a steady rate; each message that counts says when it was sent."""
    loop = asyncio.get_running_loop()
    async with Producer(names, group="senders") as producer:
        await producer.queues("live")
        start = loop.time()
        for number in range(LEAD + LIVE):
            await asyncio.sleep(start + number / RATE - loop.time())
            moment = 0.0 if number < LEAD else time.time()
            await producer.send(Message("live", struct.pack(">d", moment) + b"x" * 92))


def main() -> None:
    if sys.argv[1:2] == ["send"]:
        asyncio.run(send_live(sys.argv[2]))
        return
    os.environ.setdefault("PYTHONHASHSEED", "0")
    with cluster() as (names, port):
        fill(port)
        backlog(names, port)
        middle, late = asyncio.run(live(names))
        print(f"{f'live, {RATE} messages/s':34}{'p50 ms':>12}{middle:9.2f}{1.0:9.2f}")
        print(f"{'':34}{'p99 ms':>12}{late:9.2f}{5.0:9.2f}", flush=True)


if __name__ == "__main__":
    main()
