"""One client that is a member of many groups, as `Crowd.java` is: the same words, the same lines.

A directory for the offsets of broadcasting, then: name server, topic, instance name, the queues it
is configured with, and groups (`AVG-orderly`). It keeps the rules of 4.x if its name ends so.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from pocketmq.balance.profile import V4, V5
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.model import ConsumeFromWhere, MessageModel, MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.interop.crowd import queue_of, strategy_of

QUICK = {
    "rebalance_interval": 1.0,
    "unbalanced_interval": 1.0,
    "lock_interval": 1.0,
    "lock_max_age": 4.0,
    "unlock_delay": 1.0,
}
"""What the system properties are for Java members."""


def teller(group: str) -> Callable[[ReceivedMessage], Awaitable[None]]:
    async def tell(message: ReceivedMessage) -> None:
        place = f"{message.broker_name}/{message.queue_id}@{message.queue_offset}"
        print(f"{group} got {place} {message.body.decode()}", flush=True)

    return tell


async def watch(members: dict[str, PushConsumer], topic: str) -> None:
    last: dict[str, str] = {}
    while True:
        for group, consumer in members.items():
            owned = consumer.assignment().get(topic, ())
            now = " ".join(sorted(f"{each.broker_name}/{each.queue_id}" for each in owned))
            if last.get(group) != now:
                print(f"{group} owns {now}", flush=True)
                last[group] = now
        await asyncio.sleep(0.05)


def member(
    home: str, name_server: str, topic: str, name: str, queues: str, group: str
) -> PushConsumer:
    strategy, _, way = group.rpartition("-")
    configured = [queue_of(topic, text) for text in queues.split(",")]
    broadcasting = way == "broadcasting"
    consumer = PushConsumer(
        name_server,
        group=group,
        instance_name=name,
        profile=replace(V4 if name.endswith("4.x") else V5, **QUICK),
        orderly=way == "orderly",
        strategy=strategy_of(strategy, configured),
        model=MessageModel.BROADCASTING if broadcasting else MessageModel.CLUSTERING,
        route_interval=1.0,
        heartbeat_interval=1.0,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        stop_wait=5.0,
        offsets_dir=home,
    )
    consumer.subscribe(topic, "*", teller(group))

    @consumer.on_revoked
    async def lost(queues: Sequence[MessageQueue]) -> None:
        names = " ".join(f"{each.broker_name}/{each.queue_id}" for each in queues)
        print(f"{group} lost {names}", flush=True)

    return consumer


async def main(home: str, address: str, topic: str, name: str, queues: str, *groups: str) -> None:
    members = {group: member(home, address, topic, name, queues, group) for group in groups}
    async with AsyncExitStack() as stack:
        for each in members.values():
            await stack.enter_async_context(each)
        first = next(iter(members.values()))
        print(f"is {first.session.client_id}", flush=True)
        watching = asyncio.create_task(watch(members, topic))
        await asyncio.to_thread(sys.stdin.readline)
        watching.cancel()
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
