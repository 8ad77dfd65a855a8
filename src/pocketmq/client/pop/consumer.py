"""The POP consumer as applications use it, on asyncio.

How messages are received is in `receiving`, what is sent in `requests`, its part in the group in
`member`.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_seconds
from pocketmq.client.consumer_options import PopConsumerOptions, PopSettings
from pocketmq.client.filters import Filter
from pocketmq.client.group.life import ConsumerLife
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.pop.member import PopMember
from pocketmq.client.pop.popped import handle_of, with_handle
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import ClientClosed
from pocketmq.protocol import ReceivedMessage


class PopConsumer:
    """Takes messages one receive at a time; each stays hidden from other consumers for a while.

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
        self._subscriptions = Subscriptions(client.namespace)
        self._life = ConsumerLife(group, self._join, self._make_member)
        self._ended = False

    # Life

    async def start(self) -> None:
        """Join the group; does nothing if it is running.

        Raises `NameServersUnreachable`, `GroupTaken`; then nothing is open. Raises `ClientClosed`
        once it has been closed.
        """
        if self._ended:
            raise ClientClosed(f"consumer of group {self.options.group}")
        await self._life.start()

    async def _join(self) -> Lease:
        return await lease_session(self._client_options)

    def _make_member(self, session: Session) -> PopMember:
        return PopMember(session, self.options, self._subscriptions)

    async def close(self) -> None:
        """Leave the group; messages received stay hidden for their time. Harmless twice.

        Popped messages that no receive returned go back to the brokers; a receive that waits ends
        with an error. If cancelled, closing continues in the background.
        """
        self._life.check_loop()
        self._ended = True
        await self._life.close(lambda member: member.stop())

    def __repr__(self) -> str:
        return self._life.describe(self, closed=self._ended)

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
        self._life.check_loop()
        member = self._life.current
        version = member.session.clock.now_ms() if member is not None else 0
        self._subscriptions.want(topic, expression, version_ms=version)
        if member is not None:
            member.session.heartbeats.beat_soon(in_full=True)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Receive no more messages of a topic."""
        self._life.check_loop()
        if self._subscriptions.remove(topic) and self._life.current is not None:
            self._life.current.session.heartbeats.beat_soon(in_full=True)

    # Messages

    @property
    def member(self) -> PopMember:
        """The running consumer. Raises `ClientClosed` unless it is running."""
        return self._life.running()

    async def receive(
        self,
        max_messages: int | None = None,
        *,
        topic: str | None = None,
        invisible: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the broker waits
    ) -> list[ReceivedMessage]:
        """Take messages, as many as one broker has ready; none if none comes within `timeout`.

        They are hidden from all other consumers for `invisible` seconds. `topic` chooses one of the
        subscribed. Raises `RouteNotFound`, `RequestNotSupported` (no RocketMQ 5.x), and the last
        broker's error if none can be asked.
        """
        member = self._life.here()
        wanted, patience = member.checked(max_messages, invisible, timeout)
        return await member.receiving.receive(member.to_receive(topic), wanted, patience)

    async def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Acknowledge messages, so that they are not redelivered.

        Raises `ServerError` if a broker refuses, such as for a handle that is too old, and
        `TransportError`; the others of its messages may be acknowledged then.
        """
        member = self._life.here()
        requests, by_broker = member.requests, member.by_broker(messages)
        if len(by_broker) == 1:
            ((broker, acks),) = by_broker.items()
            await requests.ack(broker, acks)
            return
        outcomes = await asyncio.gather(
            *(requests.ack(broker, acks) for broker, acks in by_broker.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def change_invisible(self, message: ReceivedMessage, seconds: float) -> ReceivedMessage:
        """Hide a message for `seconds` from now on; then it is redelivered.

        Returns the message with its new handle: acknowledge that one, the old one is void. Raises
        `ServerError` if the broker refuses, and `TransportError`.
        """
        requests = self._life.here().requests
        check_seconds("invisible", seconds, at_least=0.001)
        topic = self._subscriptions.wire(message.topic)
        handle = await requests.change_invisible(topic, handle_of(message), seconds)
        return with_handle(message, handle)
