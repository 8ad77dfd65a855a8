"""The wheel gives out what is due, in order, whatever was put in and however it is asked."""

import sys
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.timers import wheel as wheel_module

NOW = 1_700_000_030_000
DELAYS = st.one_of(st.integers(-5_000, 5_000), st.integers(0, 200_000), st.integers(0, 300_000_000))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(DELAYS, max_size=20)),
        st.tuples(st.just("wait"), st.integers(0, 150_000)),
        st.tuples(st.just("take"), st.integers(1, 10)),
        st.tuples(st.just("give back"), st.integers(1, 10)),
        st.tuples(st.just("prepare"), st.integers(1, 10)),
        st.tuples(st.just("drop"), st.integers(0, 30)),
    ),
    max_size=30,
)


@given(STEPS)
def test_what_is_due_comes_out_in_order_and_nothing_else(steps: list[tuple[str, object]]) -> None:
    wheel, waiting, now, offset = wheel_module.TimerWheel(), set[wheel_module.Entry](), NOW, 0
    for what, value in steps:
        if isinstance(value, list):
            added = [(now + delay, offset + n) for n, delay in enumerate(value)]
            offset += len(value)
            waiting |= set(added)
            wheel.add(added)
            continue
        assert isinstance(value, int)
        if what == "wait":
            now += value
        elif what == "prepare":
            wheel.prepare(now, value)
        elif what == "drop":
            assert sorted(wheel.before(value)) == sorted(e for e in waiting if e[1] < value)
            wheel.drop_before(value)
            waiting = {entry for entry in waiting if entry[1] >= value}
        else:
            taken = wheel.take_due(now, value)
            assert taken == sorted(entry for entry in waiting if entry[0] <= now)[:value]
            if what == "give back":
                wheel.put_back(taken)
            else:
                waiting -= set(taken)
        assert wheel.count == len(waiting)
        look = wheel.next_look_ms()
        assert (look is None) == (not waiting)
        assert look is None or look <= min(waiting)[0]
    assert wheel.take_due(NOW + 10**10, 10**6) == sorted(waiting)
    assert (wheel.count, wheel.next_look_ms()) == (0, None)


def test_minutes_are_cut_a_little_at_a_time() -> None:
    wheel = wheel_module.TimerWheel()
    wheel.add([(NOW + 60_000 + n, n) for n in range(100)])
    assert wheel.prepare(NOW, 40)
    assert wheel.prepare(NOW, 40)
    assert not wheel.prepare(NOW, 40)
    assert [offset for _, offset in wheel.take_due(NOW + 70_000, 1000)] == list(range(100))


def test_minutes_far_away_are_left_alone() -> None:
    wheel = wheel_module.TimerWheel()
    wheel.add([(NOW + 600_000, 1)])
    assert not wheel.prepare(NOW, 40)
    assert wheel.take_due(NOW + 599_999, 10) == []
    assert wheel.take_due(NOW + 600_000, 10) == [(NOW + 600_000, 1)]


def steps_of_a_tick(waiting: int) -> int:
    """Count the lines a wheel executes in a tick while messages wait that are days ahead."""
    wheel, count = wheel_module.TimerWheel(), 0
    hour, days = 3_600_000, 3 * 24 * 3_600_000
    wheel.add((NOW + hour + n * (days - hour) // waiting, n) for n in range(waiting))

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line" and frame.f_code.co_filename == wheel_module.__file__
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for tick in range(10):
            now_ms = NOW + tick * 1000
            assert not wheel.prepare(now_ms, 1000)
            assert wheel.take_due(now_ms, 1000) == []
            look = wheel.next_look_ms()
            assert look is not None
            assert look > now_ms
    finally:
        sys.settrace(before)
    assert wheel.count == waiting
    return count


def test_a_million_that_wait_cost_a_tick_no_more_than_ten() -> None:
    assert steps_of_a_tick(1_000_000) == steps_of_a_tick(10) > 0
