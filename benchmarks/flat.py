"""Whether a message costs the same however many topics, connections and groups there are.

Each row is the processor time of the broker's process for a message, or of the client's; the ratio
is to the first of its kind. Brokers of all sizes run at the same time and take turns. Connections
take turns, too: what is asked at once, and what comes in one packet, is the same for any number.

python -m benchmarks.flat [--quick]
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from benchmarks.broker import (
    BODY,
    FIELDS,
    QUEUES,
    Client,
    Process,
    broker,
    pull_frame,
    send_frames,
)
from benchmarks.producer import cluster
from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message
from pocketmq.protocol import Command

TOPICS = (1, 100, 10_000)
CLIENT_TOPICS = (1, 100, 1_000)
CONNECTIONS = (1, 100, 1_000)
GROUPS = (1, 100)
DEPTH = 64
PULL = 32
FILLED = 16
"""Batches of 256 messages in each queue that groups pull."""
ROUNDS = 5
SECONDS = 0.7

Drive = Callable[[float], int]
"""Does something for a while, at least once, and returns how many messages that were."""


class Size:
    """A number of topics, connections or groups; what is done with it, and what that costs."""

    def __init__(self, count: int, cpu: Callable[[], float], drive: Drive) -> None:
        self.count = count
        self.cost = float("inf")
        self._cpu = cpu
        self._drive = drive

    def turn(self, seconds: float) -> None:
        used = self._cpu()
        done = self._drive(seconds)
        self.cost = min(self.cost, (self._cpu() - used) / done * 1e6)


def compare(kind: str, sizes: list[Size], rounds: int, seconds: float) -> None:
    """Let all take turns, and print their least costs."""
    for size in sizes:  # everything is there, and warm, afterwards
        size.turn(seconds)
        size.cost = float("inf")
    for _ in range(rounds):
        for size in sizes:
            size.turn(seconds)
    for size in sizes:
        ratio = size.cost / sizes[0].cost
        print(f"{kind:34}{size.count:>8,}{size.cost:10.2f}{ratio:9.2f}", flush=True)


def topic_frames(count: int) -> list[bytes]:
    """Return a send to each of so many topics."""
    return [
        Command.request(
            310, 1, FIELDS | {"b": f"topic-{number}", "e": "0", "m": "false"}, BODY
        ).encode()
        for number in range(count)
    ]


def with_topics(stack: ExitStack, counts: tuple[int, ...]) -> Iterator[Size]:
    for count in counts:
        process = stack.enter_context(broker())
        client, frames = Client(process.port), topic_frames(count)
        stack.callback(client.socket.close)
        make_all(client, frames)
        yield Size(count, process.cpu, driven(client, frames, DEPTH))


def make_all(client: Client, frames: list[bytes]) -> None:
    """Send a first message to each topic, which makes it."""
    for start in range(0, len(frames), DEPTH):
        some = frames[start : start + DEPTH]
        client.socket.sendall(b"".join(some))
        answered = 0
        while answered < len(some):
            answered += client.receive()
    answer = client.ask(frames[-1])
    assert answer.code == 0, answer.remark


def driven(client: Client, frames: list[bytes], depth: int, each: int = 1) -> Drive:
    """Go through frames, from where it stopped the last time."""
    held = frames

    def drive(seconds: float) -> int:
        nonlocal held
        done = client.drive(held, depth, seconds)
        start = done % len(held)
        held = held[start:] + held[:start]
        return done * each

    return drive


def with_connections(stack: ExitStack, counts: tuple[int, ...], depth: int) -> Iterator[Size]:
    process = stack.enter_context(broker())
    for count in counts:
        clients = [Client(process.port) for _ in range(count)]
        for client in clients:
            stack.callback(client.socket.close)
        yield Size(count, process.cpu, taking_turns(clients, depth))


def taking_turns(clients: list[Client], depth: int) -> Drive:
    """Ask `depth` requests of one connection at once, then as many of the next."""
    burst = b"".join(send_frames()[number % QUEUES] for number in range(depth))

    def drive(seconds: float) -> int:
        end, done = time.perf_counter() + seconds, 0
        while not done or time.perf_counter() < end:
            client = clients[done // depth % len(clients)]
            client.socket.sendall(burst)
            answered = 0
            while answered < depth:
                answered += client.receive()
            done += depth
        return done

    return drive


def fill(process: Process) -> Client:
    client = Client(process.port)
    for _ in range(FILLED):
        for frame in send_frames(256):
            assert client.ask(frame).code == 0
    return client


def with_groups(stack: ExitStack, counts: tuple[int, ...]) -> Iterator[Size]:
    """Pull the same messages as many groups, which commit their offsets with it."""
    for count in counts:
        client = fill(process := stack.enter_context(broker()))
        stack.callback(client.socket.close)
        frames = [
            pull_frame(number % QUEUES, offset, PULL, group=f"group-{number % count}", commit=True)
            for number, offset in enumerate(range(0, FILLED * 256, PULL))
        ]
        yield Size(count, process.cpu, driven(client, frames, 4, PULL))


def client_with_topics(stack: ExitStack, counts: tuple[int, ...]) -> Iterator[Size]:
    """Send with our client, 64 in flight, to topics in turn; it is in this process."""
    runner = stack.enter_context(asyncio.Runner())
    for count in counts:
        address = stack.enter_context(cluster())
        producer = Producer(address, group="flat", send_timeout=30.0)
        runner.run(producer.start())
        stack.callback(_close, runner, producer)

        def drive(seconds: float, made: Producer = producer, topics: int = count) -> int:
            return runner.run(send_to(made, topics, seconds))

        runner.run(make_topics(producer, count))
        yield Size(count, time.process_time, drive)


def _close(runner: asyncio.Runner, producer: Producer) -> None:
    runner.run(producer.close())


async def make_topics(producer: Producer, topics: int) -> None:
    for number in range(topics):
        await producer.send(Message(f"topic-{number}", BODY))


async def send_to(producer: Producer, topics: int, seconds: float) -> int:
    end, sent = time.perf_counter() + seconds, 0

    async def caller() -> None:
        nonlocal sent
        while not sent or time.perf_counter() < end:
            sent += 1
            await producer.send(Message(f"topic-{sent % topics}", BODY))

    await asyncio.gather(*[caller() for _ in range(DEPTH)])
    return sent


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    rounds, seconds = (1, 0.05) if quick else (ROUNDS, SECONDS)
    most = 100 if quick else max(TOPICS)
    some = _up_to(CONNECTIONS, most)
    chosen: list[tuple[str, Callable[[ExitStack], Iterator[Size]]]] = [
        ("topics: send, broker", lambda s: with_topics(s, _up_to(TOPICS, most))),
        ("topics: send, client", lambda s: client_with_topics(s, _up_to(CLIENT_TOPICS, most))),
        ("connections: send, 1 in flight", lambda s: with_connections(s, some, 1)),
        ("connections: send, 64 in flight", lambda s: with_connections(s, some, DEPTH)),
        ("groups: pull and commit, broker", lambda s: with_groups(s, GROUPS)),
    ]
    print(f"{'':34}{'number':>8}{'CPU µs':>10}{'ratio':>9}", flush=True)
    for kind, sizes in chosen:
        with ExitStack() as stack:
            compare(kind, list(sizes(stack)), rounds, seconds)


def _up_to(counts: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(count for count in counts if count <= most)


if __name__ == "__main__":
    main()
