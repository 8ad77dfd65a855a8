"""Pull consumers on an embedded cluster, and what they read."""

import asyncio
from typing import Any

from pocketmq.client.pull import PullConsumer
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import BRISK, FIRST, IP


def reader(address: str, name: str = "a", group: str = "audit", **settings: Any) -> PullConsumer:
    """A consumer with a known client id that begins with the first message."""
    return PullConsumer(
        address,
        group=group,
        **{
            "client_ip": IP,
            "instance_name": name,
            "profile": BRISK,
            "consume_from": FIRST,
            **settings,
        },
    )


async def read(consumer: PullConsumer, count: int) -> list[ReceivedMessage]:
    """Poll until there are so many messages, or more with the last batch."""
    got: list[ReceivedMessage] = []
    async with asyncio.timeout(60):
        while len(got) < count:
            got += await consumer.poll(1.0)
    return got


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    """What is in them, sorted."""
    return sorted(message.body for message in messages)
