"""The timer that delays, timers, transaction checks and pops share, in leaps of time."""

import asyncio
import logging

import pytest

from pocketmq.broker.core.alarm import LONGEST_SLEEP, RETRY_AFTER, Alarm
from tests.loops import leap, leaping


class Ring:
    """Counts how often an alarm calls it, and fails as often as asked."""

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.alarm = Alarm("work in a test", self.work, asyncio.get_running_loop())

    def work(self) -> None:
        self.count += 1
        if self.failures:
            self.failures -= 1
            raise ValueError("for once")


@leaping
async def test_the_work_is_called_once_at_its_moment() -> None:
    ring = Ring()
    assert not ring.alarm.is_set
    ring.alarm.wake_at(13_000, now_ms=10_000)
    await leap(2.9)
    assert (ring.count, ring.alarm.is_set) == (0, True)
    await leap(0.2)
    assert (ring.count, ring.alarm.is_set) == (1, False)
    await leap(100)
    assert ring.count == 1


@leaping
async def test_the_earliest_moment_wins() -> None:
    ring = Ring()
    ring.alarm.wake_after(3.0)
    ring.alarm.wake_after(1.0)
    ring.alarm.wake_after(2.0)
    await leap(0.9)
    assert ring.count == 0
    await leap(0.2)
    assert ring.count == 1
    await leap(10)
    assert ring.count == 1, "later moments are the work's to set again"


@leaping
async def test_a_moment_that_is_over_is_not_waited_for() -> None:
    ring = Ring()
    ring.alarm.wake_at(1, now_ms=10_000)
    assert ring.count == 0, "never within the call that sets the alarm"
    await leap(0.0)
    assert ring.count == 1


@leaping
async def test_a_far_moment_of_the_wall_clock_is_looked_at_early() -> None:
    """The wall clock may be set forward; the loop's clock may not."""
    ring = Ring()
    ring.alarm.wake_at(3_600_000, now_ms=0)
    await leap(LONGEST_SLEEP + 0.1)
    assert ring.count == 1
    ring.alarm.wake_after(3600.0)
    await leap(LONGEST_SLEEP + 0.1)
    assert ring.count == 1


@leaping
async def test_work_that_raises_is_logged_by_name_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ring = Ring()
    ring.failures = 1
    ring.alarm.wake_after(0)
    await leap(0.0)
    (record,) = caplog.records
    assert record.getMessage() == "work in a test failed, retrying"
    assert (record.name, record.levelno) == ("pocketmq.broker", logging.ERROR)
    assert record.exc_info is not None
    await leap(RETRY_AFTER - 0.1)
    assert ring.count == 1
    await leap(0.2)
    assert (ring.count, ring.alarm.is_set) == (2, False)
    assert len(caplog.records) == 1


@leaping
async def test_a_stopped_alarm_calls_nothing_any_more() -> None:
    ring = Ring()
    ring.alarm.wake_after(1.0)
    ring.alarm.stop()
    ring.alarm.wake_after(1.0)
    assert not ring.alarm.is_set
    await leap(10)
    assert ring.count == 0
