"""The queues of messages: one after another, also of those that are chosen for in advance."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("google.protobuf")

from pocketmq.model import MessageQueue
from pocketmq.proxy.target_queues import TargetQueues

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(3)]


@given(st.integers(0, 100), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=5))
def test_choices_in_advance_are_those_of_one_message_after_another(
    seed: int, steps: list[tuple[int, int]]
) -> None:
    asyncio.run(choose_both_ways(seed, steps))


async def choose_both_ways(seed: int, steps: list[tuple[int, int]]) -> None:
    single, advance = TargetQueues(Random(seed)), TargetQueues(Random(seed))
    for count, unused in steps:
        found = advance.choose_in_turn(QUEUES, count)
        chosen = [found[number % len(found)] for number in range(count)]
        assert chosen == [single.choose(QUEUES, "") for _ in range(count)]
        assert sorted(found, key=QUEUES.index) == QUEUES
        for choice in (single, advance):
            choice.take_back("orders", min(unused, count))
        assert advance.choose(QUEUES, "") == single.choose(QUEUES, "")
