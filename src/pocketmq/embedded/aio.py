"""The embedded cluster for asyncio; `pocketmq.embedded.Cluster` is the blocking one."""

import asyncio
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from pocketmq.embedded.grpc_service import GrpcService
from pocketmq.embedded.settings import ClusterSettings, Setting, cluster_config
from pocketmq.embedded.supervisor import Supervisor
from pocketmq.errors import InvalidInput
from pocketmq.net import parse_address

if TYPE_CHECKING:
    from pocketmq.protocol import ReceivedMessage


class BrokerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A broker of a cluster as it is now; `pid` is None while it is down."""

    name: str
    address: str
    pid: int | None

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self.pid is not None


class Cluster:
    """A name server and brokers on this machine, used with `async with` or `start` and `stop`.

    `data` is a directory in which everything is kept from one start to the next; without it
    everything is in memory. With `in_process` all parts run on the caller's event loop, without it
    each broker has a process of its own. `config` holds broker settings by RocketMQ's names, such
    as `{"autoCreateTopicEnable": False}`. Only with `faults` the network can be broken. `grpc` is
    the port for RocketMQ 5's gRPC clients, which need the extra `grpc`. Port 0 is any free one.

    Raises `InvalidInput` for what can never work; `start` raises `CannotStart`.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        data: str | PathLike[str] | None = None,
        in_process: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        config: Mapping[str, Setting] | None = None,
        faults: bool = False,
        grpc: int | None = None,
    ) -> None:
        self._grpc_port = grpc
        self._grpc: GrpcService | None = None
        self._supervisor = Supervisor(
            ClusterSettings(
                brokers=brokers,
                data=None if data is None else Path(data),
                in_process=in_process,
                host=host,
                port=port,
                config=cluster_config(config),
                faults=faults,
            )
        )

    async def start(self) -> Self:
        """Start all parts and wait until the brokers are registered."""
        if self._supervisor.address:
            raise InvalidInput("the cluster is running already")
        await self._supervisor.start()
        if self._grpc_port is not None:
            try:
                await self.serve_grpc(self._grpc_port)
            except BaseException:
                await self.stop()
                raise
        return self

    async def stop(self) -> None:
        """Stop all parts gracefully. Stopping twice is harmless."""
        service, self._grpc = self._grpc, None
        try:
            if service is not None:
                await service.stop()
        finally:
            await self._supervisor.stop()

    async def serve_grpc(self, port: int = 0) -> str:
        """Serve RocketMQ 5's gRPC clients, too, and return the address for them.

        Does nothing but that if they are served already. Raises `CannotStart`.
        """
        if self._grpc is None:
            address = self.address
            service = GrpcService(self._supervisor, parse_address(address).host)
            await service.start(port)
            self._grpc = service
        return self._grpc.address

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def address(self) -> str:
        """The name server's address, for clients. Raises `InvalidInput` if stopped."""
        if not self._supervisor.address:
            raise InvalidInput("the cluster is not running; start it first")
        return self._supervisor.address

    @property
    def grpc_address(self) -> str:
        """The address for gRPC clients. Raises `InvalidInput` if they are not served."""
        if self._grpc is None:
            raise InvalidInput(
                "the cluster serves no gRPC clients; pass grpc=0 to it, or call serve_grpc()"
            )
        return self._grpc.address

    @property
    def brokers(self) -> dict[str, BrokerInfo]:
        """The brokers by name: `broker-0`, `broker-1` and so on."""
        return {
            name: BrokerInfo(
                name=name,
                address=member.address,
                pid=member.runner.pid if member.running and member.runner is not None else None,
            )
            for name, member in self._supervisor.members.items()
        }

    async def kill(self, broker: str) -> None:
        """End a broker without warning; it stays down until `restart`.

        A broker process gets SIGKILL. In-process, connections are reset, answers in flight are
        lost and the name server is not notified, as clients see a crash; but the store is closed
        gracefully, so only broker processes test recovery. Without `data` the messages are lost
        either way.
        """
        await self._supervisor.kill(broker)

    async def restart(self, broker: str) -> None:
        """Start a broker that is down, or stop it gracefully and start it again, at its address."""
        await self._supervisor.restart(broker)

    async def partition(self, broker: str) -> None:
        """Cut a broker off from its clients and the name server silently: nothing is refused."""
        await self._supervisor.network(broker).partition()

    async def heal(self, broker: str) -> None:
        """Undo `partition` and `slow`; what was held back arrives now."""
        self._supervisor.network(broker).heal()

    async def slow(self, broker: str, delay: float) -> None:
        """Hold back everything between a broker and its clients for `delay` seconds, each way."""
        if not 0 <= delay <= 3600:
            raise InvalidInput(f"a delay must be between 0 and 3600 seconds, not {delay}")
        self._supervisor.network(broker).slow(delay)

    async def create_topic(
        self, name: str, queues: int = 8, *, message_type: str = "NORMAL"
    ) -> str:
        """Create a topic with `queues` queues on each running broker, and return its name.

        `message_type` is NORMAL, FIFO, DELAY, TRANSACTION or PRIORITY; RocketMQ 5's gRPC clients
        can send messages of this type only. Clients can find the topic when this returns. Raises
        `ServerError` if a broker refuses.
        """
        await self._supervisor.create_topic(name, queues, message_type)
        return name

    async def messages(self, topic: str) -> "list[ReceivedMessage]":
        """Return the messages of a topic; see `pocketmq.Cluster.messages`."""
        from pocketmq.embedded.inspecting import stored_messages

        return await asyncio.to_thread(stored_messages, self.address, topic)

    async def wait_for(
        self,
        topic: str,
        count: int,
        timeout: float = 10.0,  # noqa: ASYNC109 - as the blocking one
    ) -> "list[ReceivedMessage]":
        """Return the messages of a topic as soon as there are `count`; raises `TimeoutError`."""
        from pocketmq.embedded.inspecting import wait_for_messages

        return await asyncio.to_thread(wait_for_messages, self.address, topic, count, timeout)

    async def reset(self) -> None:
        """Delete all topics and groups, with messages and offsets. Close clients before."""
        from pocketmq.embedded.inspecting import delete_all

        await asyncio.to_thread(delete_all, self.address)
