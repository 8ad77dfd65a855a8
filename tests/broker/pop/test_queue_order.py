"""Pops of topics with priorities: the most urgent first, failed ones after all others."""

import json
from typing import Any

import pytest

from pocketmq.broker.pop.sources import priority_factor, queue_order
from pocketmq.model import GroupConfig, TopicConfig
from tests.broker.pop import counter
from tests.broker.running import Client, client, running, send_fields
from tests.loops import leap, leaping

T = "urgent"
PRIORITY = {"message.type": "PRIORITY"}


@pytest.mark.parametrize(
    ("count", "chance", "ascending", "order"),
    [
        (4, 0, True, [0, 1, 2, 3]),
        (4, 99, True, [3, 0, 1, 2]),
        (4, 99, False, [3, 0, 1, 2]),
        (4, None, True, [3, 2, 1, 0]),
        (4, None, False, [0, 1, 2, 3]),
        (1, None, True, [0]),
        (0, None, True, []),
        (0, 5, True, []),
    ],
)
def test_queues_are_read_from_a_random_one_on_or_by_priority(
    count: int, chance: int | None, ascending: bool, order: list[int]
) -> None:
    assert list(queue_order(count, chance, ascending=ascending)) == order


@pytest.mark.parametrize(
    ("topic", "group", "factor"),
    [
        (None, {}, 0),
        ({}, {"priority.factor": "100"}, 0),
        ({"message.type": "FIFO"}, {}, 0),
        (PRIORITY, None, 100),
        (PRIORITY, {}, 100),
        (PRIORITY, {"priority.factor": "0"}, 0),
        (PRIORITY, {"priority.factor": "30"}, 30),
    ],
)
def test_a_topics_type_and_a_groups_factor_decide_how_often(
    topic: dict[str, str] | None, group: dict[str, str] | None, factor: int
) -> None:
    found = None if topic is None else TopicConfig(topic_name=T, attributes=topic)
    known = None if group is None else GroupConfig(group_name="G", attributes=group)
    assert priority_factor(found, known) == factor


async def create(peer: Client, queues: int = 4, attributes: str = "+message.type=PRIORITY") -> None:
    fields = {
        "topic": T, "defaultTopic": "TBW102", "readQueueNums": str(queues), "order": "false",
        "writeQueueNums": str(queues), "perm": "6", "topicFilterType": "SINGLE_TAG",
        "attributes": attributes,
    }  # fmt: skip
    answer = await peer.ask(17, fields)
    assert answer.code == 0, answer.remark


async def send(peer: Client, *priorities: int) -> None:
    for priority in priorities:
        fields = send_fields(T, f"UNIQ_KEY\1K\2_SYS_MSG_PRIORITY_\1{priority}\2")
        assert (await peer.ask(310, fields, b"%d" % priority)).code == 0


async def popped(peer: Client, count: int, **changes: Any) -> list[str]:
    """Pop one message at a time, as often as asked for."""
    found: list[str] = []
    for _ in range(count):
        found += counter.bodies(await counter.pop(peer, T, maxMsgNums=1, **changes))
    return found


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({}, ["3", "2", "2", "1", "0", "0"]),
        ({"priority_order_asc": False}, ["0", "0", "1", "2", "2", "3"]),
    ],
)
async def test_the_most_urgent_come_first(settings: dict[str, Any], order: list[str]) -> None:
    async with running(**settings) as (_, address), client(address) as peer:
        await create(peer)
        await send(peer, 0, 2, 1, 3, 0, 2)
        assert await popped(peer, 6) == order


async def test_an_urgent_message_overtakes_those_that_wait() -> None:
    async with running() as (_, address), client(address) as peer:
        await create(peer)
        await send(peer, 1, 1, 1)
        assert await popped(peer, 1) == ["1"]
        await send(peer, 3)
        assert await popped(peer, 3) == ["3", "1", "1"]


async def test_a_group_may_do_without_priorities() -> None:
    async with running() as (_, address), client(address) as peer:
        await create(peer, queues=8)
        await send(peer, *range(8))
        first: set[str] = set()
        for number in range(30):  # the queue that a pop begins with is random
            name = f"G{number}"
            group = {"groupName": name, "attributes": {"+priority.factor": "0"}}
            assert (await peer.ask(200, {}, json.dumps(group).encode())).code == 0
            first.update(counter.bodies(await counter.pop(peer, T, name, maxMsgNums=1)))
        assert len(first) > 1
        assert await popped(peer, 8, group="H") == [str(n) for n in range(7, -1, -1)]


@leaping
@pytest.mark.parametrize(
    ("probability", "order"), [(0, ["2", "1", "0", "3"]), (100, ["3", "2", "1", "0"])]
)
async def test_failed_messages_come_after_all_others_or_before_them(
    probability: int, order: list[str]
) -> None:
    async with (
        running(pop_from_retry_probability_for_priority=probability) as (_, address),
        client(address) as peer,
    ):
        await create(peer)
        await send(peer, 3)
        assert await popped(peer, 1, invisibleTime=1000) == ["3"]
        await send(peer, 0, 1, 2)
        await leap(2)
        assert await popped(peer, 4) == order
