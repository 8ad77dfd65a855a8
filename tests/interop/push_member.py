"""A Python member of a group in a process of its own: says what the Java one (`Member.java`) says.

Name server, group, topic, instance name, and any of `orderly`, `balanced-by-broker` and `4.x`.
"""

import asyncio
import sys

from pocketmq.balance.profile import V4, V5
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.model import ConsumeFromWhere
from pocketmq.protocol import ReceivedMessage


async def tell(message: ReceivedMessage) -> None:
    place = f"{message.broker_name}/{message.queue_id}@{message.queue_offset}"
    print(f"got {place} {message.body.decode()}", flush=True)


async def watch(consumer: PushConsumer, topic: str) -> None:
    last = None
    while True:
        owned = consumer.assignment()[topic]
        now = " ".join(sorted(f"{queue.broker_name}/{queue.queue_id}" for queue in owned))
        if now != last:
            print(f"owns {now}", flush=True)
            last = now
        await asyncio.sleep(0.02)


async def main(name_server: str, group: str, topic: str, name: str, *options: str) -> None:
    consumer = PushConsumer(
        name_server,
        group=group,
        instance_name=name,
        profile=V4 if "4.x" in options else V5,
        orderly="orderly" in options,
        client_rebalance="balanced-by-broker" not in options,
        route_interval=1.0,
        heartbeat_interval=1.0,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        stop_wait=5.0,
    )
    consumer.subscribe(topic, "*", tell)
    async with consumer:
        print(f"is {consumer.session.client_id}", flush=True)
        watching = asyncio.create_task(watch(consumer, topic))
        await asyncio.to_thread(sys.stdin.readline)
        watching.cancel()
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
