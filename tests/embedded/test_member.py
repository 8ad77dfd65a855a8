"""When a broker that ended by itself is started again."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.embedded.member import LONGEST_WAIT, STEADY, failures_after, restart_wait


def test_waits_double_up_to_a_bound() -> None:
    assert [restart_wait(failures) for failures in range(1, 12)] == [
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0,
    ]  # fmt: skip


@given(st.integers(min_value=0))
def test_no_wait_is_longer_than_the_bound_or_none_at_all(failures: int) -> None:
    assert 0.1 <= restart_wait(failures) <= LONGEST_WAIT


def test_a_steady_life_makes_up_for_earlier_failures() -> None:
    assert failures_after(7, STEADY) == 1
    assert failures_after(7, STEADY - 0.1) == 8
