"""What an interceptor costs: CPU µs per message, beside the same calls without one.

python -m benchmarks.interceptors [messages of each round]

The cluster is a child process. The rows take turns, round by round, so that whatever else the
machine does meets all of them; the least cost of a row counts. `does nothing` is a function that
returns None, `property` adds one property, `end` returns a function that is called at the end; a
`hook` is one of Java's kind that does nothing, `prometheus` is the interceptor of `ClientMetrics`.
What a handler costs is measured on the handler alone, which is called as the consumer does.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

import pocketmq as mq
from benchmarks.producer import BODY, TOPIC, cluster
from pocketmq import aio
from pocketmq.client.interceptors import HandlerCall, SendCall
from pocketmq.client.producer.hooks import SendContext
from pocketmq.client.push.wrapping import intercepted
from pocketmq.metrics import ClientMetrics

ROUNDS = 15
MOST = 5.0
"""CPU µs that an interceptor that does nothing may add."""


def nothing(call: SendCall | HandlerCall) -> None:
    pass


def stamps(call: SendCall) -> None:
    call.add_properties({"region": "eu"})


def watches(_: SendCall) -> Callable[[SendCall], object]:
    return nothing


class Watching:
    def before_send(self, context: SendContext) -> None:
        pass

    def after_send(self, context: SendContext) -> None:
        pass


KINDS: dict[str, Sequence[Any]] = {
    "none": (),
    "does nothing": (nothing,),
    "property": (stamps,),
    "end": (watches,),
    "prometheus": (ClientMetrics(CollectorRegistry()).sends,),
    "hook": (),
}


def least(rows: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the least cost of each row, in seconds; the rows take turns."""
    found = dict.fromkeys(rows, float("inf"))
    for _ in range(ROUNDS):
        for name, run in rows.items():
            gc.collect()
            found[name] = min(found[name], run())
    return found


def show(title: str, costs: dict[str, float], count: int) -> None:
    plain = costs["none"]
    for name, cost in costs.items():
        added = "" if name == "none" else f"{(cost - plain) / count * 1e6:10.2f}"
        most = f"{MOST:10.1f}" if name == "does nothing" else ""
        print(f"{title:26}{name:16}{cost / count * 1e6:10.2f}{added}{most}")


def blocking(address: str, count: int) -> None:
    producers = {
        kind: mq.Producer(address, group=f"b-{number}", interceptors=given).start()
        for number, (kind, given) in enumerate(KINDS.items())
    }
    producers["hook"].add_send_hook(Watching())

    def sends(producer: mq.Producer) -> float:
        started = time.process_time()
        for _ in range(count):
            producer.send(mq.Message(TOPIC, BODY))
        return time.process_time() - started

    def submits(producer: mq.Producer) -> float:
        started = time.process_time()
        for _ in range(count):
            producer.submit(mq.Message(TOPIC, BODY))
        producer.flush()
        return time.process_time() - started

    for title, story in (("blocking send", sends), ("blocking submit", submits)):
        rows = {kind: partial(story, producer) for kind, producer in producers.items()}
        show(title, least(rows), count)
    for producer in producers.values():
        producer.close()


async def on_asyncio(address: str, count: int) -> None:
    producers = {
        kind: await aio.Producer(address, group=f"a-{number}", interceptors=given).start()
        for number, (kind, given) in enumerate(KINDS.items())
    }
    producers["hook"].add_send_hook(Watching())
    found = dict.fromkeys(producers, float("inf"))
    for _ in range(ROUNDS):
        for kind, producer in producers.items():
            gc.collect()
            started = time.process_time()
            for _ in range(count):
                await producer.send(aio.Message(TOPIC, BODY))
            found[kind] = min(found[kind], time.process_time() - started)
    show("asyncio send", found, count)
    for producer in producers.values():
        await producer.close()


def handlers(count: int) -> None:
    def handle(message: object) -> None:
        pass

    def calls(interceptors: Sequence[Any]) -> Callable[[], float]:
        made = intercepted(handle, interceptors, group="g", topic=TOPIC, batch=False)

        def run() -> float:
            started = time.process_time()
            for _ in range(count):
                made(None)
            return time.process_time() - started

        return run

    kinds = ("none", "does nothing", "end")
    show("handler", least({kind: calls(KINDS[kind]) for kind in kinds}), count)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'CPU µs per message':26}{'interceptor':16}{'cost':>10}{'added':>10}{'at most':>10}")
    with cluster() as address:
        blocking(address, count)
        asyncio.run(on_asyncio(address, count))
    handlers(100 * count)


if __name__ == "__main__":
    main()
