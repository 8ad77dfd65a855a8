"""A producer that submits faster than a broker takes: what it reports agrees with what is stored."""

import asyncio
from collections.abc import Awaitable, Callable

from pocketmq.aio import Admin
from pocketmq.client.producer.producer import Producer
from pocketmq.client.producer.window import LEAST, START, ByteBudget
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.errors import SendFailed
from pocketmq.model import Message, MessageQueue
from tests.client.producer.test_cluster import through
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)
MIB = 1024 * 1024

Load = Callable[[Producer, FaultProxy], Awaitable[list[asyncio.Future[object]]]]


class Told:
    """Keys of messages by what was reported about them, and of those that are stored."""

    def __init__(self) -> None:
        self.ok: set[str] = set()
        self.unknown: set[str] = set()
        self.failed: set[str] = set()
        self.stored: list[str] = []

    def agrees(self) -> bool:
        """Whether every message is where the reports say it is, and none twice."""
        stored = set(self.stored)
        return (
            len(stored) == len(self.stored)
            and self.ok <= stored
            and not self.failed & stored
            and stored <= self.ok | self.unknown
        )


async def run(load: Load, **options: float) -> Told:
    """Load a broker over a proxy; give what was reported and what is stored."""
    told = Told()
    async with Cluster() as cluster, FaultProxy(cluster.brokers["broker-0"].address) as proxy:
        await cluster.create_topic("orders", queues=1)
        async with Producer(cluster.address, group="shop", retries=0, **options) as producer:  # type: ignore[arg-type]
            await producer.send(message("first", 1))
            told.ok.add("first")
            through(producer, proxy.address)
            futures = await load(producer, proxy)
            ends = await asyncio.gather(*futures, return_exceptions=True)
            for number, end in enumerate(ends):
                if isinstance(end, SendFailed):
                    (told.unknown if end.outcome_unknown else told.failed).add(str(number))
                else:
                    assert not isinstance(end, BaseException), end
                    told.ok.add(str(number))
            proxy.pass_through()
        await until(lambda: proxy.links == 0, "all that was sent has arrived")
        async with Admin(cluster.address) as admin:
            _, end_offset = await admin.offsets.bounds(QUEUE)
            while len(told.stored) < end_offset:
                page = await admin.messages.page(QUEUE, len(told.stored))
                told.stored += [found.keys[0] for found in page.messages]
    return told


def message(key: str, size: int) -> Message:
    return Message("orders", bytes(size), keys=[key])


async def test_a_broker_that_stops_taking_costs_definite_failures_that_are_never_stored() -> None:
    """It takes nothing for longer than the producer waits, and then all that is in the network."""

    async def load(producer: Producer, proxy: FaultProxy) -> list[asyncio.Future[object]]:
        proxy.hold(Way.TO_SERVER)
        return [producer.submit(message(str(n), MIB)) for n in range(40)]  # type: ignore[misc]

    told = await run(load, send_timeout=1.5, compress_from=2**31 - 1)
    assert told.agrees(), vars(told)
    assert not told.ok - {"first"}
    # Room for four at once; a few with later deadlines may enter as the first give up.
    assert len(told.unknown) <= 3 * START // MIB
    assert len(told.failed) >= 40 - 3 * START // MIB


async def test_a_slow_broker_gets_as_much_as_it_can_answer_in_time() -> None:
    """The link takes some MB/s. All that was in flight at once would wait far beyond the timeout."""

    async def load(producer: Producer, proxy: FaultProxy) -> list[asyncio.Future[object]]:
        proxy.trickle(32 * 1024, pause=0.02, way=Way.TO_SERVER)
        futures = []
        for n in range(240):
            await producer.room()
            futures.append(producer.submit(message(str(n), 100_000)))
        return futures  # type: ignore[return-value]

    told = await run(load, send_timeout=4.0, compress_from=2**31 - 1)
    assert told.agrees(), vars(told)
    assert len(told.ok) > 144, vars(told)


def test_the_byte_limit_doubles_while_answers_are_quick_and_the_room_is_used() -> None:
    budget = ByteBudget(100 * MIB, 3.0)
    assert budget.limit == START
    budget.answered(MIB, 0.0, 0.1, in_flight=MIB)
    assert budget.limit == START
    for _ in range(4):
        budget.answered(MIB, 0.0, 0.1, in_flight=START)
    assert budget.limit == 2 * START
    for _ in range(200):
        budget.answered(MIB, 0.0, 0.1, in_flight=100 * MIB)
    assert budget.limit == 100 * MIB


def test_the_byte_limit_falls_once_for_all_that_was_in_flight_and_never_below_the_least() -> None:
    budget = ByteBudget(100 * MIB, 3.0)
    for _ in range(10):
        budget.answered(MIB, 0.0, 1.5, in_flight=START)
    assert budget.limit == START // 4
    budget.answered(MIB, 1.6, 2.2, in_flight=START)  # neither quick nor slow
    assert budget.limit == START // 4
    for n in range(2, 10):
        budget.answered(MIB, n * 10.0, n * 10.0 + 3.0, in_flight=MIB)
    assert budget.limit == LEAST


def test_a_small_window_is_the_users_word() -> None:
    budget = ByteBudget(1000, 3.0)
    budget.answered(1000, 0.0, 0.01, in_flight=1000)
    assert budget.limit == 1000
    budget.answered(1000, 0.0, 3.0, in_flight=1000)
    assert budget.limit == 1000
