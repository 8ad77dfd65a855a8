"""One process with the clients of a whole estate: members of many groups, and a producer.

python -m benchmarks._estate_process NAME_SERVER TOPICS GROUPS CLIENTS

Each client has a session of its own, as if it were a program. Prints `ready` once every group holds
all its queues, and ends with SIGTERM.
"""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack

from pocketmq.aio import Producer, PushConsumer
from pocketmq.model import Message

TOPICS_EACH = 2
AT_ONCE = 50
PATIENCE = 60.0
"""Seconds for a request: a thousand programs would not share one processor."""


async def handle(message: object) -> None:
    """Take it."""


async def serve(names: str, topics: int, groups: int, clients: int) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with AsyncExitStack() as stack:
        producer = await stack.enter_async_context(Producer(names, group="estate"))
        for number in range(topics):
            await producer.send(Message(f"topic-{number}", b"x" * 100, keys=[f"key-{number}"]))
        consumers = []
        for number in range(clients):
            group = number % groups
            consumer = PushConsumer(
                names,
                group=f"group-{group}",
                instance_name=f"client-{number}",
                stop_wait=0.0,
                request_timeout=PATIENCE,
            )
            for part in range(TOPICS_EACH):
                consumer.subscribe(f"topic-{(group + part) % topics}", "*", handle)
            consumers.append(consumer)
        for start in range(0, clients, AT_ONCE):
            some = consumers[start : start + AT_ONCE]
            await asyncio.gather(*(each.start() for each in some))
        for consumer in consumers:
            stack.push_async_callback(consumer.close)
        # There is no event for a thousand members to be ready.
        while not all(each.assignment() for each in consumers):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        print("ready", flush=True)
        await told.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], *map(int, sys.argv[2:5])))
