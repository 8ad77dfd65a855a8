"""The gRPC proxy in front of Apache's brokers: what Apache's own proxy would do there."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq import aio
from pocketmq.client.options import ClientOptions
from pocketmq.model import GroupConfig, TopicConfig
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Jars

channel_to: Any = pytest.importorskip("grpc.aio").insecure_channel

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

TOPICS = {
    "g-normal": "NORMAL",
    "g-fifo": "FIFO",
    "g-delay": "DELAY",
    "g-tx": "TRANSACTION",
    "g-priority": "PRIORITY",
}


@pytest.fixture(scope="module")
def brokers(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    with java_brokers(jars, tmp_path_factory.mktemp("java"), "java-0") as running:
        yield running


def test_messages_of_all_kinds_pass_through_the_proxy(brokers: JavaBroker) -> None:
    from pocketmq.proxy.wire import definition as d
    from pocketmq.proxy.wire import service as s
    from tests.proxy.peers import Peer, code, message

    async def story() -> None:
        async with proxied(brokers.address) as address, channel_to(address) as channel:
            peer = Peer(channel, address)
            for topic in TOPICS:
                await peer.receive(topic, "g", wait=0.1)
            assert code(await peer.send("g-normal", b"now", tag="t", properties={"a": "b"})) == "OK"
            (got,) = await peer.received("g-normal", "g")
            assert (got.body, dict(got.user_properties)) == (b"now", {"a": "b"})
            handle = got.system_properties.receipt_handle
            change = s.ChangeInvisibleDurationRequest(
                group=d.Resource(name="g"), topic=d.Resource(name="g-normal"), receipt_handle=handle
            )
            change.invisible_duration.FromMilliseconds(1000)
            assert code(await peer.call("ChangeInvisibleDuration", change)) == "OK"
            (again,) = await peer.received("g-normal", "g")
            assert again.system_properties.delivery_attempt == 2
            handle = again.system_properties.receipt_handle
            forward = s.ForwardMessageToDeadLetterQueueRequest(
                group=d.Resource(name="g"), topic=d.Resource(name="g-normal"), receipt_handle=handle
            )
            assert code(await peer.call("ForwardMessageToDeadLetterQueue", forward)) == "OK"

            late = message("g-delay", b"late")
            due = round(time.time() * 1000) + 2000
            late.system_properties.delivery_timestamp.FromMilliseconds(due)
            sent = await peer.call("SendMessage", s.SendMessageRequest(messages=[late]))
            assert sent.entries[0].recall_handle
            (got,) = await peer.received("g-delay", "g")
            assert got.system_properties.message_type == d.MessageType.DELAY
            assert (
                code(await peer.ack("g-delay", "g", got.system_properties.receipt_handle)) == "OK"
            )

            half = await peer.send("g-tx", b"half", message_type=d.MessageType.TRANSACTION)
            end = s.EndTransactionRequest(
                topic=d.Resource(name="g-tx"),
                message_id=half.entries[0].message_id,
                transaction_id=half.entries[0].transaction_id,
                resolution=d.TransactionResolution.COMMIT,
            )
            assert code(await peer.call("EndTransaction", end)) == "OK"
            (got,) = await peer.received("g-tx", "g")
            assert got.body == b"half"

            for priority in (0, 1, 1, 0):
                sent = await peer.send("g-priority", b"%d" % priority, priority=priority)
                assert code(sent) == "OK"
            order: list[int] = []
            while len(order) < 4:
                got_now = await peer.received("g-priority", "g", wait=5, batch_size=1)
                order += [each.system_properties.priority for each in got_now]
            assert order == [1, 1, 0, 0]

            refused = await peer.send("g-fifo", b"x")
            assert code(refused) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"

    asyncio.run(story())


def test_a_message_group_is_popped_in_order(brokers: JavaBroker) -> None:
    from tests.proxy.peers import Peer, code

    async def story() -> None:
        async with proxied(brokers.address) as address, channel_to(address) as channel:
            peer = Peer(channel, address)
            await peer.receive("g-fifo", "g-ordered", wait=0.1)
            for number in range(4):
                sent = await peer.send("g-fifo", b"%d" % number, message_group="customer-7")
                assert code(sent) == "OK"
            bodies: list[bytes] = []
            while len(bodies) < 4:
                for got in await peer.received("g-fifo", "g-ordered"):
                    bodies.append(got.body)
                    handle = got.system_properties.receipt_handle
                    assert code(await peer.ack("g-fifo", "g-ordered", handle)) == "OK"
            assert bodies == [b"0", b"1", b"2", b"3"]

    asyncio.run(story())


@asynccontextmanager
async def proxied(namesrv: str) -> AsyncIterator[str]:
    """Run a proxy before Apache's brokers, which have a topic of each type."""
    from pocketmq.proxy.server import Proxy
    from tests.proxy.peers import QUICK

    async with aio.Admin(namesrv) as admin:
        for place in await admin.brokers.targets():
            for name, kind in TOPICS.items():
                config = TopicConfig(
                    topic_name=name,
                    read_queue_nums=2,
                    write_queue_nums=2,
                    attributes={"+message.type": kind},
                )
                (await admin.topics.create(config, address=place.address)).all()
            ordered = GroupConfig(group_name="g-ordered", consume_message_orderly=True)
            (await admin.groups.create(ordered, address=place.address)).all()
    proxy = Proxy(ClientOptions(name_servers=namesrv), port=0, limits=QUICK)
    await proxy.start()
    try:
        yield proxy.address
    finally:
        await proxy.stop()
