"""What a blocking call costs client and cluster: CPU µs per message, kind by kind.

python -m benchmarks.calls [seconds for each round] [rounds] [part of a row's name]

POP, transactions, delayed sends; sends over TLS and signed sends. Cluster and client are two
processes; the least cost of a row counts. CPU time holds on a busy machine, rates do not.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pocketmq as mq
from benchmarks.java.guards import ROOT, ROOT_SECRET, Certificate
from benchmarks.producer import BODY
from benchmarks.sends import best, cluster, cpu
from pocketmq import aio, native
from pocketmq.net import loops

TOPIC = "calls"
FIRST = mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LEVEL = 18  # two hours: no message comes back while it is measured

Story = Callable[[float], int]
"""Works until a time and returns the number of messages."""


def sender(producer: mq.Producer, **how: Any) -> Story:
    def run(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            producer.send(mq.Message(TOPIC, BODY), **how)
            done += 1
        return done

    return run


def in_flight(address: str, options: dict[str, Any], **how: Any) -> Story:
    """Keep 64 callers of the asyncio producer busy."""

    async def lane(producer: aio.Producer, until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            await producer.send(mq.Message(TOPIC, BODY), **how)
            done += 1
        return done

    async def all_lanes(until: float) -> int:
        async with aio.Producer(address, group="calls-aio", **options) as producer:
            return sum(await asyncio.gather(*[lane(producer, until) for _ in range(64)]))

    return lambda until: loops.run(all_lanes(until))


def transactor(producer: mq.Producer) -> Story:
    def local(_: mq.Message, __: str) -> mq.TransactionState:
        return mq.TransactionState.COMMIT

    def run(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            producer.send_in_transaction(mq.Message(TOPIC, BODY), local)
            done += 1
        return done

    return run


def popper(consumer: mq.PopConsumer, most: int, fill: Callable[[], None]) -> Story:
    def run(until: float) -> int:
        done = 0
        while time.perf_counter() < until:
            messages = consumer.receive(most, timeout=0.0)
            if not messages:
                fill()
                continue
            consumer.ack(messages)
            done += len(messages)
        return done

    return run


def rows(address: str, options: dict[str, Any]) -> Iterator[tuple[str, Story]]:
    check = lambda _: mq.TransactionState.COMMIT  # noqa: E731 - never called
    with mq.Producer(address, group="calls", check=check, **options) as producer:

        def fill() -> None:
            for _ in range(32):
                producer.send_batch([mq.Message(TOPIC, BODY) for _ in range(256)])

        producer.send(mq.Message(TOPIC, BODY))
        yield "send", sender(producer)
        yield "send, 64 in flight", in_flight(address, options)
        yield "delayed", sender(producer, delay_level=LEVEL)
        yield "delayed, 64 in flight", in_flight(address, options, delay_level=LEVEL)
        yield "transaction", transactor(producer)
        with mq.PopConsumer(address, group="poppers", consume_from=FIRST, **options) as consumer:
            consumer.subscribe(TOPIC)
            yield "pop and ack, 1", popper(consumer, 1, fill)
            yield "pop and ack, 32", popper(consumer, 32, fill)


@contextmanager
def guarded(kind: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Run a cluster; yield its address, its process and the clients' options."""
    with tempfile.TemporaryDirectory() as directory:
        options: dict[str, Any] = {}
        more: list[str] = []
        if kind == "TLS":
            made = Certificate.make(Path(directory))
            more = ["--tls-mode", "enforcing", "--tls-cert", made.server, "--tls-key", made.key]
            options = {"tls": mq.Tls(ca=made.root)}
        if kind == "signed":
            user = json.dumps({"username": ROOT, "password": ROOT_SECRET})
            more = [
                "--set",
                "authenticationEnabled=true",
                "--set",
                f"initAuthenticationUser={user}",
            ]
            options = {"credentials": mq.Credentials(access_key=ROOT, secret_key=ROOT_SECRET)}
        with cluster("asyncio", more=more) as (address, process):
            yield address, process, options


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    print(native.description)
    print(f"{'CPU µs per message':34}{'client':>10}{'cluster':>10}{'messages/s':>14}", flush=True)
    for kind in ("plain", "TLS", "signed"):
        if only and only.split(",")[0] not in ("", kind):
            continue
        with guarded(kind) as (address, process, options):
            for name, story in rows(address, options):
                if "," in only and only.split(",")[1] not in name:
                    continue
                story(time.perf_counter() + seconds / 3)
                costs = []
                for _ in range(rounds):
                    own, theirs = time.process_time(), cpu(process)
                    started = time.perf_counter()
                    done = story(started + seconds)
                    took = time.perf_counter() - started
                    own, theirs = time.process_time() - own, cpu(process) - theirs
                    costs.append((own / done * 1e6, theirs / done * 1e6, done / took))
                client, server, rate = best(costs)
                label = f"{kind}: {name}"
                print(f"{label:34}{client:10.1f}{server:10.1f}{rate:14,.0f}", flush=True)


if __name__ == "__main__":
    main()
