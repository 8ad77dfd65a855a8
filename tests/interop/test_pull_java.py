"""Our pull consumer on a Java broker, alone and in one group with Java's own."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pocketmq.aio import Admin
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.filters import Filter, by_sql
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.producer import Producer
from pocketmq.client.pull import PullConsumer
from pocketmq.model import ConsumeFromWhere, Message, MessageQueue
from pocketmq.protocol import ReceivedMessage, RecordView
from pocketmq.protocol.record_scan import scan_records
from tests.interop.groups import Load, Member, share
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Jars, wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture(scope="module")
def brokers(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-0", enablePropertyFilter=True) as running:
        yield running


async def send(brokers: JavaBroker, topic: str, count: int) -> list[bytes]:
    bodies = [b"%s %d" % (topic.encode(), n) for n in range(count)]
    async with Producer(brokers.address, group="senders") as producer:
        for n, body in enumerate(bodies):
            tag = "even" if n % 2 == 0 else "odd"
            await producer.send(Message(topic, body, tag=tag, properties={"number": str(n)}))
    return bodies


async def read(consumer: PullConsumer, count: int) -> list[ReceivedMessage]:
    got: list[ReceivedMessage] = []
    async with asyncio.timeout(PATIENCE):
        while len(got) < count:
            got += await consumer.poll(1)
    return got


def test_polling_committing_and_seeking(brokers: JavaBroker) -> None:
    brokers.create_topic("pulled", 2)
    queue = MessageQueue("pulled", "java-0", 0)

    async def story() -> None:
        sent = await send(brokers, "pulled", 40)
        async with PullConsumer(
            brokers.address, group="pullers", consume_from=FIRST, auto_commit=False
        ).subscribe("pulled") as consumer:
            got = await read(consumer, 40)
            assert sorted(m.body for m in got) == sorted(sent)
            await consumer.commit()
            assert await consumer.committed(queue) == 20
            await consumer.seek(queue, 15)
            again = await read(consumer, 5)
            assert [m.queue_offset for m in again] == [15, 16, 17, 18, 19]
            moment = again[2].store_timestamp
            since = min(
                m.queue_offset for m in got if m.queue_id == 0 and m.store_timestamp >= moment
            )
            assert await consumer.offset_for_time(queue, moment) == since
            await consumer.seek_to_begin(queue)
            assert len(await read(consumer, 20)) == 20
            await consumer.seek_to_end(queue)
            assert await consumer.poll(0.2) == []
        more = await send(brokers, "pulled", 4)
        async with PullConsumer(brokers.address, group="pullers", consume_from=FIRST).subscribe(
            "pulled"
        ) as consumer:
            assert sorted(m.body for m in await read(consumer, 4)) == sorted(more)

    asyncio.run(story())


def test_filters(brokers: JavaBroker) -> None:
    brokers.create_topic("filtered", 2)

    async def story() -> None:
        await send(brokers, "filtered", 20)
        filters: list[str | Filter] = ["odd", by_sql("number BETWEEN 5 AND 14")]
        for number, wanted in enumerate(filters):
            consumer = PullConsumer(brokers.address, group=f"choosers-{number}", consume_from=FIRST)
            async with consumer.subscribe("filtered", wanted):
                got = {int(m.properties["number"]) for m in await read(consumer, 10)}
                assert got == (set(range(1, 20, 2)), set(range(5, 15)))[number]

    asyncio.run(story())


def test_java_and_python_members_share_one_group(
    jars: Jars, brokers: JavaBroker, tmp_path: Path
) -> None:
    """Each has the share that Java's rule gives it, and every message is polled by its owner."""
    topic, group = "mixed-lite", "mixed-lite-group"
    brokers.create_topic(topic, 8)
    queues = {MessageQueue(topic, "java-0", number) for number in range(8)}
    with ExitStack() as stack:
        words = [brokers.address, group, topic]
        members = [
            stack.enter_context(
                Member(jars.compiled(tmp_path, "LiteMember", *words, name), tmp_path)
            )
            for name in ("java-a", "java-b")
        ]
        load = stack.enter_context(
            Load(jars.compiled(tmp_path, "Load", brokers.address, topic, "5"), tmp_path)
        )
        asyncio.run(_shared_with(members, load, brokers.address, group, queues))


async def _shared_with(
    members: list[Member], load: Load, address: str, group: str, queues: set[MessageQueue]
) -> None:
    (topic,) = {queue.topic for queue in queues}
    ours = PullConsumer(address, group=group, consume_from=FIRST, heartbeat_interval=1.0)
    got: list[ReceivedMessage] = []
    async with ours.subscribe(topic):
        own = ours._life.running().session.client_id

        def settled(java: list[Member]) -> bool:
            ids = [own, *(member.client_id for member in java)]
            mine = {f"{q.broker_name}/{q.queue_id}" for q in ours.assignment().get(topic, ())}
            return (
                all(ids)
                and mine == share(own, ids, queues)
                and all(each.owned == share(each.client_id, ids, queues) for each in java)
            )

        async def until(condition: Callable[[], bool]) -> None:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    got.extend(await ours.poll(0.05))

        await until(lambda: settled(members))
        assert len(ours.assignment()[topic]) in (2, 3)
        before = len(got)
        await until(lambda: len(got) > before + 20 and all(len(each.got) > 20 for each in members))
        members[1].say("leave")
        await until(lambda: settled(members[:1]))
        load.say("stop")
        await until(lambda: load.child.poll() is not None)

        def polled() -> set[str]:
            java = {body for member in members for _, body in member.got}
            return java | {message.body.decode() for message in got}

        await until(lambda: load.accepted <= polled())


def test_a_moment_is_found_exactly(brokers: JavaBroker) -> None:
    """Brokers before 5.3 give the message nearest to a time, also one that was stored before it."""
    brokers.create_topic("timed", 1)
    brokers.create_topic("never", 1)
    queue = MessageQueue("timed", "java-0", 0)
    for _ in range(3):  # three batches, some time apart, each of one moment or a few
        asyncio.run(send(brokers, "timed", 5))
    with RecordReader(ClientOptions(name_servers=brokers.address)) as reader:
        wait_until(lambda: reader.end(queue) == 15, "all messages in the queue")
        pulled = reader.pull(queue, 0)
        found = [RecordView(pulled.records, at) for at, *_ in scan_records(pulled.records)]
        times = [record.store_timestamp_ms for record in found]
        moments = {time + step for time in times for step in (-1, 0, 1, 60_000)}
        told = {moment: reader.offset_at(queue, moment) for moment in moments}
        assert reader.offset_at(MessageQueue("never", "java-0", 0), times[0]) == 0
    assert len(set(times)) > 1
    exact = {moment: bisect_left(times, moment) for moment in moments}
    assert told == exact

    async def others() -> tuple[dict[int, int], dict[int, int]]:
        async with (
            PullConsumer(brokers.address, group="timers").assign([queue]) as consumer,
            Admin(brokers.address) as admin,
        ):
            return (
                {
                    moment: await consumer.offset_for_time(queue, moment / 1000)
                    for moment in moments
                },
                {moment: await admin.offsets.at_time(queue, moment) for moment in moments},
            )

    assert asyncio.run(others()) == (exact, exact)
