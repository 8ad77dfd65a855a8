"""The blocking POP consumer: `pocketmq.aio.PopConsumer` for ordinary threads."""

import time
from collections.abc import Iterable
from typing import Self, Unpack

from pocketmq.blocking.facade import Facade
from pocketmq.blocking.pops import BlockingPops
from pocketmq.client.consumer_options import PopConsumerOptions, PopSettings
from pocketmq.client.filters import Filter
from pocketmq.client.options import ClientOptions
from pocketmq.client.pop.consumer import PopConsumer as AsyncPopConsumer
from pocketmq.errors import ClientClosed, MQError
from pocketmq.protocol import ReceivedMessage


class PopConsumer(Facade[AsyncPopConsumer]):
    """Receives messages; each is invisible to other consumers for a time, and acked by the caller.

        with PopConsumer("127.0.0.1:9876", group="billing") as consumer:
            consumer.subscribe("orders")
            for message in consumer.receive():
                ...
                consumer.ack(message)

    Needs brokers of RocketMQ 5.x; others refuse with `RequestNotSupported`. Every call ends by its
    deadline. Threads may share it. Keywords are the fields of `PopConsumerOptions` and
    `ClientOptions`.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        **settings: Unpack[PopSettings],
    ) -> None:
        super().__init__(AsyncPopConsumer(name_servers, group=group, options=options, **settings))

        self._pops: BlockingPops | None = None

    @property
    def options(self) -> PopConsumerOptions:
        """The consumer's options."""
        return self._client.options

    # Life

    def start(self) -> Self:
        """Join the group; does nothing if it is running.

        Raises `NameServersUnreachable`, `GroupTaken`; then nothing is open. Raises `ClientClosed`
        once it has been closed.
        """
        super().start()
        if self._pops is None:
            self._call(self._begin())
        return self

    async def _begin(self) -> None:
        assert self._thread is not None
        owner = f"consumer of group {self._client.options.group}"
        self._pops = BlockingPops(self._client.member, owner, self._thread)

    def close(self) -> None:
        """Leave the group; messages received stay hidden for their time. Harmless twice.

        Popped messages that no receive returned go back to the brokers; a receive that waits ends
        with an error. If cancelled, closing continues in the background.
        """
        if self._thread is None:
            return
        self._thread.check()
        pops = self._pops
        if pops is not None:
            pops.connections.stop()
        super().close()
        if pops is not None:
            pops.connections.close()

    def _running(self) -> BlockingPops:
        """Return what it receives with; raises `ClientClosed`, and `WouldBlockLoop` on the loop."""
        pops, thread = self._pops, self._thread
        if pops is None or thread is None or pops.connections.closing:
            raise ClientClosed(f"consumer of group {self._client.options.group}")
        if thread.is_current():
            thread.check()
        return pops

    # What to receive

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Receive messages of a topic from now on; repeat it to change the filter.

        Raises `NameInvalid`, `FilterSyntaxError`.
        """
        self._do(self._client.subscribe, topic, expression)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Stop receiving messages of a topic."""
        self._do(self._client.unsubscribe, topic)

    # Messages

    def receive(
        self,
        max_messages: int | None = None,
        *,
        topic: str | None = None,
        invisible: float | None = None,
        timeout: float | None = None,
    ) -> list[ReceivedMessage]:
        """Return messages that a broker has ready; an empty list if none comes within `timeout`.

        They are hidden from all other consumers for `invisible` seconds. `topic` chooses one of the
        subscribed. Raises `RouteNotFound`, `RequestNotSupported` (no RocketMQ 5.x), and the last
        broker's error if none can be asked.
        """
        pops = self._running()
        began = time.monotonic()
        messages = pops.receive(max_messages, topic, invisible, timeout, began)
        if messages is not None:
            return messages
        wanted, patience = self._client.member.checked(max_messages, invisible, timeout)
        left = max(0.0, patience - (time.monotonic() - began))
        return self._call(
            self._client.receive(wanted.most, topic=topic, invisible=wanted.invisible, timeout=left)
        )

    def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Acknowledge messages, so that they are not redelivered.

        Raises `ServerError` if a broker refuses, such as for a handle that is too old, and
        `TransportError`; the others of its messages may be acknowledged then.
        """
        pops = self._running()
        alone = messages[0] if type(messages) is list and len(messages) == 1 else messages
        if isinstance(alone, ReceivedMessage):
            if pops.ack(alone):
                return
        elif type(messages) is list and messages and pops.ack_together(messages):
            return
        failure: MQError | None = None
        for broker, acks in self._client.member.by_broker(messages).items():
            try:
                pops.ack_all(broker, acks)
            except MQError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def change_invisible(self, message: ReceivedMessage, seconds: float) -> ReceivedMessage:
        """Make a message invisible for `seconds` from now; returns it with its new handle.

        Returns the message with its new handle: acknowledge that one, the old one is void. Raises
        `ServerError` if the broker refuses, and `TransportError`.
        """
        return self._call(self._client.change_invisible(message, seconds))
