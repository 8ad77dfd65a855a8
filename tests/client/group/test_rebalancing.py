"""Members of a group share queues: joining, leaving, dying, topics that come, go and grow."""

import asyncio
import signal
import sys

from pocketmq.balance.allocation import Average
from tests.client.group.groups import Member, cluster, member, members, queues_of, send, shared
from tests.loops import until

AVG = Average()


async def test_a_lone_member_takes_every_queue() -> None:
    async with cluster(2) as running, member(running.address) as alone:
        await shared([alone], queues_of(2, 4), AVG)


async def test_members_share_again_when_one_joins_and_when_one_leaves() -> None:
    """The timer runs every 20 s, so it is the broker's notices that move queues."""
    queues = queues_of(2, 4)
    async with cluster(2) as running, members(running.address, "a", "b") as (a, b):
        await shared([a, b], queues, AVG)
        async with member(running.address, "c") as c:
            await shared([a, b, c], queues, AVG)
        await shared([a, b], queues, AVG)
        moved = [event for event in a.consumer.history if event.changed]
        assert {"members changed"} <= {part for e in moved for part in e.trigger.split(", ")}


async def test_no_queue_is_consumed_by_two_members_and_none_by_nobody() -> None:
    async with cluster(2) as running, members(running.address, "a", "b", "c") as group:
        await shared(group, queues_of(2, 4), AVG)
        bodies = await send(running.address, 64)
        await until(lambda: sum(len(one.got) for one in group) >= 64, "all messages")
        assert sorted(body for one in group for body in one.bodies) == sorted(bodies)
        for one in group:
            assert {(m.broker_name, m.queue_id) for m in one.got} == {
                (queue.broker_name, queue.queue_id) for queue in one.queues()
            }


_DOOMED = """
import asyncio, sys
from tests.client.group.groups import member
async def main():
    async with member(sys.argv[1], "doomed") as one:
        while not one.queues():
            await asyncio.sleep(0.01)
        print("joined", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_the_queues_of_a_member_that_is_killed_go_to_the_others() -> None:
    async with cluster(1) as running, member(running.address) as survivor:
        doomed = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _DOOMED, running.address, stdout=asyncio.subprocess.PIPE
        )
        assert doomed.stdout is not None
        async with asyncio.timeout(60):
            assert await doomed.stdout.readline() == b"joined\n"
        await until(lambda: len(survivor.queues()) == 2, "two members to share")
        doomed.send_signal(signal.SIGKILL)
        await doomed.wait()
        await shared([survivor], queues_of(1, 4), AVG)


async def test_a_burst_of_notices_becomes_few_runs() -> None:
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        before = _runs(one, "orders")
        joined = one.consumer._life.member
        assert joined is not None
        for _ in range(1000):
            joined.on_ids_changed()
        async with member(running.address, "b") as other:
            await shared([one, other], queues_of(1, 4), AVG)
        assert before < _runs(one, "orders") < before + 12


def _runs(one: Member, topic: str) -> int:
    return sum(event.runs for event in one.consumer.history if event.topic == topic)


async def test_queues_that_are_added_to_a_topic_are_taken_when_the_route_shows_them() -> None:
    async with cluster() as running, members(running.address, "a", "b", route_interval=0.05) as two:
        await shared(two, queues_of(1, 4), AVG)
        await running.create_topic("orders", 8)
        await shared(two, queues_of(1, 8), AVG)


async def test_a_topic_can_be_subscribed_and_left_while_running() -> None:
    async with cluster(1, 4, "orders", "refunds") as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        one.consumer.subscribe("refunds", "*", one.handle)
        await shared([one], queues_of(1, 4, "refunds"), AVG)
        await send(running.address, 8, "refunds")
        await until(lambda: len(one.got) == 8, "messages of the new topic")
        one.consumer.unsubscribe("refunds")
        await until(lambda: one.queues("refunds") == (), "the topic to be left")
        assert len(one.queues()) == 4


async def test_a_topic_that_does_not_exist_yet_is_consumed_once_it_does() -> None:
    async with (
        cluster(1, 4, "other") as running,
        member(running.address, route_interval=0.05) as one,
    ):
        await until(lambda: len(one.consumer.history) > 0, "a first run")
        await running.create_topic("orders", 4)
        await shared([one], queues_of(1, 4), AVG)


async def test_two_groups_do_not_share_anything() -> None:
    async with (
        cluster() as running,
        member(running.address, "a") as a,
        member(running.address, "b", group="audit") as b,
    ):
        await shared([a], queues_of(1, 4), AVG)
        await shared([b], queues_of(1, 4), AVG, "audit")
        bodies = await send(running.address, 16)
        await until(lambda: len(a.got) == len(b.got) == 16, "all messages twice")
        assert sorted(a.bodies) == sorted(b.bodies) == sorted(bodies)


async def test_consumers_of_several_groups_share_one_client() -> None:
    async with cluster() as running:
        a = Member(running.address, "one", "billing")
        b = Member(running.address, "one", "audit")
        for each in (a, b):
            each.consumer.subscribe("orders", "*", each.handle)
        async with a.consumer, b.consumer:
            assert a.consumer.session is b.consumer.session
            await send(running.address, 8)
            await until(lambda: len(a.got) == len(b.got) == 8, "all messages twice")
