"""The machine's clock."""

import time

from pocketmq.client.clock import SystemClock, new_random


def test_the_clock_tells_the_machines_time() -> None:
    clock = SystemClock()
    before = time.time()
    now, now_ms = clock.now(), clock.now_ms()
    assert before <= now <= now_ms / 1000 + 0.001
    assert now_ms <= time.time() * 1000


def test_ticks_only_grow_whoever_asks() -> None:
    ticks = [SystemClock().tick() for _ in range(1000)]
    assert ticks == sorted(set(ticks))


def test_each_source_of_chance_goes_its_own_way() -> None:
    assert len({new_random().random() for _ in range(10)}) == 10
