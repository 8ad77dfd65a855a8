"""The machine's clock."""

import time
from concurrent.futures import ThreadPoolExecutor

from pocketmq.client.clock import SystemClock, new_random


def test_the_clock_tells_the_machines_time() -> None:
    clock = SystemClock()
    before = time.time()
    now, now_ms = clock.now(), clock.now_ms()
    assert before <= now <= now_ms / 1000 + 0.001
    assert now_ms <= time.time() * 1000


def test_no_tick_is_given_twice_whoever_asks() -> None:
    with ThreadPoolExecutor(4) as pool:
        ticks = list(pool.map(lambda _: SystemClock().tick(), range(10_000)))
    assert len(set(ticks)) == 10_000


def test_each_source_of_chance_goes_its_own_way() -> None:
    assert len({new_random().random() for _ in range(10)}) == 10
