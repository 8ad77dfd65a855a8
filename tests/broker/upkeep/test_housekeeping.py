"""Jumps of the clock are told once each, with their size."""

import logging

import pytest

from pocketmq.broker.upkeep.housekeeping import ClockWatch
from tests.broker.tables import Clock


def test_each_jump_of_the_clock_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = ClockWatch(clock, clock.steady)

    def tell(jump: float) -> list[str]:
        caplog.clear()
        clock.off += jump
        with caplog.at_level(logging.WARNING, "pocketmq.broker"):
            for _ in range(3):
                clock.time += 1.0
                watch.look()
        return [record.getMessage().partition(";")[0] for record in caplog.records]

    assert tell(0) == []
    assert tell(86_400) == ["system clock jumped forward: seconds=+86400.0"]
    assert tell(-86_400) == ["system clock jumped back: seconds=-86400.0"]
    assert tell(0.5) == []
    clock.time += 3600  # the broker was busy, or stopped: the clock was not set
    assert tell(0) == []


class PausedClock(Clock):
    """The clock of a process that is stopped for a while right after it has read the time."""

    pause = 0.0

    def now(self) -> float:
        found = super().now()
        self.time += self.pause
        return found


def test_a_pause_between_the_reads_of_two_clocks_is_no_jump(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, told = PausedClock(), list[str]()
    clock.pause = 5.0
    for paused_at_the_start in (True, False):
        watch = ClockWatch(clock, clock.steady)
        watch.when_set_back.append(lambda: told.append("set back"))
        for pause in (0.0, 5.0, 0.0):
            clock.pause = pause
            watch.look()
        assert (caplog.messages, told) == ([], []), paused_at_the_start
    clock.off += 86_400
    watch.look()
    assert "system clock jumped forward" in caplog.text
