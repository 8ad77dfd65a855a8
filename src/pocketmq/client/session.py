"""One client of a cluster (Java: MQClientInstance): what all its producers and consumers share.

Owns the connections, routes, heartbeats, timers and the roll of members, notifies members, and
asks questions (`ask_session`). Decides nothing about messages or queues. Belongs to one event
loop; lease one from `pocketmq.client.sessions`, which shares it among members with the same
client id.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from random import Random
from typing import TypeVar

from pocketmq import errors
from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.brokers import BrokerCalls, any_broker_of
from pocketmq.client.calls import ServerCalls, hooks_for
from pocketmq.client.clock import Clock
from pocketmq.client.heartbeats import Heartbeats
from pocketmq.client.inbound import Inbound
from pocketmq.client.lifetime import fork_count
from pocketmq.client.members import ConsumerMember, ProducerMember, Roll, SessionMember
from pocketmq.client.name_servers import NameServerCalls, name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.asking import Ask, Question, run
from pocketmq.client.routes import KnownRoute, RouteBook
from pocketmq.client.tasks import Tasks
from pocketmq.model import MessageQueue
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.net import Connection, Dialer, Limits
from pocketmq.protocol import Command

logger = logging.getLogger("pocketmq.client")

T = TypeVar("T")

_FIRST_POLL = 0.01
_START_PAUSE = 0.2
"""Seconds between tries to reach a name server at start; doubled each time up to a second."""
QUEUE_TIMEOUT = 5.0
"""Seconds for a question about a queue, as in Java."""


class Session:
    """A running client. Members register, use what is here, and unregister."""

    def __init__(
        self,
        options: ClientOptions,
        client_id: str,
        clock: Clock,
        random: Random,
        *,
        stream: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.options = options
        self.client_id = client_id
        self.clock = clock
        self.random = random
        self.roll = Roll(client_id)
        self.tasks = Tasks(client_id)
        self.addresses = BrokerAddresses()
        self._generation = fork_count()
        self._open = False
        self._dialer = Dialer(self, limits, options.tls)
        self._inbound = Inbound(self.roll, self.tasks)
        self.calls = ServerCalls(self._dialer, hooks_for(options, stream=stream), self.check)
        servers = name_server_addresses(options.name_servers, os.environ)
        timeout = options.request_timeout
        self.routes = RouteBook(
            NameServerCalls(servers, self.calls, random), self.addresses, self.tasks, timeout
        )
        self.brokers = BrokerCalls(
            self.calls, self.addresses, timeout=timeout, vip_channel=options.vip_channel
        )
        self.heartbeats = Heartbeats(
            self.calls,
            self.addresses,
            self.tasks,
            self.roll.heartbeat,
            timeout=timeout,
            short=options.heartbeat_v2,
        )
        self.routes.listen(self._route_changed)

    # Life

    async def start(self) -> None:
        """Reach a name server, if the options say so, and start the timers.

        Raises `NameServersUnreachable`, or `ServerError` if the server at such an address is not a
        name server; nothing is left open then.
        """
        self._open = True  # before the first request, which checks it
        try:
            if self.options.start_wait is not None:
                await self._reach_name_server(self.options.start_wait)
        except BaseException:
            await self._shut()
            raise
        options = self.options
        self.tasks.every(
            options.route_interval, self._poll_routes, "route poll", first_after=_FIRST_POLL
        )
        self.tasks.every(
            options.heartbeat_interval,
            self._heartbeat,
            "heartbeat timer",
            first_after=options.heartbeat_first_after,
        )

    async def stop(self) -> None:
        """Unregister all members from the brokers and close everything."""
        self.check()
        try:
            await asyncio.gather(
                *(self.remove_producer(member) for member in self.roll.producers),
                *(self.remove_consumer(member) for member in self.roll.consumers),
            )
        finally:
            await self._shut()

    def check(self) -> None:
        """Raise `ClientForked` in a fork of the client's process, `ClientClosed` if not running."""
        if fork_count() != self._generation:
            raise errors.ClientForked(self.client_id)
        if not self._open:
            raise errors.ClientClosed(self.client_id)

    def check_process(self) -> None:
        """Raise `ClientForked` in a fork of the client's process."""
        if fork_count() != self._generation:
            raise errors.ClientForked(self.client_id)

    @property
    def running(self) -> bool:
        """Whether it has started and not stopped."""
        return self._open

    # Members

    def add_producer(self, member: ProducerMember) -> None:
        """Register a producer; raises `GroupTaken`. The next heartbeat reports it to brokers."""
        self.check()
        self.roll.producers.add(member)

    def add_consumer(self, member: ConsumerMember) -> None:
        """Register a consumer; raises `GroupTaken`. The next heartbeat reports it to brokers."""
        self.check()
        self.roll.consumers.add(member)

    async def remove_producer(self, member: ProducerMember) -> None:
        """Unregister a producer, also from the brokers; does nothing if it is not registered."""
        self.check()
        if self.roll.producers.remove(member):
            await self.heartbeats.unregister(self.client_id, producer=member.group)

    async def remove_consumer(self, member: ConsumerMember) -> None:
        """Unregister a consumer, also from the brokers, which notify the rest of its group."""
        self.check()
        if self.roll.consumers.remove(member):
            await self.heartbeats.unregister(self.client_id, consumer=member.group)

    async def fetch_routes(self, topics: Iterable[str]) -> None:
        """Fetch routes again; topics without one are skipped.

        Raises `NameServersUnreachable`.
        """
        self.check()
        await self.routes.refresh_all(topics)

    async def any_broker_of(self, topic: str) -> str:
        """Return the address of some broker of a topic; see `brokers.any_broker_of`."""
        self.check()
        return await any_broker_of(self.routes, topic, self.random)

    # Owner of the connections: called by the transport.

    def connection_opened(self, connection: Connection) -> None:
        """Send a heartbeat on a fresh connection to a broker, as 5.x does."""
        address = connection.remote_address
        if address not in self.addresses:
            return
        if self.options.profile.channel_active_heartbeat and len(self.roll):
            self.tasks.spawn(self.heartbeats.beat_to(address), f"greet {address}")
        for consumer in self.roll.consumers:
            _notify(consumer, consumer.on_broker_active, address)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Answer requests of brokers."""
        for request in requests:
            self._inbound.receive(connection, request)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:  # noqa: ARG002 - the transport's
        """Forget what the broker at the other end knew of this client."""
        address = connection.remote_address
        self.heartbeats.forget(address)
        # The end of a connection may come after the beginning of the one that replaces it.
        if address in self.addresses and self._dialer.known(address) is None:
            for consumer in self.roll.consumers:
                _notify(consumer, consumer.on_broker_lost, address)

    # Timers and notices

    async def _poll_routes(self) -> None:
        # Every Java client keeps the template's route, and so has the addresses of its brokers.
        await self.routes.poll(self.roll.topics() | {AUTO_CREATE_TOPIC})

    async def _heartbeat(self) -> None:
        self.routes.drop_offline_brokers()
        await self.heartbeats.beat()

    def _route_changed(self, known: KnownRoute) -> None:
        members: list[SessionMember] = [*self.roll.producers, *self.roll.consumers]
        for member in members:
            if known.topic in member.topics():
                _notify(member, member.on_route_changed, known)

    async def _reach_name_server(self, patience: float) -> None:
        """Wait until a name server answers, with a route or without.

        Raises `NameServersUnreachable`, and `RequestNotSupported` if it is not a name server.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        pause = _START_PAUSE
        while True:
            try:
                await self.routes.refresh(AUTO_CREATE_TOPIC)
            except (errors.RouteNotFound, errors.ProtocolError):
                return
            except errors.ServerError as error:
                if error.retryable:
                    return
                raise
            except errors.NameServersUnreachable:
                left = deadline - loop.time()
                if left <= 0:
                    raise
                await asyncio.sleep(min(pause, left))
                pause = min(2 * pause, 1.0)
            else:
                return

    async def _shut(self) -> None:
        try:
            # Tasks first: one that still ran would reconnect.
            await self.tasks.stop()
            await self._dialer.close()
        finally:
            self._open = False


def _notify(member: SessionMember, notice: Callable[[T], None], what: T) -> None:
    """Notify a member; if it fails, the others are notified nevertheless."""
    try:
        notice(what)
    except Exception:
        logger.exception("handling a broker notification failed: group=%s; ignored", member.group)


async def ask_session(session: Session, question: Question[T], *, master_only: bool = False) -> T:
    """Ask the brokers of the queues that a question is about.

    Without an address of a queue's broker, or if the queue has moved to another one, its route is
    fetched once; without that of its master, a slave is asked unless `master_only`. Raises
    `BrokerNotFound`, `ServerError`, `TransportError`, and what the question does.
    """

    async def carry(asked: Ask) -> Command:
        queue = asked.queue
        if queue is None:
            raise TypeError("a question for name servers; ask the session's routes")
        try:
            return await _call(session, queue, asked, master_only=master_only)
        except (errors.BrokerNotFound, errors.NotLeader):
            await session.fetch_routes([queue.topic])
        return await _call(session, queue, asked, master_only=master_only)

    return await run(question, carry)


async def _call(session: Session, queue: MessageQueue, asked: Ask, *, master_only: bool) -> Command:
    return await session.brokers.call(
        session.addresses.holder(queue),
        asked.code,
        asked.header,
        asked.body,
        timeout=QUEUE_TIMEOUT if asked.timeout is None else asked.timeout,
        master_only=master_only,
        accept=asked.accept,
    )
