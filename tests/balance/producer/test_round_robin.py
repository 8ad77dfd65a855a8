"""Taking turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.producer.round_robin import RoundRobin
from tests.balance.producer.vectors import named, queues_of

brokers = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(1, 5)),
    min_size=1,
    max_size=5,
    unique_by=lambda pair: pair[0],
)
indexes = st.integers(-(2**31), 2**31 - 1)


@given(brokers, st.integers(0, 2**31 - 200))
def test_every_queue_has_its_turn_once_in_a_cycle(brokers: list[tuple[str, int]], at: int) -> None:
    queues = queues_of(brokers)
    robin = RoundRobin(at)
    for _ in range(2):
        cycle = [robin.next(queues) for _ in queues]
        assert sorted(map(queues.index, cycle)) == list(range(len(queues)))


@given(brokers, indexes)
def test_a_turn_never_leaves_the_list_even_past_the_overflow(
    brokers: list[tuple[str, int]], at: int
) -> None:
    queues = queues_of(brokers)
    robin = RoundRobin(at)
    assert all(robin.next(queues) in queues for _ in range(5))


@given(brokers, indexes, st.sampled_from("abcde"))
def test_avoiding_a_broker_gives_another_one_if_there_is_one(
    brokers: list[tuple[str, int]], at: int, avoid: str
) -> None:
    queues = queues_of(brokers)
    picked = RoundRobin(at).next_avoiding(queues, avoid)
    alone = {queue.broker_name for queue in queues} == {avoid}
    # At the overflow the turn jumps, and Java too may look at some queues twice and miss others.
    if (at & 0x7FFF_FFFF) < 0x7FFF_FFFF - len(queues):
        assert (picked.broker_name == avoid) == alone


def test_a_broker_that_is_alone_is_not_avoided_but_costs_turns() -> None:
    queues = queues_of([("a", 3)])
    robin = RoundRobin(0)
    assert named(robin.next_avoiding(queues, "a")) == ["a", 1]  # three looks, then the fourth turn
    assert robin.index == 4


@pytest.mark.parametrize(
    ("start", "turns"),
    [
        (0, [1, 2, 3]),
        (-1, [0, 1, 2]),
        (2**31 - 2, [2**31 - 1, 0, 1]),
        (2**31 - 1, [0, 1, 2]),
        (-(2**31), [1, 2, 3]),
    ],
)
def test_the_index_wraps_to_zero_after_the_largest_int(start: int, turns: list[int]) -> None:
    robin = RoundRobin(start)
    assert [robin.advance() for _ in turns] == turns


def test_chance_decides_where_to_begin_and_where_to_restart() -> None:
    asked = []

    def chance(below: int) -> int:
        asked.append(below)
        return 41

    robin = RoundRobin.begun_by(chance)
    assert robin.advance() == 42
    robin.restart(chance)
    assert robin.advance() == 42
    assert asked == [2**32, 2**31 - 1]
