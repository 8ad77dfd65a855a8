"""The clients of a proxy: their settings, their streams, and their life as members of groups.

A client that does not read the commands on its stream is disconnected, so that they do not grow
memory.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from pocketmq.client.calls import ClientKind
from pocketmq.client.clock import Clock
from pocketmq.client.options import ClientOptions
from pocketmq.client.session import Session
from pocketmq.errors import MQError
from pocketmq.model import ConsumeType, Subscription
from pocketmq.proxy.members import GrpcConsumer, GrpcProducer, PendingAnswers
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

logger = logging.getLogger("pocketmq.proxy")

MOST_WAITING = 1024
"""Commands of one stream that wait."""


class TelemetryStream:
    """The proxy's half of a client's Telemetry stream: commands that wait to be written.

    Belongs to one event loop.
    """

    def __init__(self, hang_up: Callable[[], object]) -> None:
        self._hang_up = hang_up
        self._waiting: asyncio.Queue[s.TelemetryCommand] = asyncio.Queue(MOST_WAITING)

    def send(self, command: s.TelemetryCommand) -> bool:
        """Queue a command; False if the client reads too slowly, which ends the stream."""
        try:
            self._waiting.put_nowait(command)
        except asyncio.QueueFull:
            self._hang_up()
            return False
        return True

    async def next(self) -> s.TelemetryCommand:
        """Wait for the next command to write."""
        return await self._waiting.get()


class GrpcClient:
    """One client: a producer of topics, or a consumer of a group."""

    def __init__(
        self, client_id: str, session: Session, answers: PendingAnswers, version: int
    ) -> None:
        self.client_id = client_id
        self._version = version
        self.settings = d.Settings()
        self.last_seen = 0.0
        """By the loop's clock."""
        self._session = session
        self._answers = answers
        self._streams: list[TelemetryStream] = []
        self._consumers: dict[str, GrpcConsumer] = {}
        self._produced: set[str] = set()

    # The way to the client

    def opened(self, stream: TelemetryStream) -> None:
        """Use a stream for commands from now on."""
        if stream not in self._streams:
            self._streams.append(stream)

    def closed(self, stream: TelemetryStream) -> None:
        """Stop using a stream."""
        if stream in self._streams:
            self._streams.remove(stream)

    @property
    def connected(self) -> bool:
        """Whether it has a stream."""
        return bool(self._streams)

    def send(self, command: s.TelemetryCommand) -> bool:
        """Send a command on the newest stream; False if there is none."""
        return bool(self._streams) and self._streams[-1].send(command)

    async def ask(self, command: s.TelemetryCommand, nonce: str) -> s.TelemetryCommand:
        """Send a command and return its answer; raises `ServerError`."""
        return await self._answers.ask(self, command, nonce)

    # As a member of groups

    def produces(self, topics: list[str]) -> None:
        """Register it as a producer of topics."""
        for topic in topics:
            if topic not in self._produced:
                self._produced.add(topic)
                self._session.add_producer(GrpcProducer(self._session, topic, self))
        self._session.heartbeats.beat_soon()

    def consumes(self, group: str, kind: ConsumeType, subscriptions: list[Subscription]) -> None:
        """Register it as a consumer, or take over its new subscriptions."""
        consumer = self._consumers.get(group)
        if consumer is None:
            now, version = self._session.clock.now_ms(), self._version
            consumer = self._consumers[group] = GrpcConsumer(group, kind, self, now, version)
            self._session.add_consumer(consumer)
        consumer.subscriptions = subscriptions
        self._session.heartbeats.beat_soon(in_full=True)

    def receives(self, group: str, subscription: Subscription) -> None:
        """Take over a subscription by which it receives: some clients never report theirs."""
        consumer = self._consumers.get(group)
        if consumer is None or subscription in consumer.subscriptions:
            return
        others = [each for each in consumer.subscriptions if each.topic != subscription.topic]
        consumer.subscriptions = [*others, subscription]
        self._session.heartbeats.beat_soon(in_full=True)

    async def leave(self) -> None:
        """Unregister it from the brokers."""
        if self._session.running:
            try:
                await self._session.stop()
            except MQError as error:
                logger.info("client %s: cannot unregister: %s", self.client_id, error)


class Clients:
    """All clients of a proxy, by their ids. Belongs to one event loop."""

    def __init__(self, options: ClientOptions, clock: Clock, random: Random) -> None:
        self.answers = PendingAnswers()
        self.on_gone: Callable[[str], None] = lambda _: None
        """Called with the id of each client that is gone."""
        self._options = options
        self._clock = clock
        self._random = random
        self._by_id: dict[str, GrpcClient] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._streams: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, client_id: str) -> GrpcClient | None:
        """Return a client that has reported its settings."""
        return self._by_id.get(client_id)

    def seen(self, client_id: str) -> GrpcClient | None:
        """Return a client and take note that it is alive."""
        client = self._by_id.get(client_id)
        if client is not None:
            client.last_seen = asyncio.get_running_loop().time()
        return client

    @contextmanager
    def streaming(self, client_id: str, most: int) -> Iterator[None]:
        """Count a Telemetry stream of a client while it is open; raises `CallRefused`."""
        if self._streams[client_id] >= most:
            text = f"the client has {most} Telemetry streams; close one first"
            raise CallRefused(d.Code.TOO_MANY_REQUESTS, text)
        self._streams[client_id] += 1
        try:
            yield
        finally:
            self._streams[client_id] -= 1
            if not self._streams[client_id]:
                del self._streams[client_id]

    async def join(self, client_id: str, kind: ClientKind) -> GrpcClient:
        """Return a client, made if it is new; brokers list it as one of this kind.

        Raises `NameServersUnreachable`.
        """
        lock = self._starting.setdefault(client_id, asyncio.Lock())
        try:
            async with lock:
                client = self._by_id.get(client_id)
                if client is None:
                    session = Session(self._options, client_id, self._clock, self._random)
                    session.calls.behind = kind
                    await session.start()
                    client = GrpcClient(client_id, session, self.answers, kind.version)
                    self._by_id[client_id] = client
        finally:
            self._starting.pop(client_id, None)
        client.last_seen = asyncio.get_running_loop().time()
        return client

    async def remove(self, client_id: str) -> GrpcClient | None:
        """Forget a client and unregister it; return it if it was there."""
        client = self._by_id.pop(client_id, None)
        if client is not None:
            self.on_gone(client_id)
            await client.leave()
        return client

    async def drop_expired(self, expiry: float) -> None:
        """Remove clients that have sent no heartbeat for `expiry` seconds."""
        now = asyncio.get_running_loop().time()
        gone = [key for key, each in self._by_id.items() if now - each.last_seen > expiry]
        for client_id in gone:
            logger.info("client %s: no heartbeat for %g s; removed", client_id, expiry)
            await self.remove(client_id)

    async def close(self) -> None:
        """Remove all clients."""
        await asyncio.gather(*(self.remove(client_id) for client_id in list(self._by_id)))
