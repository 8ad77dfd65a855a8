"""Routes: kept, folded, refreshed, and never lost for want of a name server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.calls import ServerCalls
from pocketmq.client.name_servers import NameServerCalls
from pocketmq.client.routes import KnownRoute, RouteBook
from pocketmq.client.tasks import Tasks
from pocketmq.errors import (
    BodyMalformed,
    NameServersUnreachable,
    RequestTimedOut,
    RouteNotFound,
)
from pocketmq.model import QueueData, TopicRoute
from pocketmq.net import Dialer
from pocketmq.protocol import Command
from tests.client.servers import Directory, broker, route
from tests.loops import until
from tests.net.peers import Recorder, serving

ORDERS = route(broker("a", "h:1"), broker("b", "h:2"), queues=2)


@asynccontextmanager
async def book_on(directory: Directory) -> AsyncIterator[RouteBook]:
    async with serving(directory) as (_, address):
        dialer, tasks = Dialer(Recorder()), Tasks("book")
        servers = NameServerCalls((address,), ServerCalls(dialer, (), lambda: None), Random(7))
        try:
            yield RouteBook(servers, BrokerAddresses(), tasks, 5.0)
        finally:
            await tasks.stop()
            await dialer.close(0.2)


async def test_a_route_is_asked_for_once_and_known_with_its_queues() -> None:
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        known = await book.get("orders")
        assert known is await book.get("orders")
        assert directory.topics_asked() == ["orders"]
        assert [(queue.broker_name, queue.queue_id) for queue in known.publish_queues] == [
            ("a", 0), ("a", 1), ("b", 0), ("b", 1),
        ]  # fmt: skip
        assert known.subscribe_queues == frozenset(known.publish_queues)
        assert book.addresses.master("b") == "h:2"


async def test_many_who_ask_at_once_cost_one_request() -> None:
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        found = await asyncio.gather(*(book.refresh("orders") for _ in range(100)))
        assert len({id(each) for each in found}) == 1
        assert directory.topics_asked() == ["orders"]


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others() -> None:
    directory = Directory({"orders": ORDERS})
    held: list[Command] = []
    answer = directory.script[105]
    directory.script[105] = held.append
    async with book_on(directory) as book:
        patient = asyncio.create_task(book.refresh("orders"))
        cancelled = asyncio.create_task(book.refresh("orders"))
        with pytest.raises(RequestTimedOut, match="route of orders"):
            await book.refresh("orders", timeout=0.01)
        cancelled.cancel()
        await until(lambda: held, "the request")
        connection = directory.opened[0]
        said = answer(held[0])
        assert said is not None
        connection.write(said.encode())
        assert (await patient).route == ORDERS
        assert len(directory.requests) == 1


async def test_each_who_waited_gets_an_error_of_its_own() -> None:
    async with book_on(Directory()) as book:
        errors = await asyncio.gather(
            *(book.refresh("nothing") for _ in range(3)), return_exceptions=True
        )
        assert [str(error) for error in errors] == [str(RouteNotFound("nothing"))] * 3
        assert len({id(error) for error in errors}) == 3


async def test_listeners_hear_of_changes_only(caplog: pytest.LogCaptureFixture) -> None:
    directory = Directory({"orders": ORDERS})
    heard: list[KnownRoute] = []

    def broken(_: KnownRoute) -> None:
        raise ValueError("oh")

    async with book_on(directory) as book:
        book.listen(broken)
        book.listen(heard.append)
        for _ in range(3):
            await book.refresh("orders")
        assert [each.route for each in heard] == [ORDERS]
        directory.routes["orders"] = route(broker("a", "h:1"), queues=2)
        await book.refresh("orders")
        assert len(heard) == 2
        assert "route listener failed: topic=orders" in caplog.text


async def test_a_topic_that_vanished_keeps_its_route() -> None:
    """As in Java: a name server that lost its brokers for a moment stops nobody."""
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        known = await book.get("orders")
        directory.routes.clear()
        with pytest.raises(RouteNotFound):
            await book.refresh("orders")
        assert await book.get("orders") is known


async def test_a_route_that_makes_no_sense_leaves_the_old_one_in_place() -> None:
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        known = await book.get("orders")
        directory.routes["orders"] = TopicRoute(
            queue_datas=[QueueData(broker_name="a", read_queue_nums=10**9, perm=6)]
        )
        with pytest.raises(BodyMalformed):
            await book.refresh("orders")
        directory.script[105] = lambda request: request.reply(0, body=b"{not json")
        with pytest.raises(BodyMalformed):
            await book.refresh("orders")
        assert book.cached("orders") is known


async def test_a_new_topic_gets_the_templates_route_until_it_exists() -> None:
    directory = Directory({"TBW102": route(broker("a", "h:1"), queues=8, perm=7)})
    async with book_on(directory) as book:
        with pytest.raises(RouteNotFound):
            await book.get("fresh")
        known = await book.assume("fresh", queue_nums=4)
        assert known.assumed
        assert [queue.topic for queue in known.publish_queues] == ["fresh"] * 4
        await book.poll([])  # still unknown to the name server
        assert book.cached("fresh") is known
        directory.routes["fresh"] = known.route
        real = await book.refresh("fresh")
        assert real.route == known.route
        assert not real.assumed


async def test_a_poll_refreshes_what_is_used_and_forgets_what_nobody_asked_for() -> None:
    directory = Directory({"used": ORDERS, "asked": ORDERS, "idle": ORDERS})
    async with book_on(directory) as book:
        for topic in directory.routes:
            await book.get(topic)
        await book.poll(["used"])
        assert sorted(directory.topics_asked()[3:]) == ["asked", "idle", "used"]
        await book.get("asked")
        await book.poll(["used"])
        assert sorted(directory.topics_asked()[6:]) == ["asked", "used"]
        assert book.cached("idle") is None
        assert book.cached("asked") is not None


async def test_a_poll_without_name_server_asks_once_and_forgets_nothing() -> None:
    directory = Directory({"one": ORDERS, "two": ORDERS})
    async with book_on(directory) as book:
        await book.get("one")
        await book.get("two")
        answer = directory.script[105]
        directory.script[105] = lambda _: None
        book._timeout = 0.05
        for _ in range(3):
            await book.poll(["one"])
        assert directory.topics_asked()[2:] == ["one"] * 3
        assert book.cached("two") is not None
        directory.script[105] = answer
        book._timeout = 5.0
        await book.poll(["one"])  # back again: both are fresh
        assert directory.topics_asked()[5:] == ["one", "two"]
        directory.script[105] = lambda _: None
        book._timeout = 0.05
        with pytest.raises(NameServersUnreachable):
            await book.refresh("two")


async def test_brokers_no_route_has_are_dropped() -> None:
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        await book.get("orders")
        assert book.drop_offline_brokers() == []
        directory.routes["orders"] = route(broker("a", "h:1"))
        await book.refresh("orders")
        assert book.drop_offline_brokers() == ["h:2"]
        assert len(book.addresses) == 1


async def test_refreshing_soon_does_not_wait() -> None:
    directory = Directory({"orders": ORDERS})
    async with book_on(directory) as book:
        book.refresh_soon("orders")
        book.refresh_soon("orders")
        assert book.cached("orders") is None
        await until(lambda: book.cached("orders"), "the route")
        assert directory.topics_asked() == ["orders"]
