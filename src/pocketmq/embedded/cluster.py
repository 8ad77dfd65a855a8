"""The embedded cluster for blocking callers: the asyncio one on a loop in a thread of its own."""

from collections.abc import Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.embedded import aio
from pocketmq.embedded.settings import Setting
from pocketmq.errors import InvalidInput

if TYPE_CHECKING:
    from pocketmq.protocol import ReceivedMessage


class Cluster:
    """A name server and brokers on this machine, used with `with` or `start` and `stop`.

        with Cluster(brokers=2) as cluster:
            producer = Producer(cluster.address, group="shop")

    Options are those of `pocketmq.embedded.aio.Cluster`. Methods may be called from any thread.
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
        self._cluster = aio.Cluster(
            brokers,
            data=data,
            in_process=in_process,
            host=host,
            port=port,
            config=config,
            faults=faults,
            grpc=grpc,
        )
        self._thread: LoopThread | None = None

    def start(self) -> Self:
        """Start all parts and wait until the brokers are registered."""
        if self._thread is not None:
            raise InvalidInput("the cluster is running already")
        thread = LoopThread("pocketmq-cluster")
        try:
            thread.call(self._cluster.start())
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def stop(self) -> None:
        """Stop all parts gracefully. Stopping twice is harmless."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.call(self._cluster.stop())
            finally:
                thread.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """The name server's address, for clients. Raises `InvalidInput` if stopped."""
        return self._cluster.address

    @property
    def grpc_address(self) -> str:
        """The address for RocketMQ 5's gRPC clients, which are served from its first use on.

        Needs the extra `grpc`; raises `CannotStart` without it.
        """
        return self._running.call(self._cluster.serve_grpc())

    @property
    def brokers(self) -> dict[str, aio.BrokerInfo]:
        """The brokers by name: `broker-0`, `broker-1` and so on."""
        return self._cluster.brokers

    def kill(self, broker: str) -> None:
        """End a broker without warning; it stays down until `restart`. See `aio.Cluster.kill`."""
        self._running.call(self._cluster.kill(broker))

    def restart(self, broker: str) -> None:
        """Start a broker that is down, or stop it gracefully and start it again, at its address."""
        self._running.call(self._cluster.restart(broker))

    def partition(self, broker: str) -> None:
        """Cut a broker off from its clients and the name server silently: nothing is refused."""
        self._running.call(self._cluster.partition(broker))

    def heal(self, broker: str) -> None:
        """Undo `partition` and `slow`; what was held back arrives now."""
        self._running.call(self._cluster.heal(broker))

    def slow(self, broker: str, delay: float) -> None:
        """Hold back everything between a broker and its clients for `delay` seconds, each way."""
        self._running.call(self._cluster.slow(broker, delay))

    def create_topic(self, name: str, queues: int = 8, *, message_type: str = "NORMAL") -> str:
        """Create a topic with `queues` queues on each running broker, and return its name.

        `message_type` is NORMAL, FIFO, DELAY, TRANSACTION or PRIORITY; RocketMQ 5's gRPC clients
        can send messages of this type only.
        """
        creating = self._cluster.create_topic(name, queues, message_type=message_type)
        return self._running.call(creating)

    # For tests; `pocketmq.testing.external.ExternalCluster` has the same.

    def messages(self, topic: str) -> "list[ReceivedMessage]":
        """Return the messages of a topic in the order in which they were stored.

        No consumer is needed, and none is disturbed. A topic that does not exist has none.
        """
        from pocketmq.embedded.inspecting import stored_messages

        return stored_messages(self.address, topic)

    def wait_for(self, topic: str, count: int, timeout: float = 10.0) -> "list[ReceivedMessage]":
        """Return the messages of a topic as soon as there are `count` or more.

        Raises `TimeoutError` if there are fewer after `timeout` seconds.
        """
        from pocketmq.embedded.inspecting import wait_for_messages

        return wait_for_messages(self.address, topic, count, timeout)

    def reset(self) -> None:
        """Delete all topics and groups, with messages and offsets. Close clients before."""
        from pocketmq.embedded.inspecting import delete_all

        delete_all(self.address)

    @property
    def _running(self) -> LoopThread:
        if self._thread is None:
            raise InvalidInput("the cluster is not running; start it first")
        return self._thread
