"""Consumers that are started before their topic exists begin soon after it does."""

import asyncio
import time
from itertools import accumulate
from typing import Any

import pytest

from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.client.group.no_messages import MissingRoutes
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.pull.consumer import PullConsumer
from pocketmq.protocol import RequestCode
from tests.client.group.foreign import NotedRequests
from tests.client.group.groups import FIRST, cluster, member, send
from tests.loops import until

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


@pytest.mark.parametrize("profile", [V4, V5])
@pytest.mark.parametrize("created_by_sending", [True, False])
async def test_a_push_consumer_begins_soon_after_its_topic_was_created(
    created_by_sending: bool, profile: Profile
) -> None:
    """Also where no broker was known before: name servers then have no route at all."""
    settings: dict[str, Any] = {"autoCreateTopicEnable": created_by_sending}
    async with (
        cluster(1, 4, "other", config=settings) as running,
        member(running.address, profile=profile, topics=("late",)) as one,
    ):
        await asyncio.sleep(1.2)  # the session's first heartbeat comes after a second
        if not created_by_sending:
            await running.create_topic("late", 4)
        await send(running.address, 4, "late")
        # Of its own accord the session asks for routes every 30 s, and the group every 20 s.
        await until(lambda: len(one.got) == 4, "the messages", 15.0)


async def test_a_pull_consumer_does_so_too() -> None:
    async with cluster(1, 4, "other") as running:
        consumer = PullConsumer(running.address, group="audit", consume_from=FIRST)
        async with consumer:
            consumer.subscribe("late")
            await asyncio.sleep(0.3)
            await running.create_topic("late", 4)
            await send(running.address, 1, "late")
            assert [each.body for each in await consumer.poll(15.0)] == [b"0"]


async def test_name_servers_are_asked_at_growing_intervals() -> None:
    async with cluster() as running, member(running.address) as one:
        session = one.consumer.session
        requests = NotedRequests(session)
        missing = MissingRoutes(session, session.tasks)
        began = time.monotonic()
        missing.watch({"late", "orders"})
        await until(lambda: requests.count(ROUTE, topic="late") >= 4, "four questions")
        asked, took = requests.count(ROUTE, topic="late"), time.monotonic() - began
        missing.watch({"late"})
        # After 0.1, 0.25, 0.48 and 0.81 s; a slow machine asks later.
        assert asked <= sum(due <= took for due in accumulate(0.1 * 1.5**n for n in range(9)))
        assert requests.count(ROUTE, topic="orders") <= 1  # by the first poll of the session


async def test_a_topic_that_is_unsubscribed_is_not_asked_for_any_more() -> None:
    async with (
        cluster(1, 4, "orders") as running,
        member(running.address, topics=("orders", "late")) as one,
    ):
        await until(one.queues, "queues")
        joined = one.consumer._life.member
        assert joined is not None
        assert isinstance(joined.rebalancing, Rebalancing)
        missing = joined.rebalancing._missing
        await until(lambda: "late" in missing, "the topic to be missed")
        one.consumer.unsubscribe("late")
        joined.on_ids_changed()
        await until(lambda: "late" not in missing, "the topic to be forgotten")
