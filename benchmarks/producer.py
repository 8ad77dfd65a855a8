"""What sending costs the client: CPU of the producer's process for each message of 100 bytes.

python -m benchmarks.producer [seconds for each row]

The cluster is a child process. Beside each row stands what the same number of bytes cost on a bare
socket: the frames are made before, and of the answers only their lengths are looked at. Messages
are made anew for each send, as applications do.
"""

import asyncio
import gc
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

import pocketmq as mq
from benchmarks._paths import note
from pocketmq.client.producer.batches import prepare_batches
from pocketmq.client.producer.producer import Producer
from pocketmq.client.producer.requests import Outgoing
from pocketmq.model import Message, MessageQueue

BODY = b"x" * 100
TOPIC = "bench"
ROUNDS = 7

Story = Callable[[Producer, float], Awaitable[int]]


@contextmanager
def cluster() -> Iterator[str]:
    """A cluster of one broker, in memory; gives the name server's address."""
    command = [sys.executable, "-m", "pocketmq", "up", "--memory", "--port", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        found = [word for word in line.split() if word.startswith("namesrv=")]
        yield found[0].removeprefix("namesrv=")
    finally:
        child.terminate()
        child.wait(30)


def worker(depth: int) -> Story:
    """Keep `depth` callers of `send` busy."""

    async def run(producer: Producer, until: float) -> int:
        async def caller() -> int:
            done = 0
            while time.perf_counter() < until:
                for _ in range(8):
                    await producer.send(Message(TOPIC, BODY))
                done += 8
            return done

        return sum(await asyncio.gather(*[caller() for _ in range(depth)]))

    return run


def submitter(depth: int) -> Story:
    """Submit `depth` messages, wait for all, and again."""

    async def run(producer: Producer, until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            await asyncio.gather(*[producer.submit(Message(TOPIC, BODY)) for _ in range(depth)])
            done += depth
        return done

    return run


def batcher(size: int) -> Story:
    """Send batches, four callers at once."""

    async def run(producer: Producer, until: float) -> int:
        async def caller() -> int:
            done = 0
            while time.perf_counter() < until:
                await producer.send_batch([Message(TOPIC, BODY) for _ in range(size)])
                done += size
            return done

        return sum(await asyncio.gather(*[caller() for _ in range(4)]))

    return run


async def measure(address: str, story: Story, seconds: float) -> tuple[float, float]:
    """Return messages a second and the least CPU µs for one."""
    async with Producer(address, group="bench", send_timeout=30.0) as producer:
        await story(producer, time.perf_counter() + seconds / 4)
        rates, costs = [], []
        for _ in range(ROUNDS):
            gc.collect()
            cpu, started = time.process_time(), time.perf_counter()
            done = await story(producer, started + seconds)
            costs.append((time.process_time() - cpu) / done * 1e6)
            rates.append(done / (time.perf_counter() - started))
        return max(rates), min(costs)


async def frames(address: str, size: int) -> tuple[str, bytes]:
    """Return the broker's address, and a request as our producer writes it."""
    async with Producer(address, group="bench") as producer:
        receipt = await producer.send(Message(TOPIC, BODY))
        sending = producer.sending
        made: Outgoing
        if size > 1:
            messages = [Message(TOPIC, BODY)] * size
            made = prepare_batches(sending.preparing, messages, 1 << 22, split=False)[0]
        else:
            made = sending.preparing.prepare(Message(TOPIC, BODY))
        queue = MessageQueue(TOPIC, receipt.queue.broker_name, receipt.queue.queue_id)
        frame = sending.exchange.writer.frame(made, queue, 1, sending.session.clock.now_ms())
        return producer.session.brokers.send_address(queue), frame


def bare(broker: str, frame: bytes, depth: int, each: int, seconds: float) -> float:
    """Return the least CPU µs for one message over a blocking socket."""
    host, _, port = broker.rpartition(":")
    with socket.create_connection((host, int(port))) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = frame * depth
        costs = []
        for _ in range(ROUNDS):
            cpu, until, done = time.process_time(), time.perf_counter() + seconds, 0
            while time.perf_counter() < until:
                peer.sendall(data)
                _receive(peer, depth)
                done += depth * each
            costs.append((time.process_time() - cpu) / done * 1e6)
    return min(costs)


def _receive(peer: socket.socket, answers: int) -> None:
    held = b""
    while answers:
        held += peer.recv(1 << 18)
        while len(held) >= 4:
            end = 4 + int.from_bytes(held[:4], "big")
            if end > len(held):
                break
            held, answers = held[end:], answers - 1


def compare(loop: str, address: str, seconds: float) -> None:
    factory = import_module(loop).new_event_loop
    rows = (
        ("send, one at a time", worker(1), 1, 1, 45.0),
        ("send, 64 under way", worker(64), 64, 1, 18.0),
        ("submit, 64 at once", submitter(64), 64, 1, 18.0),
        ("batches of 32", batcher(32), 4, 32, 3.0),
        ("batches of 256", batcher(256), 4, 256, 1.5),
    )
    print(f"{loop:26}{'messages/s':>12}{'CPU µs':>9}{'at most':>9}{'bare µs':>9}{'× bare':>8}")
    for name, story, depth, each, most in rows:
        with asyncio.Runner(loop_factory=factory) as runner:
            broker, frame = runner.run(frames(address, each))
            plain = bare(broker, frame, depth, each, seconds / 3)
            rate, cost = runner.run(measure(address, story, seconds))
        print(f"{name:26}{rate:12,.0f}{cost:9.2f}{most:9.2f}{plain:9.2f}{cost / plain:8.2f}")
        note(f"{loop}: {name}", cost)


LARGE = bytes(1_000_000)


def large(address: str, seconds: float) -> None:
    """Submit bodies of 1 MB as quickly as the producer takes them, beside sends one at a time."""
    producer = mq.Producer(address, group="large", compress_from=2**31 - 1)
    with producer:
        done, started = 0, time.perf_counter()
        while time.perf_counter() < started + seconds:
            producer.send(Message(TOPIC, LARGE))
            done += 1
        alone = done / (time.perf_counter() - started)
        futures, started = [], time.perf_counter()
        while time.perf_counter() < started + seconds:
            futures.append(producer.submit(Message(TOPIC, LARGE)))
        failed = sum(future.exception() is not None for future in futures)
        rate = (len(futures) - failed) / (time.perf_counter() - started)
    print(f"{'1 MB, send / submit':26}{alone:12,.0f}{rate:12,.0f} MB/s{rate / alone:8.2f} ×, "
          f"{failed} of {len(futures)} failed")  # fmt: skip


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with cluster() as address:
        compare("asyncio", address, seconds)
        if importlib.util.find_spec("uvloop"):
            compare("uvloop", address, seconds)
        large(address, 3 * seconds)


if __name__ == "__main__":
    main()
