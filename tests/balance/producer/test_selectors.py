"""Choosing by key, chance, room, queue and function."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.producer import selectors
from pocketmq.errors import InvalidInput, QueueNotSelected
from pocketmq.model import Message, MessageQueue
from tests.balance.producer.vectors import TOPIC, named, queues_of

QUEUES = queues_of([("a", 3), ("b", 2)])
MESSAGE = Message(TOPIC, b"x")


@pytest.mark.parametrize(
    ("key", "hashed", "picked_of_five"),
    [
        ("", 0, 0),
        ("a", 97, 2),
        ("Aa", 2112, 2),
        ("BB", 2112, 2),
        ("polygenelubricants", -(2**31), 3),  # the smallest int: abs(-2147483648 % 5) is 3
        (7, 7, 2),
        (-7, -7, 2),
        (-(2**31), -(2**31), 3),
        (2**31, -(2**31), 3),  # a long from here on
        (2**32, 1, 1),
        (2**63 - 1, -(2**31), 3),
        (True, 1231, 1),
        (False, 1237, 2),
    ],
)
def test_an_ordering_key_is_hashed_as_java_does(
    key: str | int, hashed: int, picked_of_five: int
) -> None:
    assert selectors.key_hash(key) == hashed
    assert selectors.by_hash(QUEUES, key) is QUEUES[picked_of_five]


def test_javas_long_hash_differs_for_small_negative_numbers() -> None:
    assert (selectors.key_hash(-1), selectors.long_hash(-1)) == (-1, 0)
    assert (selectors.key_hash(-7), selectors.long_hash(-7)) == (-7, 6)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_past_64_bits_is_no_ordering_key(number: int) -> None:
    with pytest.raises(InvalidInput, match="must fit in 64 bits"):
        selectors.by_hash(QUEUES, number)


@pytest.mark.parametrize("key", [b"bytes", 1.5, None, ("a",)])
def test_an_ordering_key_is_text_or_a_number(key: object) -> None:
    with pytest.raises(InvalidInput, match="must be str or int, not "):
        selectors.by_hash(QUEUES, key)  # type: ignore[arg-type]


@given(st.text() | st.integers(-(2**63), 2**63 - 1), st.integers(1, 20))
def test_the_index_is_the_absolute_value_of_javas_remainder(key: str | int, n: int) -> None:
    remainder = math.fmod(
        selectors.key_hash(key), n
    )  # keeps the sign of the hash, as Java's % does
    assert selectors.by_hash(queues_of([("a", n)]), key).queue_id == abs(remainder)


def test_chance_is_asked_for_one_of_as_many_as_there_are() -> None:
    asked = []

    def chance(below: int) -> int:
        asked.append(below)
        return 4

    assert named(selectors.by_chance(QUEUES, chance)) == ["b", 1]
    assert asked == [5]


def test_without_queues_nothing_is_selected() -> None:
    with pytest.raises(InvalidInput, match="no queues"):
        selectors.by_hash([], "key")
    with pytest.raises(InvalidInput, match="no queues"):
        selectors.by_chance([], lambda _: 0)


def test_queues_of_the_rooms_take_turns() -> None:
    queues = queues_of([("east@b1", 2), ("west@b2", 1), ("b3", 1), ("a@b@c", 1)])
    robin = selectors.RoundRobin(-1)
    picks = [named(selectors.by_machine_room(queues, {"east"}, robin)) for _ in range(3)]
    assert picks == [["east@b1", 0], ["east@b1", 1], ["east@b1", 0]]
    assert named(selectors.by_machine_room(queues, {"west", "a"}, robin)) == ["west@b2", 0]


def test_a_room_without_brokers_is_said_so() -> None:
    with pytest.raises(QueueNotSelected, match="no broker in these machine rooms: north, south"):
        selectors.by_machine_room(QUEUES, {"south", "north"}, selectors.RoundRobin(0))


def test_a_pinned_queue_must_be_in_the_route_and_of_the_messages_topic() -> None:
    queue = MessageQueue(TOPIC, "b", 1)
    assert selectors.pinned(frozenset(QUEUES), queue, TOPIC) is queue
    with pytest.raises(QueueNotSelected, match=r"queue_id=2.*is not a writable queue of the route"):
        selectors.pinned(QUEUES, MessageQueue(TOPIC, "b", 2), TOPIC)
    with pytest.raises(InvalidInput, match="the message is for topic 'other'"):
        selectors.pinned(QUEUES, queue, "other")


def test_a_function_chooses_with_the_message_and_its_argument() -> None:
    def third(queues: Sequence[MessageQueue], message: Message, argument: object) -> MessageQueue:
        assert (message, argument) == (MESSAGE, "arg")
        return queues[2]

    assert selectors.by_function(QUEUES, MESSAGE, "arg", third) is QUEUES[2]


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (None, "the selector returned NoneType, not a MessageQueue"),
        (3, "the selector returned int, not a MessageQueue"),
        (MessageQueue(TOPIC, "z", 0), "broker_name='z', queue_id=0.*not one of the queues"),
    ],
)
def test_a_function_must_give_one_of_the_queues(gives: object, said: str) -> None:
    with pytest.raises(QueueNotSelected, match=said):
        selectors.by_function(QUEUES, MESSAGE, None, lambda *_: gives)  # type: ignore[arg-type]


def test_a_functions_own_error_passes_through() -> None:
    def broken(*_: object) -> MessageQueue:
        raise KeyError("customer")

    with pytest.raises(KeyError, match="customer"):
        selectors.by_function(QUEUES, MESSAGE, None, broken)


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
    robin = selectors.RoundRobin(at)
    for _ in range(2):
        cycle = [robin.next(queues) for _ in queues]
        assert sorted(map(queues.index, cycle)) == list(range(len(queues)))


@given(brokers, indexes)
def test_a_turn_never_leaves_the_list_even_past_the_overflow(
    brokers: list[tuple[str, int]], at: int
) -> None:
    queues = queues_of(brokers)
    robin = selectors.RoundRobin(at)
    assert all(robin.next(queues) in queues for _ in range(5))


@given(brokers, indexes, st.sampled_from("abcde"))
def test_avoiding_a_broker_gives_another_one_if_there_is_one(
    brokers: list[tuple[str, int]], at: int, avoid: str
) -> None:
    queues = queues_of(brokers)
    picked = selectors.RoundRobin(at).next_avoiding(queues, avoid)
    alone = {queue.broker_name for queue in queues} == {avoid}
    # At the overflow the turn jumps, and Java too may look at some queues twice and miss others.
    if (at & 0x7FFF_FFFF) < 0x7FFF_FFFF - len(queues):
        assert (picked.broker_name == avoid) == alone


def test_a_broker_that_is_alone_is_not_avoided_but_costs_turns() -> None:
    queues = queues_of([("a", 3)])
    robin = selectors.RoundRobin(0)
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
    robin = selectors.RoundRobin(start)
    assert [robin.advance() for _ in turns] == turns


def test_chance_decides_where_to_begin_and_where_to_restart() -> None:
    asked = []

    def chance(below: int) -> int:
        asked.append(below)
        return 41

    robin = selectors.RoundRobin.begun_by(chance)
    assert robin.advance() == 42
    robin.restart(chance)
    assert robin.advance() == 42
    assert asked == [2**32, 2**31 - 1]
