"""A broker in a process of its own, killed while members pop and acknowledge."""

import asyncio
import time
from functools import partial
from itertools import count
from pathlib import Path

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.client.producer.producer import Producer
from pocketmq.embedded import Cluster
from pocketmq.errors import MQError
from pocketmq.model import ConsumeFromWhere, Message
from tests.loops import until

TOPIC = "endangered"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
MESSAGES = 800
KILLS = 2
INVISIBLE = 10.0
"""Seconds that a member has to acknowledge; later it does so in vain, and is not told."""


class Story:
    """What was sent, received and acknowledged."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.accepted: set[bytes] = set()
        self.received: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.twice: list[bytes] = []

    def is_past(self, kill: int) -> bool:
        return len(self.acknowledged) >= kill * MESSAGES // (KILLS + 2)

    async def send(self) -> None:
        async with Producer(self.address, group="senders") as producer:
            for n in count():
                if len(self.accepted) == MESSAGES:
                    return
                try:
                    await producer.send(Message(TOPIC, b"%d" % n))
                except MQError:
                    await asyncio.sleep(0.05)  # the broker is being started again
                else:
                    self.accepted.add(b"%d" % n)

    async def consume(self, name: str) -> None:
        consumer = PopConsumer(
            self.address, group="G", consume_from=FIRST, invisible=INVISIBLE, instance_name=name
        )
        async with consumer.subscribe(TOPIC):
            while True:
                began = time.monotonic()
                try:
                    messages = await consumer.receive(8, timeout=1)
                    known = [m.body for m in messages if m.body in self.acknowledged]
                    self.twice += known
                    self.received.update(message.body for message in messages)
                    await consumer.ack(messages)
                except MQError:
                    await asyncio.sleep(0.05)  # the broker is being started again
                else:
                    if time.monotonic() < began + INVISIBLE:
                        self.acknowledged.update(message.body for message in messages)


def test_nothing_accepted_is_lost_and_nothing_acknowledged_comes_again(tmp_path: Path) -> None:
    with Cluster(brokers=1, data=tmp_path, in_process=False) as cluster:
        cluster.create_topic(TOPIC, 4)
        story = Story(cluster.address)

        async def tell() -> None:
            members = [asyncio.ensure_future(story.consume(f"m{n}")) for n in range(4)]
            sending = asyncio.ensure_future(story.send())
            for kill in range(1, KILLS + 1):
                await until(partial(story.is_past, kill), "acknowledgements", 60)
                await asyncio.to_thread(cluster.kill, "broker-0")
                await asyncio.to_thread(cluster.restart, "broker-0")
            await sending
            await until(lambda: story.accepted <= story.received, "every message", 60)
            for member in members:
                member.cancel()
            await asyncio.gather(*members, return_exceptions=True)

        asyncio.run(asyncio.wait_for(tell(), 90))
    assert story.twice == []
