"""The bus: heard by the group alone, whatever else is written there, and through broker restarts."""

import asyncio
import logging

import pytest

from pocketmq.balance.handover.messages import BUS_TOPIC, Hello, Notice
from pocketmq.client.group.handover.bus import Bus, bus_tag
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.producer import Producer
from pocketmq.client.sessions import lease_session
from pocketmq.client.tasks import Tasks
from pocketmq.model import Message
from tests.client.group.groups import cluster
from tests.loops import until

BROKERS = frozenset({"broker-0"})


async def test_notices_reach_the_group_and_what_is_no_notice_is_skipped_once_a_sender(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        tasks = Tasks("test")
        heard: list[tuple[str, Notice]] = []
        others: list[tuple[str, Notice]] = []
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
            await until(lambda: heard == [("broker-0", notice)], "the notice alone")
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
