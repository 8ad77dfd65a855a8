"""Threads that share slices: every message is handled once, and every offset passed."""

import random
import sys
import time
from collections import Counter

from pocketmq.protocol import ReceivedMessage
from tests.client.push import stands
from tests.loops import until


async def test_every_message_is_handled_once_however_threads_meet() -> None:
    seen: list[int] = []
    chance = random.Random(11)

    def handler(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)
        if chance.random() < 0.01:
            time.sleep(0.001)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads meet in the middle of everything
    try:
        async with stands.stand(handler, threads=8) as (one, _):
            held = one.hold()
            for first in range(0, 6000, 300):
                one.arrive(held, stands.messages(300, first=first))
            await until(lambda: one.offsets.get(stands.QUEUE) == 6000, "all to be settled", 60.0)
            stats = one.work.stats.of("orders")
            assert (stats.ok.value, stats.consume_rt.times) == (6000, 6000)
    finally:
        sys.setswitchinterval(before)
    assert set(Counter(seen).values()) == {1}
    assert len(seen) == 6000
