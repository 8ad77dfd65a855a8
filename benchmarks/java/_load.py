"""Our client under load, told what to do by lines on its input; the twin of `SideLoad.java`.

python -m benchmarks.java._load NAME_SERVER
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pocketmq as mq
from pocketmq.protocol.received import ReceivedMessage

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


def stored(future: "Future[mq.SendReceipt]") -> bool:
    """Wait for a message; a broker that is too busy may refuse it."""
    try:
        future.result()
    except mq.MQError:
        return False
    return True


def flight(producer: mq.Producer, topic: str, depth: str, seconds: str) -> None:
    waiting: deque[Future[mq.SendReceipt]] = deque()
    start = time.perf_counter()
    end, count, most = start + float(seconds), 0, int(depth)
    while time.perf_counter() < end:
        if len(waiting) >= most:
            count += stored(waiting.popleft())
        waiting.append(producer.submit(mq.Message(topic, BODY)))
    for future in waiting:
        count += stored(future)
    say("done", count, time.perf_counter() - start)


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
            time.sleep(wait)
        producer.send(mq.Message(topic, stamped(number)))
    say("done", count, time.perf_counter() - start)


class Backlog:
    """Counts messages, and the time from an eighth of them to the last."""

    def __init__(self, count: int) -> None:
        self.count, self.warm = count, count // 8
        self.seen = 0
        self.began = self.ended = 0.0
        self.over = threading.Event()
        self._turn = threading.Lock()

    def many(self, messages: list[ReceivedMessage]) -> None:
        self._add(len(messages))

    def one(self, _: ReceivedMessage) -> None:
        self._add(1)

    def _add(self, number: int) -> None:
        with self._turn:
            before, self.seen = self.seen, self.seen + number
        if before < self.warm <= self.seen:
            self.began = time.perf_counter()
            say("begun")
        if before < self.count <= self.seen:
            self.ended = time.perf_counter()
            self.over.set()


def consumer(namesrv: str, group: str, **settings: Any) -> mq.PushConsumer:
    return mq.PushConsumer(namesrv, group=group, consume_from=FIRST, **settings)


def consume(namesrv: str, topic: str, group: str, count: str, size: str) -> None:
    backlog, each = Backlog(int(count)), int(size)
    sizes = {"pull_batch": each, "handler_batch": each} if each > 1 else {}
    member = consumer(namesrv, group, **sizes)
    if each > 1:
        member.subscribe(topic, "*", backlog.many)
    else:
        member.subscribe(topic, "*", backlog.one)
    member.start()
    backlog.over.wait()
    say("done", backlog.count - backlog.warm, backlog.ended - backlog.began)
    member.close()
    say("closed")


def listen(namesrv: str, topic: str, group: str, lead: str, live: str) -> None:
    wanted, over = int(lead) + int(live), threading.Event()
    delays: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        delays.append(time.time_ns() // 1000 - int(message.body.split(b" ", 2)[1]))
        if len(delays) == wanted:
            over.set()

    member = consumer(namesrv, group)
    member.subscribe(topic, "*", handle)
    member.start()
    say("listening")
    over.wait()
    later = sorted(delays[int(lead) : wanted])
    say("done", later[len(later) // 2], later[len(later) * 99 // 100])
    member.close()
    say("closed")


def member(namesrv: str, topic: str, group: str) -> None:
    def handle(message: ReceivedMessage) -> None:
        say("got", message.queue_id, message.queue_offset, time.time_ns() // 1000)

    joining = consumer(namesrv, group)
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
        "flight": flight,
        "batch": batch,
        "fill": fill,
        "drip": drip,
    }
    consuming: dict[str, Callable[..., None]] = {
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
                consuming[word](namesrv, *more)


if __name__ == "__main__":
    main()
