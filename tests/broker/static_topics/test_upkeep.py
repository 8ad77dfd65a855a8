"""Ranges that are dropped when they are not needed any more."""

from contextlib import AsyncExitStack

from pocketmq import aio
from pocketmq.broker.broker import Broker
from pocketmq.broker.static_topics.upkeep import StaticTopicUpkeep
from pocketmq.model import MessageQueue
from pocketmq.nameserver.server import NameServer
from tests.broker.running import running

TOPIC = "fixed"
QUEUE = MessageQueue(TOPIC, "__syslo__global__", 0)


def places(broker: Broker) -> list[str | None]:
    """Return the brokers of the queue's ranges, as one broker has them."""
    detail = broker.state.mappings.get(TOPIC)
    assert detail is not None
    return [part.bname for part in detail.hosted_queues.get(0, [])]


async def test_ranges_without_messages_and_copies_of_queues_that_moved_on_are_dropped() -> None:
    async with AsyncExitStack() as stack:
        server = NameServer()
        names = str(await server.start(port=0))
        stack.push_async_callback(server.stop)
        brokers = {}
        for name in ("a", "b", "c"):
            here, _ = await stack.enter_async_context(running(broker_name=name, namesrv_addr=names))
            brokers[name] = here
        admin = await stack.enter_async_context(aio.Admin(names))
        producer = await stack.enter_async_context(aio.Producer(names, group="shop"))
        await admin.static_topics.create(TOPIC, 1, ["a"])
        await admin.static_topics.move(TOPIC, ["b"])
        await producer.send(aio.Message(TOPIC, b"x"))
        await admin.static_topics.move(TOPIC, ["c"])
        assert {name: places(each) for name, each in brokers.items()} == {
            "a": ["a", "b"],
            "b": ["a", "b", "c"],
            "c": ["a", "b", "c"],
        }
        runs = {name: StaticTopicUpkeep(each.state) for name, each in brokers.items()}
        assert await runs["c"].clean() == 1  # there was never a message on a
        assert places(brokers["c"]) == ["b", "c"]
        assert await runs["c"].clean() == 0  # b has one
        assert await runs["a"].clean() == 2  # it left a, and then b
        assert places(brokers["a"]) == []
        assert await runs["b"].clean() == 0  # the leader is the one that b knows
        assert await admin.offsets.bounds(QUEUE) == (10_000, 20_000)
