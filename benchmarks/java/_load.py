"""Our client under load, told what to do by lines on its input; the twin of `SideLoad.java`.

python -m benchmarks.java._load NAME_SERVER
"""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pocketmq as mq
from pocketmq import aio
from pocketmq.protocol import ReceivedMessage

BODY = b"x" * 100
FIRST = mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def one(producer: mq.Producer, topic: str, seconds: str) -> None:
    start = time.perf_counter()
    end, count = start + float(seconds), 0
    while time.perf_counter() < end:
        producer.send(mq.Message(topic, BODY))
        count += 1
    say("done", count, time.perf_counter() - start)


def flight(namesrv: str, topic: str, depth: str, seconds: str) -> None:
    """Keep so many messages in flight: as many coroutines, each with one at a time."""

    async def lane(producer: aio.Producer, end: float) -> int:
        count = 0
        while time.perf_counter() < end:
            with suppress(mq.MQError):  # a broker that is too busy refuses
                await producer.send(mq.Message(topic, BODY))
                count += 1
        return count

    async def run() -> None:
        async with aio.Producer(namesrv, group="side-flight", send_timeout=30.0) as producer:
            start = time.perf_counter()
            end = start + float(seconds)
            counts = await asyncio.gather(*[lane(producer, end) for _ in range(int(depth))])
            say("done", sum(counts), time.perf_counter() - start)

    asyncio.run(run())


def batch(producer: mq.Producer, topic: str, size: str, seconds: str) -> None:
    start = time.perf_counter()
    end, count, each = start + float(seconds), 0, int(size)
    while time.perf_counter() < end:
        producer.send_batch([mq.Message(topic, BODY) for _ in range(each)])
        count += each
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


class Backlog:
    """Counts messages, and the time from an eighth of them to the last."""

    def __init__(self, count: int) -> None:
        self.count, self.warm = count, count // 8
        self.seen = 0
        self.began = self.ended = 0.0
        self.over = asyncio.Event()

    async def many(self, messages: list[ReceivedMessage]) -> None:
        self._add(len(messages))

    async def one(self, _: ReceivedMessage) -> None:
        self._add(1)

    def _add(self, number: int) -> None:
        before = self.seen
        self.seen = after = before + number
        if before < self.warm <= after:
            self.began = time.perf_counter()
            say("begun")
        if before < self.count <= after:
            self.ended = time.perf_counter()
            self.over.set()


def consume(namesrv: str, topic: str, group: str, count: str, size: str) -> None:
    async def run() -> None:
        backlog, each = Backlog(int(count)), int(size)
        sizes: dict[str, Any] = {}
        if each > 1:
            limits = mq.PullLimits(count=16 * each, span=32 * each)
            sizes = {"pull_batch": each, "handler_batch": each, "limits": limits}
        member = aio.PushConsumer(namesrv, group=group, consume_from=FIRST, **sizes)
        if each > 1:
            member.subscribe(topic, "*", backlog.many)
        else:
            member.subscribe(topic, "*", backlog.one)
        async with member:
            await backlog.over.wait()
            say("done", backlog.count - backlog.warm, backlog.ended - backlog.began)
        say("closed")

    asyncio.run(run())


def listen(namesrv: str, topic: str, group: str, lead: str, live: str) -> None:
    async def run() -> None:
        wanted, over = int(lead) + int(live), asyncio.Event()
        delays: list[int] = []

        async def handle(message: ReceivedMessage) -> None:
            delays.append(time.time_ns() // 1000 - int(message.body.split(b" ", 2)[1]))
            if len(delays) == wanted:
                over.set()

        member = aio.PushConsumer(namesrv, group=group, consume_from=FIRST)
        member.subscribe(topic, "*", handle)
        async with member:
            say("listening")
            await over.wait()
            later = sorted(delays[int(lead) : wanted])
            say("done", later[len(later) // 2], later[len(later) * 99 // 100])
        say("closed")

    asyncio.run(run())


def member(namesrv: str, topic: str, group: str) -> None:
    def handle(message: ReceivedMessage) -> None:
        say("got", message.queue_id, message.queue_offset, time.time_ns() // 1000)

    joining = mq.PushConsumer(namesrv, group=group, consume_from=FIRST)
    joining.subscribe(topic, "*", handle)
    joining.start()
    say("joined")
    sys.stdin.readline()
    joining.close()
    say("left")


def main() -> None:
    namesrv = sys.argv[1]
    sending: dict[str, Callable[..., None]] = {
        "one": one,
        "batch": batch,
        "fill": fill,
        "drip": drip,
    }
    others: dict[str, Callable[..., None]] = {
        "flight": flight,
        "consume": consume,
        "listen": listen,
        "member": member,
    }
    with mq.Producer(namesrv, group="side-load", send_timeout=30.0) as producer:
        say("ready")
        while line := sys.stdin.readline():
            word, *more = line.split()
            if word in sending:
                sending[word](producer, *more)
            else:
                others[word](namesrv, *more)


if __name__ == "__main__":
    main()
