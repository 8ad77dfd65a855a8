"""Our consumers under load: what `_load` lets them do."""

import asyncio
import sys
import time
from typing import Any

import pocketmq as mq
from benchmarks.java._load_lines import say
from pocketmq import aio
from pocketmq.net.loops import run as run_loop
from pocketmq.protocol import ReceivedMessage

FIRST = mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


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


def consume(
    namesrv: str, options: dict[str, Any], topic: str, group: str, count: str, size: str
) -> None:
    async def run() -> None:
        backlog, each = Backlog(int(count)), int(size)
        sizes: dict[str, Any] = dict(options)
        if each > 1:
            limits = mq.PullLimits(count=16 * each, span=32 * each)
            sizes |= {"pull_batch": each, "handler_batch": each, "limits": limits}
        member = aio.PushConsumer(namesrv, group=group, consume_from=FIRST, **sizes)
        if each > 1:
            member.subscribe(topic, "*", backlog.many)
        else:
            member.subscribe(topic, "*", backlog.one)
        async with member:
            await backlog.over.wait()
            say("done", backlog.count - backlog.warm, backlog.ended - backlog.began)
        say("closed")

    run_loop(run())


def listen(
    namesrv: str, options: dict[str, Any], topic: str, group: str, lead: str, live: str
) -> None:
    async def run() -> None:
        wanted, over = int(lead) + int(live), asyncio.Event()
        delays: list[int] = []

        async def handle(message: ReceivedMessage) -> None:
            delays.append(time.time_ns() // 1000 - int(message.body.split(b" ", 2)[1]))
            if len(delays) == wanted:
                over.set()

        member = aio.PushConsumer(namesrv, group=group, consume_from=FIRST, **options)
        member.subscribe(topic, "*", handle)
        async with member:
            say("listening")
            await over.wait()
            later = sorted(delays[int(lead) : wanted])
            say("done", later[len(later) // 2], later[len(later) * 99 // 100])
        say("closed")

    run_loop(run())


def member(namesrv: str, options: dict[str, Any], topic: str, group: str) -> None:
    def handle(message: ReceivedMessage) -> None:
        say("got", message.queue_id, message.queue_offset, time.time_ns() // 1000)

    joining = mq.PushConsumer(namesrv, group=group, consume_from=FIRST, **options)
    joining.subscribe(topic, "*", handle)
    joining.start()
    say("joined")
    sys.stdin.readline()
    joining.close()
    say("left")


def pop(
    namesrv: str, options: dict[str, Any], topic: str, group: str, size: str, seconds: str
) -> None:
    """Receive and acknowledge, until the time or the backlog is over."""
    most, count = int(size), 0
    with mq.PopConsumer(namesrv, group=group, consume_from=FIRST, **options) as consumer:
        consumer.subscribe(topic)
        consumer.ack(consumer.receive(most))  # the first one learns the route
        say("begun")
        start = last = time.perf_counter()
        while last < start + float(seconds):
            messages = consumer.receive(most, timeout=1.0)
            if not messages:
                break
            consumer.ack(messages)
            count += len(messages)
            last = time.perf_counter()
        say("done", count, last - start)
