"""Requests of a cluster to its own name server and brokers, over the wire as any client's.

Asked as the typed questions of `client`, with an address in place of a queue's broker.
"""

from typing import TypeVar

from pocketmq.client.calls import RequestHook, ServerCalls, Signing
from pocketmq.client.options import Credentials
from pocketmq.client.questions.asking import Ask, Question, ask, route_of, run
from pocketmq.errors import RouteNotFound
from pocketmq.model import MASTER_ID, Permission
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.net import Connection, Dialer, Tls
from pocketmq.protocol import Command
from pocketmq.protocol.request import NoHeader
from pocketmq.protocol.requests import nameserver as rows
from pocketmq.protocol.requests import topics

T = TypeVar("T")

NORMAL = "NORMAL"
"""The type of topics that have no attribute for it."""
TIMEOUT = 30.0
"""Seconds for a response: parts that start, on a busy machine or a slow disk, take their time."""


class ClusterQueries:
    """Sends single requests to a cluster's name server and brokers. Belongs to one event loop."""

    def __init__(self, tls: Tls | None, users: list[tuple[str, str]]) -> None:
        """Take the TLS settings, and users of the cluster; the last is for internal requests."""
        hooks: tuple[RequestHook, ...] = ()
        if users:
            name, password = users[-1]
            hooks = (Signing(Credentials(access_key=name, secret_key=password)),)
        self._calls = ServerCalls(Dialer(self, tls=tls), hooks, _always_usable)

    async def close(self) -> None:
        """Close its connections."""
        await self._calls.dialer.close(0.0)

    async def brokers(self, nameserver: str) -> dict[str, str]:
        """Return the masters registered at a name server: address by name."""
        answer = await self._ask(nameserver, ask(None, rows.GET_BROKER_CLUSTER_INFO, NoHeader()))
        table = answer.result().broker_addr_table
        return {
            name: data.broker_addrs[MASTER_ID]
            for name, data in table.items()
            if MASTER_ID in data.broker_addrs
        }

    async def create_topic(
        self, broker: str, topic: str, queues: int, message_type: str = NORMAL
    ) -> None:
        """Create a topic on one broker, or change its number of queues."""
        header = topics.CreateTopicRequest(
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=int(Permission.READ | Permission.WRITE),
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
            attributes=None if message_type == NORMAL else f"+message.type={message_type}",
        )
        await self._ask(broker, ask(None, topics.UPDATE_AND_CREATE_TOPIC, header))

    async def brokers_of(self, nameserver: str, topic: str) -> set[str]:
        """Return the names of the brokers in a topic's route; none if there is no route."""
        try:
            route = await self._ask(nameserver, route_of(topic))
        except RouteNotFound:
            return set()
        return {data.broker_name for data in route.broker_datas}

    async def _ask(self, address: str, question: Question[T]) -> T:
        async def carry(asked: Ask) -> Command:
            return await self._calls.ask(
                address,
                asked.code,
                asked.header,
                asked.body,
                timeout=TIMEOUT,
                accept=asked.accept,
            )

        return await run(question, carry)

    # Owner of its connections: servers send no requests to a client without groups

    def connection_opened(self, connection: Connection) -> None:
        """Do nothing."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Do nothing."""

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Do nothing."""


def _always_usable() -> None:
    """Allow every call: a cluster's queries end with the cluster."""
