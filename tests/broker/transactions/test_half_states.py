"""One byte for each half message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.transactions import half_states

ENDED = (half_states.COMMITTED, half_states.ROLLED_BACK)


@given(
    st.dictionaries(st.integers(0, 300), st.sampled_from([0, 1, 250, 253, 254, 255])),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_states_are_those_that_were_set(changes: dict[int, int], start: int, stop: int) -> None:
    states = half_states.HalfStates()
    for offset, state in changes.items():
        states.set(offset, state)
    expected = {n: changes.get(n, half_states.OPEN) for n in range(301)}
    assert {n: states.get(n) for n in range(301)} == expected
    still_open = [
        (n, expected[n]) for n in range(start, stop) if expected[n] <= half_states.MOST_CHECKS
    ]
    assert list(states.open_from(start, stop)) == still_open
    assert half_states.unpack_states(half_states.pack_states(states.copy())) == states.copy()


def test_the_first_open_one_is_found_behind_those_that_ended() -> None:
    states = half_states.HalfStates(7, bytes([255, 254, 3, 0]))
    assert states.first_open(11) == 9
    assert states.first_open(9) == 9
    assert states.first_open(8) == 8
    assert states.end == 11
    assert half_states.HalfStates(7, b"\xff\xff").first_open(20) == 9


def test_what_ended_long_ago_is_forgotten_and_not_changed_any_more() -> None:
    states = half_states.HalfStates(0, b"\xff" * 200_000 + b"\0")
    states.trim()
    assert states.base == 200_000 - 65_536
    assert states.get(0) is None
    states.set(0, half_states.OPEN)
    assert states.get(0) is None
    assert states.get(200_000 - 1) == half_states.COMMITTED
    assert states.first_open(300_000) == 200_000


def test_a_few_that_ended_are_remembered() -> None:
    states = half_states.HalfStates(0, b"\xff" * 1000)
    states.trim()
    assert states.get(0) == half_states.COMMITTED


def test_states_follow_a_queue_that_was_cut_or_created_again() -> None:
    states = half_states.HalfStates(10, b"\1\2\3\4")
    states.cut(11, 13)
    assert (states.base, states.copy()) == (11, b"\2\3")
    states.cut(20, 30)
    assert (states.base, states.copy()) == (20, b"")
    states.set(25, 5)
    states.cut(0, 3)
    assert (states.base, states.copy()) == (3, b"")


def test_what_was_not_packed_cannot_be_unpacked() -> None:
    with pytest.raises(ValueError, match="incorrect header"):
        half_states.unpack_states(b"nonsense")
