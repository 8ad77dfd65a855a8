"""The blocking POP consumer: `pocketmq.aio.PopConsumer` for ordinary threads."""

from collections.abc import Iterable
from typing import Self, Unpack

from pocketmq.blocking.facade import Facade
from pocketmq.client.consumer_options import PopConsumerOptions, PopSettings
from pocketmq.client.filters import Filter
from pocketmq.client.options import ClientOptions
from pocketmq.client.pop.consumer import PopConsumer as AsyncPopConsumer
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

    @property
    def options(self) -> PopConsumerOptions:
        """The consumer's options."""
        return self._client.options

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Receive messages of a topic from now on; repeat it to change the filter.

        Raises `NameInvalid`, `FilterSyntaxError`.
        """
        self._do(self._client.subscribe, topic, expression)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Stop receiving messages of a topic."""
        self._do(self._client.unsubscribe, topic)

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
        return self._call(
            self._client.receive(max_messages, topic=topic, invisible=invisible, timeout=timeout)
        )

    def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Acknowledge messages, so that they are not redelivered.

        Raises `ServerError` if a broker refuses, such as for a handle that is too old, and
        `TransportError`; the others of its messages may be acknowledged then.
        """
        self._call(self._client.ack(messages))

    def change_invisible(self, message: ReceivedMessage, seconds: float) -> ReceivedMessage:
        """Make a message invisible for `seconds` from now; returns it with its new handle.

        Returns the message with its new handle: acknowledge that one, the old one is void. Raises
        `ServerError` if the broker refuses, and `TransportError`.
        """
        return self._call(self._client.change_invisible(message, seconds))
