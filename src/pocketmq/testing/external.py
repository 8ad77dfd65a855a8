"""Clusters as tests see them: one that runs already, and any of them for coroutines.

`ExternalCluster` has what `pocketmq.Cluster` has but for its control, for `pytest
--rocketmq-address HOST:PORT`: the same tests on Apache's brokers, or on a shared cluster. What
it creates it deletes; nothing else is touched. `AsyncCluster` runs what would block in a
thread.
"""

import asyncio
from typing import TYPE_CHECKING

from pocketmq.blocking.admin import Admin
from pocketmq.embedded.aio import BrokerInfo
from pocketmq.embedded.inspecting import stored_messages, wait_for_messages
from pocketmq.errors import InvalidInput
from pocketmq.model import TopicConfig
from pocketmq.protocol import ReceivedMessage

if TYPE_CHECKING:
    from pocketmq.embedded import Cluster


class ExternalCluster:
    """A running cluster, by the address of its name server."""

    def __init__(self, address: str, grpc_address: str = "") -> None:
        self.address = address
        self._grpc_address = grpc_address
        self._created: list[str] = []

    @property
    def brokers(self) -> dict[str, BrokerInfo]:
        """The brokers by name. Their processes are unknown, so `pid` is None."""
        with Admin(self.address) as admin:
            return {
                place.broker: BrokerInfo(name=place.broker, address=place.address, pid=None)
                for place in admin.brokers.all()
                if place.is_master
            }

    @property
    def grpc_address(self) -> str:
        """The address for RocketMQ 5's gRPC clients. Raises `InvalidInput` if it was not given."""
        if not self._grpc_address:
            raise InvalidInput(
                "no gRPC address given: run pytest --rocketmq-grpc-address HOST:PORT"
            )
        return self._grpc_address

    def create_topic(self, name: str, queues: int = 8, *, message_type: str = "NORMAL") -> str:
        """Create a topic with `queues` queues on each broker, and return its name."""
        config = TopicConfig(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            attributes={} if message_type == "NORMAL" else {"+message.type": message_type},
        )
        with Admin(self.address) as admin:
            admin.topics.create(config).all()
        self._created.append(name)
        return name

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return the messages of a topic; see `Cluster.messages`."""
        return stored_messages(self.address, topic)

    def wait_for(self, topic: str, count: int, timeout: float = 10.0) -> list[ReceivedMessage]:
        """Return the messages of a topic as soon as there are `count`; raises `TimeoutError`."""
        return wait_for_messages(self.address, topic, count, timeout)

    def reset(self) -> None:
        """Delete the topics that were created here."""
        created, self._created = self._created, []
        with Admin(self.address) as admin:
            for topic in created:
                for cluster in admin.topics.clusters(topic):
                    admin.topics.delete(topic, cluster).all()


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
