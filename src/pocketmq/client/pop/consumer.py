"""The POP consumer as applications use it, on asyncio.

Owns its life; how messages are received is in `receiving`, what is sent in `requests`, what the
session is told in `member`.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_range, check_seconds
from pocketmq.client.filters import Filter
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions
from pocketmq.client.pop.member import PopMember
from pocketmq.client.pop.options import FIRST, MOST_MESSAGES, PopConsumerOptions, PopSettings
from pocketmq.client.pop.popped import handle_of, with_handle
from pocketmq.client.pop.receiving import LONGEST_WAIT, Pause, Receiving, Wanted
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.pop.sources import Sources
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.client.settings import sort_settings
from pocketmq.errors import ClientClosed, InvalidInput, MQError
from pocketmq.protocol.pop_handles import PopHandle
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

_AT_ONCE = 0.001
"""How long a message is hidden that is given back."""


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
        self._parts: tuple[Session, PopRequests, Receiving, Sources] | None = None
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
        receiving = Receiving(requests, session.tasks, attempt)
        self._parts = (session, requests, receiving, Sources(session.routes))

    async def close(self) -> None:
        """Leave the group; messages received stay hidden for their time. Harmless twice.

        Cancelled, it goes on in the background.
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
                await self._give_back(parts[1], parts[2].give_up())
            await lease.session.remove_consumer(self._member)
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
        _, _, receiving, sources = self._running()
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
        left_behind = receiving.left(topic, most)
        if left_behind:
            return left_behind
        clock = asyncio.get_running_loop().time
        deadline = clock() + patience
        pause, told = Pause(), False
        while True:
            places = await sources.in_turn(subscribed, self._client_options.request_timeout)
            began = clock()
            wait = min(LONGEST_WAIT, max(0.0, deadline - began))
            if len(places) == 1:
                messages = await receiving.take(places[0], wanted, wait)
                hasty = clock() - began < wait / 2  # the broker did not wait, as it was asked to
            else:
                messages = await receiving.look(places, wanted)
                hasty = told  # there was something to take, and it was not for us
            if messages or clock() >= deadline:
                return messages
            if hasty:
                await pause.wait(deadline - clock())
            if len(places) > 1:
                wait = min(LONGEST_WAIT, max(0.0, deadline - clock()))
                told = await receiving.wait_for_any(places, wait)

    async def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Say that messages are done, so that they do not come back.

        Raises `ServerError` if a broker refuses, such as for a handle that is too old, and
        `TransportError`; the others of its messages may be acknowledged then.
        """
        _, requests, _, _ = self._running()
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
        _, requests, _, _ = self._running()
        check_seconds("invisible", seconds, at_least=0.001)
        topic = self._member.wire_topic(message.topic)
        handle = await requests.change_invisible(topic, handle_of(message), seconds)
        return with_handle(message, handle)

    def _running(self) -> tuple[Session, PopRequests, Receiving, Sources]:
        if self._parts is None:
            raise ClientClosed(f"consumer of group {self.options.group}")
        return self._parts

    async def _give_back(self, requests: PopRequests, messages: list[ReceivedMessage]) -> None:
        """Let others have what nobody took, as far as brokers answer."""
        outcomes = await asyncio.gather(
            *(
                requests.change_invisible(
                    self._member.wire_topic(message.topic), handle_of(message), _AT_ONCE
                )
                for message in messages
            ),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, MQError):
                logger.info("a message could not be given back and returns later: %s", outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
