"""Asking a cluster's own parts over the wire, as any client does."""

from collections.abc import Callable

from pocketmq.errors import TopicNotFound, server_error
from pocketmq.errors.response import ResponseCode
from pocketmq.model.flags import Permission
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.route import TopicRoute
from pocketmq.net import Connection, Dialer, Tls
from pocketmq.protocol.bodies.cluster import ClusterInfo
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.header import Header
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.nameserver import GetRouteRequest
from pocketmq.protocol.requests.topics import CreateTopicRequest

TIMEOUT = 5.0


class Asker:
    """Sends single requests to the name server and the brokers."""

    def __init__(self, tls: Tls | None, users: list[tuple[str, str]]) -> None:
        """Take how the parts speak TLS, and users they know, of whom the last is for inner use."""
        self._dialer = Dialer(self, tls=tls)
        self._sign: Callable[[int, dict[str, str], bytes], None] | None = None
        if users:
            from pocketmq.client.calls import Signing  # few clusters have users
            from pocketmq.client.options import Credentials

            name, password = users[-1]
            self._sign = Signing(Credentials(access_key=name, secret_key=password))

    async def close(self) -> None:
        """Close its connections."""
        await self._dialer.close(0.0)

    async def brokers(self, nameserver: str) -> dict[str, str]:
        """Give the masters a name server knows: address by name."""
        answer = await self._ask(nameserver, RequestCode.GET_BROKER_CLUSTER_INFO)
        table = decode_body(answer.body, ClusterInfo).broker_addr_table
        return {
            name: data.broker_addrs[0] for name, data in table.items() if 0 in data.broker_addrs
        }

    async def create_topic(self, broker: str, topic: str, queues: int) -> None:
        """Make a topic on one broker, or change its number of queues."""
        header = CreateTopicRequest(
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=int(Permission.READ | Permission.WRITE),
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        await self._ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def brokers_of(self, nameserver: str, topic: str) -> set[str]:
        """Give the names of the brokers in a topic's route; none if there is no route."""
        header = GetRouteRequest(topic=topic)
        try:
            answer = await self._ask(nameserver, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        except TopicNotFound:
            return set()
        return {data.broker_name for data in decode_body(answer.body, TopicRoute).broker_datas}

    async def _ask(self, address: str, code: RequestCode, header: Header | None = None) -> Command:
        fields = {} if header is None else header.to_ext()
        if self._sign is not None:
            self._sign(code, fields, b"")
        answer = await self._dialer.request(address, Command.request(code, 0, fields), TIMEOUT)
        if answer.code != ResponseCode.SUCCESS:
            raise server_error(answer.code, answer.remark, request=code.name, address=address)
        return answer

    # Owner of its connections: servers ask nothing of one that is no producer or consumer

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to note."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Nothing to answer."""

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Nothing to forget."""
