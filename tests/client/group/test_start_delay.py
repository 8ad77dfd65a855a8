"""What happens between taking a queue and its first pull is not handled twice, nor passed over."""

from typing import Any

import msgspec
import pytest

from pocketmq.balance.consumer.offsets import NO_OFFSET
from pocketmq.balance.profile import JAVA_V5, V5
from pocketmq.client.pull.consumer import PullConsumer
from pocketmq.client.questions.offsets import commit_header
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode
from tests.client.group.groups import FIRST, Member, cluster, member, send
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)


async def commit(consumer: Any, offset: int, group: str = "billing") -> None:
    """Store an offset as the last owner of a queue does."""
    header = commit_header(group, QUEUE, offset)
    code = RequestCode.UPDATE_CONSUMER_OFFSET
    await consumer._life.running().session.brokers.call(QUEUE.broker_name, code, header)


async def taken(one: Member) -> None:
    """Wait until a member has the queue, and see that it has not begun to pull it."""
    await until(one.queues, "the queue")
    joined = one.consumer._life.member
    assert joined is not None
    assert joined.parts.queues.pulled[QUEUE].delayed


async def test_what_the_last_owner_commits_during_the_delay_is_not_handled_again() -> None:
    async with cluster(1, 1) as running:
        bodies = await send(running.address, 5)
        async with member(running.address, profile=JAVA_V5) as one:
            await taken(one)
            await commit(one.consumer, 3)
            await until(lambda: len(one.got) >= 2, "the rest")
            assert {each.queue_offset for each in one.got} == {3, 4}
            assert len(bodies) == 5


async def test_without_a_stored_offset_the_queue_starts_where_it_was_to_before_the_delay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of the queue, found anew, would be behind what was sent during the delay."""
    async with cluster(1, 1) as running, member(running.address, profile=JAVA_V5) as one:
        await taken(one)
        joined = one.consumer._life.member
        assert joined is not None

        async def nothing(_: MessageQueue) -> int:
            return NO_OFFSET

        monkeypatch.setattr(joined.parts.offsets, "read", nothing)
        bodies = await send(running.address, 2)
        await until(lambda: sorted(one.bodies) == bodies, "both messages")


async def test_a_pull_consumer_reads_the_offset_after_its_delay_too() -> None:
    slow = msgspec.structs.replace(V5, prompt_pause=V5.pull_start_delay)
    async with cluster(1, 1) as running:
        await send(running.address, 5)
        consumer = PullConsumer(running.address, group="audit", consume_from=FIRST, profile=slow)
        async with consumer:
            consumer.subscribe("orders")
            await until(consumer.assignment, "the queue")
            await commit(consumer, 3, "audit")
            assert [each.queue_offset for each in await consumer.poll(5.0)] == [3, 4]
