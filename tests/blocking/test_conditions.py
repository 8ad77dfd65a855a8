"""The condition of futures: what `threading.Condition` promises to those who wait for it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pocketmq.blocking.conditions import SteadyCondition
from tests.server_process import wait_for


def test_all_threads_that_wait_are_woken_and_none_is_without_a_notice() -> None:
    condition = SteadyCondition()

    def waits(timeout: float | None) -> bool:
        with condition:
            return condition.wait(timeout)

    with ThreadPoolExecutor(8) as threads:
        woken = [threads.submit(waits, timeout) for timeout in (None, 30.0) * 4]
        wait_for(lambda: len(condition._sleepers) == len(woken), "threads to wait")
        assert [waits(timeout) for timeout in (0, -1, 0.001)] == [False] * 3
        with condition:
            condition.notify_all()
        assert all(each.result(30) for each in woken)
    assert not condition._sleepers
    assert not waits(0)


def test_a_thread_that_holds_it_twice_releases_it_while_it_waits() -> None:
    """As a signal handler does that waits for a future which its thread is about to wait for."""
    condition = SteadyCondition()

    def notify() -> None:
        with condition:
            condition.notify_all()

    with ThreadPoolExecutor(1) as other:
        with condition:
            with condition:
                notified = other.submit(notify)
                assert condition.wait(30)
            assert not other.submit(condition.acquire, blocking=False).result(30)
        notified.result(30)


def test_a_thread_that_does_not_hold_it_cannot_wait() -> None:
    with pytest.raises(RuntimeError):
        SteadyCondition().wait(0)
