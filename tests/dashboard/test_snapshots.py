"""Looking at groups of a real cluster: one look after another, by way of the admin alone."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import pytest

import pocketmq as mq
from pocketmq import aio
from pocketmq.balance.allocation import Average
from pocketmq.dashboard.assignment.page import poller_of
from pocketmq.dashboard.assignment.snapshots import GroupSnapshot, SnapshotTaker
from pocketmq.dashboard.desk import Actions, Desk
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import Absent
from pocketmq.model import MessageQueue, sort_queues
from tests.dashboard.spoken import SpokenGroup
from tests.own_time import own_time

T = TypeVar("T")


def queues_of(brokers: Iterable[str]) -> list[MessageQueue]:
    return [MessageQueue("orders", broker, number) for broker in sorted(brokers) for number in range(4)]  # fmt: skip


def divide(group: SpokenGroup, queues: list[MessageQueue], *members: str) -> None:
    owners = Average().allocate_all(sort_queues(queues), sorted(members))
    for member in members:
        held = [queue for queue, owner in zip(sort_queues(queues), owners, strict=True)
                if owner == member]  # fmt: skip
        group.hold(member, held)


def with_admin(cluster: mq.Cluster, story: Callable[[aio.Admin], Awaitable[T]]) -> T:
    async def run() -> T:
        async with aio.Admin(cluster.address, timeout=30.0) as admin:
            return await story(admin)

    return asyncio.run(run())


async def look_until(
    looking: SnapshotTaker, wanted: Callable[[GroupSnapshot], bool]
) -> GroupSnapshot:
    """Look again and again until something is seen."""
    async with asyncio.timeout(60):
        while not wanted(look := await looking.take()):
            pass
    return look


def test_a_killed_broker_is_the_reason_for_what_follows() -> None:
    with mq.Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", queues=4)
        queues = queues_of(cluster.brokers)
        addresses = [broker.address for broker in cluster.brokers.values()]
        with SpokenGroup("billing", ["orders"], addresses) as group:
            for member in ("c1", "c2"):
                group.join(member)
            divide(group, queues, "c1", "c2")

            async def story(admin: aio.Admin) -> GroupSnapshot:
                looking = SnapshotTaker(admin, "billing")
                await look_until(looking, lambda look: look.story.strategy == "AVG")
                await asyncio.to_thread(cluster.kill, "broker-1")
                await look_until(looking, lambda look: len(look.moment.owners) == 4)
                divide(group, queues_of(["broker-0"]), "c1", "c2")
                return await look_until(looking, lambda look: look.story.strategy == "AVG")

            look = with_admin(cluster, story)
    entry = look.rebalances[-1]
    assert "broker-1" in entry.why
    assert entry.causes[0].kind in {"broker gone", "broker silent"}
    assert [(move.queue.queue_id, move.previous, move.owner) for move in entry.moves] == [
        (2, "c1", "c2"),
        (3, "c1", "c2"),
    ]
    assert (entry.moved, entry.minimum, entry.settled) == (2, 2, True)


def test_a_group_that_nobody_knows_is_refused_with_words() -> None:
    with mq.Cluster() as cluster:

        async def story(admin: aio.Admin) -> None:
            with pytest.raises(Absent, match="no broker has it"):
                await SnapshotTaker(admin, "nobody").take()

        with_admin(cluster, story)


def test_all_viewers_of_a_group_share_one_watch() -> None:
    with mq.Cluster() as cluster:

        async def story(admin: aio.Admin) -> None:
            views = Views(admin)
            desk = Desk(admin, views, Actions(admin, views, allowed=False), DashboardSettings())
            first = poller_of(desk, "billing")
            assert poller_of(desk, "billing") is first
            assert poller_of(desk, "other") is not first
            await views.close()

        with_admin(cluster, story)


def test_a_member_that_hangs_does_not_hold_up_the_picture() -> None:
    with mq.Cluster() as cluster:
        cluster.create_topic("orders", queues=4)
        queues = queues_of(cluster.brokers)
        addresses = [broker.address for broker in cluster.brokers.values()]
        with SpokenGroup("billing", ["orders"], addresses) as group:
            for member in ("c1", "c2"):
                group.join(member)
            divide(group, queues, "c1", "c2")

            async def story(admin: aio.Admin) -> tuple[GroupSnapshot, float]:
                looking = SnapshotTaker(admin, "billing")
                await look_until(looking, lambda look: look.story.strategy == "AVG")
                group.fall_silent("c2")
                took: list[float] = []

                async def take() -> GroupSnapshot:
                    began, own = time.monotonic(), own_time()
                    look = await looking.take()
                    assert time.monotonic() - began > 0.9, "it waits for the one that hangs"
                    took.append(own_time() - own)
                    return look

                # The other one may miss its second, too, on a machine busy with something else.
                async with asyncio.timeout(60):
                    while (look := await take()).moment.untold.keys() != {"c2"} or len(took) < 2:
                        pass
                return look, took[-1]

            look, took = with_admin(cluster, story)
    assert look.moment.untold == {"c2": "c2: no response to GET_CONSUMER_RUNNING_INFO within 1 s"}
    assert [each.kind for each in look.findings] == ["member silent", "ownership unknown"]
    assert took < 5  # and not the fifteen that one may wait for a single member
