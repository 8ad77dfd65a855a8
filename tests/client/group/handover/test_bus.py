"""The bus: heard by the group alone, whatever else is written there, and through broker restarts."""

import asyncio
import logging
from contextlib import suppress

import pytest

from pocketmq.balance.handover.messages import BUS_TOPIC, Hello, Notice
from pocketmq.client.group.handover.bus import Bus, bus_tag, end_of_bus
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.producer import Producer
from pocketmq.client.session import Session
from pocketmq.client.sessions import lease_session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import BrokerNotFound, TopicNotFound
from pocketmq.model import BrokerData, Message, SysFlag, property_names
from pocketmq.protocol import RequestCode
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.requests import sending, topics
from tests.client.group.groups import cluster
from tests.client.servers import Directory, Scripted, route, serving, session_on
from tests.loops import until

BROKERS = frozenset({"broker-0"})


async def test_notices_reach_the_group_and_what_is_no_notice_is_skipped_once_a_sender(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard: list[tuple[str, Notice, float]] = []
        others: list[tuple[str, Notice, float]] = []
        try:
            await lease.session.fetch_routes(["orders"])
            bus = Bus(lease.session, "a||b", tasks, lambda *what: heard.append(what))
            other = Bus(lease.session, "a", tasks, lambda *what: others.append(what))
            for each in (bus, other):
                each.listen(BROKERS)
                await each.until_listening(10.0)
            async with Producer(running.address, group="liar") as producer:
                for body in (b"{", b"[1]", b'{"sender": 1}', b"\xff\xfe"):
                    await producer.send(Message(BUS_TOPIC, body, tag=bus_tag("a||b")))
            notice = Notice("me", "boot", (Hello(),))
            bus.tell("broker-0", notice)
            await until(
                lambda: [what[:2] for what in heard] == [("broker-0", notice)], "the notice"
            )
            assert others == []
        finally:
            await tasks.stop()
            await lease.release()
    skipped = [each for each in caplog.messages if each.startswith("malformed hand-over notice")]
    assert len(skipped) == 1


async def test_a_bus_that_cannot_be_reached_is_told_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        try:
            with caplog.at_level(logging.WARNING, "pocketmq.client"):
                bus = Bus(lease.session, "billing", tasks, lambda *_: None)
                bus.listen(frozenset({"nowhere"}))
                await bus.until_listening(0.5)
                await until(lambda: "hand-over topic unavailable" in caplog.text, "the warning")
                bus.tell("nowhere", Notice("me", "boot", (Hello(),)))
                await asyncio.sleep(0)
        finally:
            await tasks.stop()
            await lease.release()
    assert len([each for each in caplog.messages if "hand-over topic unavailable" in each]) == 1


async def test_a_group_whose_tag_has_the_same_hash_hears_nothing() -> None:
    """Brokers select by the hash of a tag alone."""
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard: list[str] = []
        try:
            await lease.session.fetch_routes(["orders"])
            buses = {
                group: Bus(lease.session, group, tasks, lambda *_, group=group: heard.append(group))
                for group in ("Aa", "BB")
            }
            for each in buses.values():
                each.listen(BROKERS)
                await each.until_listening(10.0)
            for group in ("Aa", "BB"):
                buses[group].tell("broker-0", Notice("me", "boot", (Hello(),)))
                await until(lambda: heard[-1:] == [group], f"the notice of {group}")  # noqa: B023
            assert heard == ["Aa", "BB"]
        finally:
            await tasks.stop()
            await lease.release()


async def test_a_body_that_cannot_be_inflated_makes_nobody_deaf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard: list[tuple[str, Notice, float]] = []
        try:
            await lease.session.fetch_routes(["orders"])
            bus = Bus(lease.session, "billing", tasks, lambda *what: heard.append(what))
            bus.listen(BROKERS)
            await bus.until_listening(10.0)
            for kind in (0, 1 << 8, 2 << 8, 3 << 8, 7 << 8):  # the codecs, and one nobody knows
                header = sending.SendRequestV2(
                    producer_group="liar",
                    topic=BUS_TOPIC,
                    default_topic="TBW102",
                    default_topic_queue_nums=1,
                    queue_id=0,
                    sys_flag=SysFlag.COMPRESSED | kind,
                    born_timestamp=0,
                    flag=0,
                    properties=encode_properties({property_names.TAGS: "billing"}).decode(),
                    reconsume_times=0,
                    unit_mode=False,
                    batch=False,
                    bname="broker-0",
                )
                code = RequestCode.SEND_MESSAGE_V2
                await lease.session.brokers.call("broker-0", code, header, b"garbage")
            notice = Notice("me", "boot", (Hello(),))
            bus.tell("broker-0", notice)
            await until(
                lambda: [what[:2] for what in heard] == [("broker-0", notice)], "the notice"
            )
        finally:
            await tasks.stop()
            await lease.release()
    assert any(each.startswith("malformed hand-over notice") for each in caplog.messages)


@pytest.mark.parametrize("held", ["answered", "forgotten"])
async def test_all_that_is_on_a_bus_can_be_heard_at_once_and_is_heard_once(held: str) -> None:
    """A held pull may be answered meanwhile or much later; more is there than one pull brings."""
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard, stored = list[str](), list[str]()
        boots = [str(number) for number in range(100)]
        try:
            await lease.session.fetch_routes(["orders"])
            bus = Bus(lease.session, "billing", tasks, lambda _, each, age: heard.append(each.boot))
            other = Bus(lease.session, "billing", tasks, lambda _, n, age: stored.append(n.boot))
            for each in (bus, other):
                each.listen(BROKERS)
                await each.until_listening(10.0)
            if held == "forgotten":
                bus._listening["broker-0"].cancel()
            for boot in boots:
                other.tell("broker-0", Notice("me", boot, (Hello(),)))
                if held == "answered":
                    await bus.catch_up(BROKERS)
            await until(lambda: sorted(stored) == sorted(boots), "all to be stored")
            assert held == "answered" or heard == []
            await bus.catch_up(BROKERS)
            assert heard == stored
            await bus.catch_up([*BROKERS, "nowhere"])
            assert heard == stored
        finally:
            await tasks.stop()
            await lease.release()


async def test_a_listener_survives_what_its_notices_lead_to() -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard: list[Notice] = []

        def hear(_: str, notice: Notice, age: float) -> None:
            heard.append(notice)
            if len(heard) == 1:
                raise RuntimeError("the first one is too much")

        try:
            await lease.session.fetch_routes(["orders"])
            bus = Bus(lease.session, "billing", tasks, hear)
            bus.listen(BROKERS)
            await bus.until_listening(10.0)
            bus.tell("broker-0", Notice("me", "boot", (Hello(),)))
            await until(lambda: len(heard) == 1, "the first")
            bus.tell("broker-0", Notice("me", "again", (Hello(),)))
            await until(lambda: [each.boot for each in heard] == ["boot", "again"], "the second")
        finally:
            await tasks.stop()
            await lease.release()


async def made_again(session: Session) -> None:
    """Wait until the topic exists, and its end can be read."""
    while True:
        with suppress(TopicNotFound):
            await end_of_bus(session, "other", "broker-0")
            return
        await asyncio.sleep(0.01)


async def test_a_bus_that_was_deleted_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.client.group.handover.bus._SUSPEND", 0.1)
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        session, tasks = lease.session, Tasks("test")
        heard: list[Notice] = []
        try:
            await session.fetch_routes(["orders"])
            bus = Bus(session, "billing", tasks, lambda _, notice, age: heard.append(notice))
            bus.listen(BROKERS)
            await bus.until_listening(10.0)
            header = topics.DeleteTopicRequest(topic=BUS_TOPIC)
            await session.brokers.call("broker-0", RequestCode.DELETE_TOPIC_IN_BROKER, header)

            async with asyncio.timeout(20):
                await made_again(session)
            bus.tell("broker-0", Notice("me", "boot", (Hello(),)))
            await until(lambda: len(heard) == 1, "the notice")
        finally:
            await tasks.stop()
            await lease.release()


async def test_the_bus_of_a_slave_is_not_listened_to() -> None:
    """What is told goes to the master, where the others listen."""
    code = RequestCode.PULL_MESSAGE
    slave = Scripted({code: lambda request: request.reply(24, "no message")})
    async with serving(slave) as (_, place):
        alone = BrokerData(cluster="c", broker_name="broker-0", broker_addrs={1: place})
        there = Directory({BUS_TOPIC: route(alone)})
        async with serving(there) as (_, address), session_on(address) as session:
            await session.fetch_routes([BUS_TOPIC])
            with pytest.raises(BrokerNotFound):
                await end_of_bus(session, "billing", "broker-0")
    assert slave.asked_for(code) == []
