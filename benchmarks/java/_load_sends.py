"""Our producers under load: what `_load` lets them do."""

import asyncio
import time
from collections import deque
from concurrent.futures import Future
from typing import Any

import pocketmq as mq
from benchmarks.java._load_lines import say
from pocketmq import aio
from pocketmq.net.loops import run as run_loop

BODY = b"x" * 100


def one(producer: mq.Producer, topic: str, seconds: str, level: str = "0") -> None:
    start, delay = time.perf_counter(), int(level) or None
    end, count = start + float(seconds), 0
    while time.perf_counter() < end:
        producer.send(mq.Message(topic, BODY), delay_level=delay)
        count += 1
    say("done", count, time.perf_counter() - start)


def flight(
    namesrv: str, options: dict[str, Any], topic: str, depth: str, seconds: str, level: str = "0"
) -> None:
    """Keep so many messages in flight: as many coroutines, each with one at a time."""
    delay = int(level) or None

    async def lane(producer: aio.Producer, end: float) -> int:
        count = 0
        while time.perf_counter() < end:
            try:
                await producer.send(mq.Message(topic, BODY), delay_level=delay)
            except mq.MQError:  # a broker that is too busy refuses
                continue
            count += 1
        return count

    async def run() -> None:
        made = aio.Producer(namesrv, group="side-flight", send_timeout=30.0, **options)
        async with made as producer:
            start = time.perf_counter()
            end = start + float(seconds)
            counts = await asyncio.gather(*[lane(producer, end) for _ in range(int(depth))])
            say("done", sum(counts), time.perf_counter() - start)

    run_loop(run())


def batch(producer: mq.Producer, topic: str, size: str, seconds: str) -> None:
    start = time.perf_counter()
    end, count, each = start + float(seconds), 0, int(size)
    while time.perf_counter() < end:
        producer.send_batch([mq.Message(topic, BODY) for _ in range(each)])
        count += each
    say("done", count, time.perf_counter() - start)


def submit(producer: mq.Producer, topic: str, seconds: str) -> None:
    """Submit from this thread; every receipt is looked at, when it is there."""
    waiting: deque[Future[mq.SendReceipt]] = deque()
    start = time.perf_counter()
    end, count = start + float(seconds), 0
    while time.perf_counter() < end:
        for _ in range(64):
            waiting.append(producer.submit(mq.Message(topic, BODY)))
        count += 64
        while waiting[0].done():
            assert waiting.popleft().result().ok
            if not waiting:
                break
    for future in waiting:
        assert future.result().ok
    say("done", count, time.perf_counter() - start)


def transact(producer: mq.Producer, topic: str, seconds: str) -> None:
    """Send half messages and commit each."""

    def local(_: mq.Message, __: str) -> mq.TransactionState:
        return mq.TransactionState.COMMIT

    start = time.perf_counter()
    end, count = start + float(seconds), 0
    while time.perf_counter() < end:
        assert producer.send_in_transaction(mq.Message(topic, BODY), local).ok
        count += 1
    say("done", count, time.perf_counter() - start)


def fill(producer: mq.Producer, topic: str, count: str) -> None:
    start, wanted = time.perf_counter(), int(count)
    for sent in range(0, wanted, 256):
        producer.send_batch([mq.Message(topic, BODY) for _ in range(min(256, wanted - sent))])
    say("done", wanted, time.perf_counter() - start)


def stamped(number: int) -> bytes:
    return (b"%d %d " % (number, time.time_ns() // 1000)).ljust(100, b"x")


def drip(producer: mq.Producer, topic: str, count: str, rate: str) -> None:
    start = time.perf_counter()
    for number in range(int(count)):
        wait = start + number / float(rate) - time.perf_counter()
        if wait > 0:
            time.sleep(wait)  # the pace that was asked for
        producer.send(mq.Message(topic, stamped(number)))
    say("done", count, time.perf_counter() - start)
