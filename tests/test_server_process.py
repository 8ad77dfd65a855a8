"""Waiting for a condition: not at the cost of what is waited for, and to the last moment."""

import time

import pytest

from tests.server_process import wait_for


def test_costly_looks_leave_the_processors_to_others() -> None:
    looks = 0

    def tenth() -> bool:
        nonlocal looks
        looks += 1
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        return looks == 10

    began, worked = time.monotonic(), time.thread_time()
    wait_for(tenth, "ten looks")
    assert time.thread_time() - worked < 0.35 * (time.monotonic() - began)


def test_what_comes_true_in_the_last_pause_is_found() -> None:
    looks = iter([False, True, True])
    wait_for(lambda: next(looks), "the second look", 0.0)


def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(AssertionError, match=r"waited 0\.0 s in vain for rain"):
        wait_for(lambda: False, "rain", 0.0)
