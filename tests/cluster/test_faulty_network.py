"""A broker behind a network that tears, cuts, corrupts and falls silent: others notice nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pocketmq.embedded.aio import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode
from pocketmq.testing.proxy import FaultProxy, Way
from tests.cluster.raw import RawClient, everything_in, send_header
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)


@asynccontextmanager
async def broken_and_sound_way() -> AsyncIterator[tuple[FaultProxy, str]]:
    """Yield a proxy in front of a broker, and the broker's own address."""
    async with Cluster() as cluster:
        await cluster.create_topic("orders", 1)
        address = cluster.brokers["broker-0"].address
        async with FaultProxy(address) as proxy:
            yield proxy, address


async def send(address: str, key: str, patience: float = 60.0) -> int | None:
    """Send one message in a thread; give the answer's code, or None if none came."""

    def work() -> int | None:
        with suppress(OSError), RawClient(address, patience) as client:
            header = send_header(QUEUE, key)
            return client.call(RequestCode.SEND_MESSAGE_V2, header, key.encode()).code
        return None

    return await asyncio.to_thread(work)


async def stored(address: str) -> list[str]:
    def work() -> list[str]:
        with RawClient(address) as client:
            return [message.body.decode() for message in everything_in(client, QUEUE)]

    return await asyncio.to_thread(work)


async def test_a_request_that_trickles_in_byte_by_byte_is_served_and_delays_nobody() -> None:
    async with broken_and_sound_way() as (proxy, address):
        proxy.trickle(1, pause=0.05, way=Way.TO_SERVER)
        slow = asyncio.create_task(send(str(proxy.address), "slow"))
        await until(lambda: proxy.links, "its connection")
        assert [await send(address, f"quick-{n}") for n in range(5)] == [0] * 5
        assert not slow.done()
        proxy.trickle(1, way=Way.TO_SERVER)  # the rest need not take as long
        assert await slow == 0
        assert (await stored(address))[-1] == "slow"


async def test_a_request_cut_in_the_middle_stores_nothing() -> None:
    async with broken_and_sound_way() as (proxy, address):
        for reset in (False, True):
            for after in (3, 40, 300):
                proxy.cut_after(after, Way.TO_SERVER, reset=reset)
                assert await send(str(proxy.address), "torn") is None
        assert await send(address, "whole") == 0
        assert await stored(address) == ["whole"]


async def test_an_answer_cut_off_leaves_the_message_stored_once() -> None:
    async with broken_and_sound_way() as (proxy, address):
        proxy.cut_after(5, Way.TO_CLIENT)
        assert await send(str(proxy.address), "unanswered") is None
        assert await stored(address) == ["unanswered"]


async def test_a_corrupt_byte_costs_the_request_not_the_broker() -> None:
    async with broken_and_sound_way() as (proxy, address):
        for position in (0, 3, 5, 8, 20, 60):
            proxy.corrupt(position, Way.TO_SERVER)
            await send(str(proxy.address), "spoilt", patience=2.0)
            proxy.pass_through()
            assert await send(str(proxy.address), f"after-{position}") == 0
        assert [key for key in await stored(address) if key.startswith("after-")] == [
            f"after-{position}" for position in (0, 3, 5, 8, 20, 60)
        ]


async def test_a_half_open_connection_harms_nobody() -> None:
    async with broken_and_sound_way() as (proxy, address):
        proxy.swallow()
        assert await send(str(proxy.address), "lost", patience=0.3) is None
        assert await send(address, "sound") == 0
        proxy.pass_through()
        assert await send(str(proxy.address), "healed") == 0
        assert await stored(address) == ["sound", "healed"]
