"""The shared cluster as coroutines see it: what would block runs in a thread."""

import asyncio
from typing import TYPE_CHECKING

from pocketmq.protocol import ReceivedMessage

if TYPE_CHECKING:
    from pocketmq.embedded import Cluster
    from pocketmq.testing.external import ExternalCluster


class AsyncCluster:
    """A cluster whose methods are coroutines; any event loop may call them."""

    def __init__(self, cluster: "Cluster | ExternalCluster") -> None:
        self._cluster = cluster

    @property
    def address(self) -> str:
        """The name server's address."""
        return self._cluster.address

    async def create_topic(
        self, name: str, queues: int = 8, *, message_type: str = "NORMAL"
    ) -> str:
        """Create a topic with `queues` queues on each broker, and return its name."""
        create = self._cluster.create_topic
        return await asyncio.to_thread(create, name, queues, message_type=message_type)

    async def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return the messages of a topic in the order in which they were stored."""
        return await asyncio.to_thread(self._cluster.messages, topic)

    async def wait_for(
        self,
        topic: str,
        count: int,
        timeout: float = 10.0,  # noqa: ASYNC109 - as the blocking one
    ) -> list[ReceivedMessage]:
        """Return the messages of a topic as soon as there are `count`; raises `TimeoutError`."""
        return await asyncio.to_thread(self._cluster.wait_for, topic, count, timeout)

    async def reset(self) -> None:
        """Delete all topics and groups, with messages and offsets. Close clients before."""
        await asyncio.to_thread(self._cluster.reset)
