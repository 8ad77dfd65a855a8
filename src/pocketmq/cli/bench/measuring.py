"""Measuring a cluster from this client: sends, consumption of a backlog, end-to-end latency.

Everything goes through the asyncio clients, as in a program.
"""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.errors import RouteNotFound
from pocketmq.model import GroupConfig, Message, MessageQueue, TopicConfig, sort_queues
from pocketmq.protocol import ReceivedMessage

GROUP = "pocketmq_bench"
QUEUES = 8
RATE = 200
"""Messages per second of the end-to-end measurement."""
LEAST_SIZE = 8
_LEAD = 1.5
"""Seconds at its start that do not count: a member's first pulls are late, as in Java."""
_PATIENCE = 60.0
_TIME = struct.Struct(">d")
NOT_COUNTED = 0.0
_BATCH_SIZE = 4 << 20
"""Bytes that brokers accept in one request by default."""
_ENTRY = 200
"""Maximum number of bytes of a message in a batch besides its body."""


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of all measurements."""

    topic: str
    size: int
    seconds: float
    in_flight: int
    batch: int


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one measurement; times are of a send, or from send to handler."""

    what: str
    messages: int
    seconds: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu_us: float
    """Processor time of this client per message, in microseconds."""

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds


async def measure(client: ClientOptions, plan: BenchPlan) -> AsyncIterator[Measurement]:
    """Yield one measurement after the other. The topic is created if it does not exist.

    The messages stay in the topic; the group's offsets end after them.
    """
    async with Admin(options=client) as admin, Producer(options=client, group=GROUP) as producer:
        queues = await _queues(admin, plan.topic)
        (await admin.groups.create(GroupConfig(group_name=GROUP))).all()
        bench = _Bench(producer, plan)
        await bench.warm_up()
        before = {queue: (await admin.offsets.bounds(queue))[1] for queue in queues}
        yield await bench.one_at_a_time()
        yield await bench.in_flight()
        yield await bench.batches()
        after = {queue: (await admin.offsets.bounds(queue))[1] for queue in queues}
        for queue, offset in before.items():
            await admin.offsets.commit(GROUP, queue, offset)
        yield await backlog(client, plan, sum(after.values()) - sum(before.values()))
        yield await live(client, producer, plan)


class _Bench:
    """Sends in several ways, each for the planned time."""

    def __init__(self, producer: Producer, plan: BenchPlan) -> None:
        self._producer = producer
        self._plan = plan
        self._message = Message(plan.topic, bytes(plan.size))

    async def warm_up(self) -> None:
        """Open connections and fetch routes."""
        for _ in range(2 * QUEUES):
            await self._producer.send(self._message)

    async def one_at_a_time(self) -> Measurement:
        return await self._for_a_while("send, one at a time", self._send, 1, 1)

    async def in_flight(self) -> Measurement:
        count = self._plan.in_flight
        return await self._for_a_while(f"send, {count} in flight", self._send, 1, count)

    async def batches(self) -> Measurement:
        count = min(self._plan.batch, _BATCH_SIZE // (self._plan.size + _ENTRY))
        batch = [self._message] * count

        async def send() -> None:
            await self._producer.send_batch(batch)

        return await self._for_a_while(f"send, batches of {count}", send, count, 1)

    async def _send(self) -> None:
        await self._producer.send(self._message)

    async def _for_a_while(
        self, what: str, send: Callable[[], Awaitable[None]], each: int, workers: int
    ) -> Measurement:
        taken: list[float] = []
        clock, cpu = time.perf_counter, -time.process_time()
        start = clock()
        deadline = start + self._plan.seconds

        async def work() -> None:
            began = clock()
            while not taken or began < deadline:  # at least once: the process may have been held up
                await send()
                taken.append(clock() - began)
                began = clock()

        await _together([asyncio.create_task(work()) for _ in range(workers)])
        elapsed = clock() - start
        return _row(what, len(taken) * each, elapsed, cpu + time.process_time(), taken)


async def _together(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for all tasks; if one fails, cancel the others and raise its error unchanged."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def backlog(client: ClientOptions, plan: BenchPlan, count: int) -> Measurement:
    """Measure the consumption of everything that was sent, from first message to last."""
    seen, enough = 0, asyncio.Event()
    start = cpu = 0.0

    async def handle(messages: list[ReceivedMessage]) -> None:
        nonlocal seen, start, cpu
        if not seen:
            start, cpu = time.perf_counter(), -time.process_time()
        seen += len(messages)
        if seen >= count:
            enough.set()

    many = max(plan.batch, 32)
    consumer = PushConsumer(options=client, group=GROUP, handler_batch=many, pull_batch=many)
    consumer.subscribe(plan.topic, "*", handle)
    async with consumer, asyncio.timeout(_PATIENCE + count / 1000):
        await enough.wait()
        elapsed = time.perf_counter() - start
        used = cpu + time.process_time()
    return _row("consume a backlog", seen, elapsed, used, ())


async def live(client: ClientOptions, producer: Producer, plan: BenchPlan) -> Measurement:
    """Measure the time of single messages from send to handler, at a steady rate."""
    lead, wanted = int(_LEAD * RATE), max(1, int(plan.seconds * RATE))
    taken: list[float] = []
    arrived = asyncio.Event()

    async def handle(message: ReceivedMessage) -> None:
        (sent,) = _TIME.unpack_from(message.body)
        if sent != NOT_COUNTED:
            taken.append(time.monotonic() - sent)
        if len(taken) == wanted:
            arrived.set()

    assigned = asyncio.Event()
    consumer = PushConsumer(options=client, group=GROUP)
    consumer.on_assigned(lambda _: assigned.set())
    consumer.subscribe(plan.topic, "*", handle)
    filling = bytes(plan.size - LEAST_SIZE)
    async with consumer, asyncio.timeout(_PATIENCE + plan.seconds):
        await assigned.wait()
        start = began = time.monotonic()
        cpu = 0.0
        for number in range(lead + wanted):
            await asyncio.sleep(start + number / RATE - time.monotonic())
            if number == lead:
                began, cpu = time.monotonic(), -time.process_time()
                start = began - lead / RATE  # a late lead-in is not caught up
            sent = NOT_COUNTED if number < lead else time.monotonic()
            await producer.send(Message(plan.topic, _TIME.pack(sent) + filling))
        await arrived.wait()
        elapsed, used = time.monotonic() - began, cpu + time.process_time()
    return _row(f"end to end, {RATE} per second", wanted, elapsed, used, taken)


async def _queues(admin: Admin, topic: str) -> list[MessageQueue]:
    """Return a topic's queues; the topic is created on all clusters if it does not exist."""
    try:
        route = await admin.topics.route(topic)
    except RouteNotFound:
        config = TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        for cluster in {place.cluster for place in await admin.brokers.masters()}:
            (await admin.topics.create(config, cluster)).all()
        route = await admin.topics.route(topic)
    return sort_queues(route.subscribe_queues(topic))


def _row(
    what: str, count: int, elapsed: float, cpu: float, taken: "list[float] | tuple[()]"
) -> Measurement:
    ordered = sorted(taken)
    middle = ordered[len(ordered) // 2] * 1000 if ordered else None
    late = ordered[len(ordered) * 99 // 100] * 1000 if ordered else None
    return Measurement(
        what=what,
        messages=count,
        seconds=elapsed,
        p50_ms=middle,
        p99_ms=late,
        cpu_us=cpu / count * 1e6,
    )
