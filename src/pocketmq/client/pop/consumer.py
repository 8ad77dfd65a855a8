"""The POP consumer as applications use it, on asyncio.

Owns its life; how messages are received is in `receiving`, what is sent in `asking` and `requests`,
what the session is told in `member`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_range, check_seconds
from pocketmq.client.filters import Filter
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.pop.asking import Asking, Wanted
from pocketmq.client.pop.member import PopMember
from pocketmq.client.pop.options import FIRST, MOST_MESSAGES, PopConsumerOptions, PopSettings
from pocketmq.client.pop.popped import handle_of, with_handle
from pocketmq.client.pop.receiving import Receiving
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.pop.sources import Sources
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.protocol.pop_handles import PopHandle
from pocketmq.protocol.received import ReceivedMessage


class PopConsumer:
    """Takes messages one receive at a time; each is the caller's until it is not hidden any more.

        async with PopConsumer("127.0.0.1:9876", group="billing") as consumer:
            consumer.subscribe("orders")
            for message in await consumer.receive():
                ...
                await consumer.ack(message)

    Needs brokers of RocketMQ 5.x; others refuse with `RequestNotSupported`. Every call ends by its
    deadline. Belongs to one event loop; tasks may share it.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        **settings: Unpack[PopSettings],
    ) -> None:
        client, own = sort_settings(PopConsumerOptions, group, name_servers, options, settings)
        self._client_options = client
        self.options = own
        self._member = PopMember(own, client.namespace)
        self._lease: Lease | None = None
        self._lifetime = Lifetime(f"consumer of group {group}")
        self._parts: tuple[Session, PopRequests, Receiving] | None = None
        self._ended = False

    # Life

    async def start(self) -> None:
        """Join the group; does nothing if it is running.

        Raises `NameServersUnreachable`, `GroupTaken`; then nothing is open. Raises `ClientClosed`
        once it has been closed.
        """
        if self._ended:
            raise ClientClosed(f"consumer of group {self.options.group}")
        await self._lifetime.start(self._start)

    async def _start(self) -> None:
        lease = self._lease = await lease_session(self._client_options)
        session = lease.session
        try:
            session.add_consumer(self._member)
            self._member.started_at_ms = session.clock.now_ms()
            await session.fetch_routes(self._member.topics())
            await session.heartbeats.beat()
        except BaseException:
            await self._close()
            raise
        ordered = self.options.ordered
        requests = PopRequests(
            session,
            self._member.group,
            ordered=ordered,
            from_first=self.options.consume_from is FIRST,
        )
        attempt = (lambda: f"{session.random.getrandbits(128):032x}") if ordered else None
        receiving = Receiving(
            f"consumer of group {self.options.group}",
            Asking(requests, session.tasks, attempt),
            session.tasks,
            Sources(session.routes, self._client_options.request_timeout),
            self._member.subscribed,
        )
        self._parts = (session, requests, receiving)

    async def close(self) -> None:
        """Leave the group; messages received stay hidden for their time. Harmless twice.

        Messages popped that no receive returned go back to the brokers; a receive that waits ends
        with an error. Cancelled, it goes on in the background.
        """
        self._ended = True
        await self._lifetime.end(self._close)

    async def _close(self) -> None:
        lease, self._lease = self._lease, None
        parts, self._parts = self._parts, None
        if lease is None:
            return
        try:
            if parts is not None:
                await parts[2].holds.close()
            await lease.session.remove_consumer(self._member)
            if parts is not None:  # brokers of ours have answered held pops by now
                await parts[2].holds.returned()
        finally:
            await lease.release()

    def __repr__(self) -> str:
        started = self._parts is not None
        state = "running" if started else "closed" if self._ended else "not started"
        return shown(self, self.options.group, self._lease, state)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # What to receive

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Receive messages of a topic, from now on; again with another filter replaces the first.

        Raises `NameInvalid`, `FilterSyntaxError`.
        """
        session = self._parts[0] if self._parts is not None else None
        version = session.clock.now_ms() if session is not None else 0
        self._member.subscribe(topic, expression, version)
        if session is not None:
            session.heartbeats.beat_soon(in_full=True)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Receive no more messages of a topic."""
        if self._member.unsubscribe(topic) and self._parts is not None:
            self._parts[0].heartbeats.beat_soon(in_full=True)

    # Messages

    async def receive(
        self,
        max_messages: int | None = None,
        *,
        topic: str | None = None,
        invisible: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the broker waits
    ) -> list[ReceivedMessage]:
        """Take messages, as many as one broker has ready; none if none comes within `timeout`.

        They are hidden from all others for `invisible` seconds. `topic` chooses one of the
        subscribed. Raises `RouteNotFound`, `RequestNotSupported` (no RocketMQ 5.x), and the last
        broker's error if none can be asked.
        """
        _, _, receiving = self._running()
        most = self.options.max_messages if max_messages is None else max_messages
        check_range("max_messages", most, 1, MOST_MESSAGES)
        wanted = Wanted(most, self.options.invisible if invisible is None else invisible)
        check_seconds("invisible", wanted.invisible, at_least=0.001)
        patience = self.options.receive_timeout if timeout is None else timeout
        check_seconds("timeout", patience)
        subscribed = self._member.subscribed(topic)
        if not subscribed:
            missing = "no topic is" if topic is None else f"{topic!r} is not"
            raise InvalidInput(f"{missing} subscribed; call subscribe() first")
        return await receiving.receive(subscribed, wanted, patience)

    async def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Say that messages are done, so that they do not come back.

        Raises `ServerError` if a broker refuses, such as for a handle that is too old, and
        `TransportError`; the others of its messages may be acknowledged then.
        """
        _, requests, _ = self._running()
        some = messages if isinstance(messages, Iterable) else [messages]
        by_broker: dict[str, list[tuple[str, PopHandle]]] = defaultdict(list)
        for message in some:
            handle = handle_of(message)
            by_broker[handle.broker_name].append((self._member.wire_topic(message.topic), handle))
        outcomes = await asyncio.gather(
            *(requests.ack(broker, handles) for broker, handles in by_broker.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def change_invisible(self, message: ReceivedMessage, seconds: float) -> ReceivedMessage:
        """Hide a message for so long from now on; with little, it comes back soon.

        Gives the message with its new handle: acknowledge that one, the old handle is void. Raises
        `ServerError` if the broker refuses, and `TransportError`.
        """
        _, requests, _ = self._running()
        check_seconds("invisible", seconds, at_least=0.001)
        topic = self._member.wire_topic(message.topic)
        handle = await requests.change_invisible(topic, handle_of(message), seconds)
        return with_handle(message, handle)

    def _running(self) -> tuple[Session, PopRequests, Receiving]:
        if self._parts is None:
            raise ClientClosed(f"consumer of group {self.options.group}")
        return self._parts
