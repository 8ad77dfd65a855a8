"""What verification costs: checksums, checks of records, syncs before offsets, signatures, memory.

Each row does the same work without and with one of them. Both sides take turns in the same run; a
cost is the least CPU time of the rounds (offsets: the median of wall time, which is mostly the
device's). The last column is what the row adds to a whole send or pull, client and broker together.

python -m benchmarks.trust
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import access
from benchmarks.messages import MESSAGES, make_records, pack
from benchmarks.store import append_batches, read
from benchmarks.transport import REQUEST, Echo
from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.client.producer.producer import Producer
from pocketmq.client.pull import PullConsumer
from pocketmq.embedded.aio import Cluster
from pocketmq.model import ConsumeFromWhere, Message
from pocketmq.net import Connection, Limits
from pocketmq.net.budget import MemoryBudget
from pocketmq.net.shared import Shared
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.store import MessageStore

ROUNDS = 25
PULL = 32
BACKLOG = 8192
DECODED = 20  # pulls that are decoded in one round
DEPTH = 16  # requests that one burst over a socket holds
BURSTS = 100


def head(title: str, whole: str = "") -> None:
    print(f"\n{title:44}{'without':>9}{'with':>9}{'ratio':>8}{whole:>11}", flush=True)


def show(what: str, without: float, verified: float, whole: float = 0.0) -> None:
    share = f"{(verified - without) / whole:>11.1%}" if whole else ""
    print(f"{what:44}{without:>9.2f}{verified:>9.2f}{verified / without:>8.3f}{share}", flush=True)


def duel(without: Callable[[], object], verified: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU µs of both, the least of rounds that take turns."""
    best = [1e9, 1e9]
    for _ in range(ROUNDS):
        for side, work in enumerate((without, verified)):
            started = time.process_time()
            work()
            best[side] = min(best[side], (time.process_time() - started) * 1e6)
    return best[0], best[1]


async def whole_pull(names: str, group: str) -> float:
    """Return the CPU µs of a message from the broker's log to an application that reads bodies."""
    start = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    seen, first, started = 0, 0, 0.0
    async with PullConsumer(names, group=group, pull_batch=PULL, consume_from=start) as consumer:
        consumer.subscribe("orders")
        while seen < BACKLOG:
            for message in await consumer.poll(10):
                assert message.body
                seen += 1
            if not first:
                first, started = seen, time.process_time()
        return (time.process_time() - started) / (seen - first) * 1e6


async def whole_pulls(size: int) -> float:
    """Fill a cluster with bodies of a size, and return the least cost of several pulls of all."""
    async with Cluster() as cluster:
        await cluster.create_topic("orders", 8)
        async with Producer(cluster.address, group="bench") as producer:
            for _ in range(BACKLOG // 256):
                await producer.send_batch([Message("orders", bytes(size)) for _ in range(256)])
        return min([await whole_pull(cluster.address, f"readers{turn}") for turn in range(5)])


def without_checksums(records: bytes) -> bytes:
    """Return the same records with a checksum of 0, which stands for none."""
    data, size = bytearray(records), len(records) // MESSAGES
    for position in range(0, len(data), size):
        data[position + 8 : position + 12] = bytes(4)
    return bytes(data)


def decode(data: bytes, *, bodies: bool) -> None:
    for _ in range(DECODED):
        for message in decode_pulled(data, DeliveryContext()):
            if bodies:
                assert message.body


def show_decoding(size: int, whole: float) -> None:
    verified = pack(make_records(bytes(size)))
    plain = without_checksums(verified)
    for bodies in (False, True):
        costs = duel(
            partial(decode, plain, bodies=bodies), partial(decode, verified, bodies=bodies)
        )
        per = [cost / DECODED / MESSAGES for cost in costs]
        show(f"checksums of {size} bytes{', bodies read' if bodies else ''}", per[0], per[1], whole)


def show_cold_reads(store: MessageStore, whole: float) -> None:
    """Read old records twice: they are checked at the first read, and known at the second."""
    queue = store.make_queue("BenchTopic", 0)
    append_batches(store, queue, 256, BACKLOG // 256)
    now = 0.0
    for count in (PULL, 256):
        costs: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for _ in range(2):
                now += 86_400
                store.log.age(now)
            for side in (1, 0):
                started = time.process_time()
                read(store, queue, count, BACKLOG)
                costs[side].append((time.process_time() - started) / BACKLOG * 1e6)
        show(f"first read of old records, {count} at a time", min(costs[0]), min(costs[1]), whole)


async def save(state: BrokerState, number: int, *, synced: bool) -> float:
    """Store a message and save offsets; return the seconds until they are saved."""
    append_batches(state.store, state.store.make_queue("BenchTopic", 0), 1, 1)
    for queue_id in range(100):
        state.offsets.commit("readers", "BenchTopic", queue_id, number)
    done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    started = time.perf_counter()
    if synced:
        submit_offsets(state, done.set_result)
    else:
        unsaved, metadata = state.offsets.take_unsaved(), state.store.metadata
        job = partial(metadata.save_consumer_offsets, unsaved.rows, unsaved.gone)
        state.store.submit(job, done.set_result)
    error = await done
    assert error is None
    return time.perf_counter() - started


async def show_offsets() -> None:
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(BrokerConfig(listen_port=0, bind_address="127.0.0.1"), Path(directory))
        await broker.start()
        try:
            took: list[list[float]] = [[], []]
            for number in range(2 * ROUNDS):
                side = number % 2
                took[side].append(await save(broker.state, number, synced=bool(side)))
        finally:
            await broker.stop()
    show("log synced first", *[statistics.median(each) * 1e6 for each in took])


async def burst_cost(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
    started = time.process_time()
    for _ in range(BURSTS):
        writer.write(REQUEST.encode() * DEPTH)
        frames, answered = FrameReader(), 0
        while answered < DEPTH:
            answered += len(frames.feed(await reader.read(1 << 20)))
    return (time.process_time() - started) / BURSTS / DEPTH * 1e6


async def show_transport(whole: float) -> None:
    """Echo requests through connections that count their memory, and through some that do not."""
    loop, limits = asyncio.get_running_loop(), Limits()
    budget = MemoryBudget(limits.memory, limits.frame_stall)
    streams, servers = [], []
    for shared in (Shared(limits), Shared(limits, budget)):
        server = await loop.create_server(partial(Connection, Echo(), shared, loop), "127.0.0.1", 0)
        streams.append(await asyncio.open_connection(*server.sockets[0].getsockname()))
        servers.append(server)
    best = [1e9, 1e9]
    for _ in range(ROUNDS):
        for side, (reader, writer) in enumerate(streams):
            best[side] = min(best[side], await burst_cost(reader, writer))
    show(f"memory budget, {DEPTH} requests at a time", best[0], best[1], whole)
    for (_, writer), server in zip(streams, servers, strict=True):
        writer.close()
        await writer.wait_closed()
        server.close()
    budget.close()


def main() -> None:
    whole = {size: asyncio.run(whole_pulls(size)) for size in (100, 1024)}
    for size, cost in whole.items():
        print(f"whole pull of {PULL}, bodies of {size} bytes read: {cost:.2f} µs a message")
    head("client decodes pulls, µs a message", "of a pull")
    for size, cost in whole.items():
        show_decoding(size, cost)
    head("store reads, µs a message", "of a pull")
    with tempfile.TemporaryDirectory() as folder:
        store = MessageStore.open(Path(folder))
        show_cold_reads(store, whole[100])
        store.close()
    head("100 offsets saved, µs of wall time")
    asyncio.run(show_offsets())
    sends = {name: cost * 1e6 for name, cost in asyncio.run(access.whole_sends()).items()}
    plain = sends["as Java, javaAuthorization"]
    head("send to a broker with users, µs", "of a send")
    for name, cost in sends.items():
        show(name, plain, cost, plain)
    head("transport, µs a request", "of a send")
    asyncio.run(show_transport(plain))


if __name__ == "__main__":
    main()
