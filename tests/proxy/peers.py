"""A cluster with a proxy, and a gRPC client that sends exactly what a test says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
from google.protobuf import message_factory

from pocketmq import aio
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.embedded.aio import Cluster
from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.protocol.requests.pop import POLLING_INFO
from pocketmq.proxy.server import Proxy
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import POOL, SERVICE

TOPICS = {
    "normal": "NORMAL",
    "fifo": "FIFO",
    "delay": "DELAY",
    "tx": "TRANSACTION",
    "urgent": "PRIORITY",
}
PATIENCE = 50.0
QUICK = ProxyLimits(min_long_polling=0.1)
"""Apache's limits, but polls may be short."""


class Peer:
    """One gRPC client."""

    def __init__(self, channel: grpc.aio.Channel, address: str, client_id: str = "peer@1") -> None:
        self.channel = channel
        self.metadata = [("x-mq-client-id", client_id), ("x-mq-client-version", "5.0.7")]
        host, _, port = address.rpartition(":")
        self.endpoints = d.Endpoints(
            scheme=d.AddressScheme.IPv4, addresses=[d.Address(host=host, port=int(port))]
        )

    async def call(self, name: str, request: Any) -> Any:
        """Make a call with one response."""
        return await self._method(name)(request, metadata=self.metadata, timeout=PATIENCE)

    def stream(self, name: str, request: Any, timeout: float = PATIENCE) -> Any:
        """Start a call with many responses."""
        return self._method(name)(request, metadata=self.metadata, timeout=timeout)

    def telemetry(self) -> Any:
        """Open a Telemetry stream."""
        return self._method("Telemetry")(metadata=self.metadata)

    def _method(self, name: str) -> Any:
        method = POOL.FindServiceByName(SERVICE).methods_by_name[name]
        kind = (
            self.channel.stream_stream
            if method.client_streaming
            else self.channel.unary_stream
            if method.server_streaming
            else self.channel.unary_unary
        )
        return kind(
            f"/{SERVICE}/{name}",
            request_serializer=message_factory.GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )

    # What most tests need

    async def send(self, topic: str, body: bytes, **system: Any) -> s.SendMessageResponse:
        """Send one message."""
        response: s.SendMessageResponse = await self.call(
            "SendMessage", s.SendMessageRequest(messages=[message(topic, body, **system)])
        )
        return response

    async def receive(
        self, topic: str, group: str, *, wait: float = 0.2, **fields: Any
    ) -> list[s.ReceiveMessageResponse]:
        """Receive once."""
        request = receive_request(topic, group, wait=wait, **fields)
        return [each async for each in self.stream("ReceiveMessage", request)]

    async def received(self, topic: str, group: str, **fields: Any) -> list[d.Message]:
        """Receive until there is something."""
        async with asyncio.timeout(PATIENCE):
            while True:
                responses = await self.receive(topic, group, **fields)
                found = [each.message for each in responses if each.HasField("message")]
                if found:
                    return found

    async def settle(self, **settings: Any) -> tuple[Any, d.Settings]:
        """Open a Telemetry stream, report settings and return it with those that come back."""
        stream = self.telemetry()
        await stream.write(s.TelemetryCommand(settings=d.Settings(**settings)))
        answer = await stream.read()
        assert answer.status.code == d.Code.OK
        return stream, answer.settings

    async def consume(self, group: str, topic: str, kind: int = d.ClientType.PUSH_CONSUMER) -> Any:
        """Become a consumer and return the Telemetry stream."""
        entry = d.SubscriptionEntry(
            topic=d.Resource(name=topic), expression=d.FilterExpression(expression="*")
        )
        subscription = d.Subscription(group=d.Resource(name=group), subscriptions=[entry])
        stream, _ = await self.settle(client_type=kind, subscription=subscription)
        return stream

    async def ack(self, topic: str, group: str, *handles: str) -> s.AckMessageResponse:
        """Acknowledge messages."""
        entries = [s.AckMessageEntry(message_id="m", receipt_handle=each) for each in handles]
        response: s.AckMessageResponse = await self.call(
            "AckMessage",
            s.AckMessageRequest(
                topic=d.Resource(name=topic), group=d.Resource(name=group), entries=entries
            ),
        )
        return response


def message(topic: str, body: bytes, **system: Any) -> d.Message:
    """A message as a producer sends it."""
    properties = system.pop("properties", {})
    fields = {"message_id": f"id-{body[:20]!r}", **system}
    return d.Message(
        topic=d.Resource(name=topic),
        user_properties=properties,
        system_properties=d.SystemProperties(**fields),
        body=body,
    )


def receive_request(topic: str, group: str, *, wait: float, hidden: int = 30, **fields: Any) -> Any:
    """A request to receive."""
    usual: dict[str, Any] = {
        "message_queue": d.MessageQueue(topic=d.Resource(name=topic)),
        "filter_expression": d.FilterExpression(type=d.FilterType.TAG, expression="*"),
        "batch_size": 32,
    }
    request = s.ReceiveMessageRequest(group=d.Resource(name=group), **usual | fields)
    request.long_polling_timeout.FromMilliseconds(round(wait * 1000))
    if not request.HasField("invisible_duration"):
        request.invisible_duration.FromSeconds(hidden)
    return request


class Served:
    """A cluster, its proxy, and a client of it."""

    def __init__(self, cluster: Cluster, admin: aio.Admin, proxy: Proxy, peer: Peer) -> None:
        self.cluster = cluster
        self.admin = admin
        self.proxy = proxy
        self.peer = peer
        self.loop = asyncio.get_running_loop()

    async def polled(self, topic: str, group: str) -> None:
        """Wait until a poll of a group waits at a broker."""
        header = POLLING_INFO.header(consumer_group=group, topic=topic, queue_id=-1)
        (place,) = await self.admin.brokers.targets()
        session = self.admin._wire.session
        async with asyncio.timeout(PATIENCE):
            while True:
                question = ask(None, POLLING_INFO, header)
                answer = await ask_address(session.calls.ask, place.address, question, timeout=5)
                if answer.header().polling_num:
                    return
                await asyncio.sleep(0.01)

    async def group(self, name: str, **settings: Any) -> None:
        """Create a group."""
        for place in await self.admin.brokers.targets():
            config = GroupConfig(group_name=name, **settings)
            (await self.admin.groups.create(config, address=place.address)).all()


@asynccontextmanager
async def serving(
    *,
    brokers: int = 1,
    limits: ProxyLimits = QUICK,
    credentials: aio.Credentials | None = None,
    access: ProxyAccess | None = None,
    faults: bool = False,
    **settings: Any,
) -> AsyncIterator[Served]:
    """Run a cluster with a topic of each type, and a proxy in front of it."""
    async with (
        Cluster(brokers, config=settings, faults=faults) as cluster,
        aio.Admin(cluster.address, credentials=credentials) as admin,
    ):
        for place in await admin.brokers.targets():
            for name, kind in TOPICS.items():
                config = TopicConfig(
                    topic_name=name,
                    read_queue_nums=2,
                    write_queue_nums=2,
                    attributes={"+message.type": kind},
                )
                (await admin.topics.create(config, address=place.address)).all()
        options = ClientOptions(name_servers=cluster.address, credentials=credentials)
        proxy = Proxy(options, port=0, limits=limits, access=access)
        await proxy.start()
        try:
            async with grpc.aio.insecure_channel(proxy.address) as channel:
                yield Served(cluster, admin, proxy, Peer(channel, proxy.address))
        finally:
            await proxy.stop()


def code(response: Any) -> str:
    """The name of a response's status."""
    return str(d.Code.Name(response.status.code))
