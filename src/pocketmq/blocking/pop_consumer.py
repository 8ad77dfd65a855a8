"""The blocking POP consumer: `pocketmq.aio.PopConsumer` for ordinary threads."""

from collections.abc import Iterable
from typing import Self, Unpack

from pocketmq.blocking.facade import Facade, inherit_docs
from pocketmq.client.filters import Filter
from pocketmq.client.options import ClientOptions
from pocketmq.client.pop import PopConsumer as AsyncPopConsumer
from pocketmq.client.pop.options import PopConsumerOptions, PopSettings
from pocketmq.protocol.received import ReceivedMessage


@inherit_docs(AsyncPopConsumer)
class PopConsumer(Facade[AsyncPopConsumer]):
    """Takes messages one receive at a time; each is the caller's until it is not hidden any more.

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
        """How it works."""
        return self._client.options

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Receive messages of a topic, from now on; again with another filter replaces it."""
        self._do(self._client.subscribe, topic, expression)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Receive no more messages of a topic."""
        self._do(self._client.unsubscribe, topic)

    def receive(
        self,
        max_messages: int | None = None,
        *,
        topic: str | None = None,
        invisible: float | None = None,
        timeout: float | None = None,
    ) -> list[ReceivedMessage]:
        """Take messages, as many as one broker has ready; none if none comes within `timeout`."""
        return self._call(
            self._client.receive(max_messages, topic=topic, invisible=invisible, timeout=timeout)
        )

    def ack(self, messages: ReceivedMessage | Iterable[ReceivedMessage]) -> None:
        """Say that messages are done, so that they do not come back."""
        self._call(self._client.ack(messages))

    def change_invisible(self, message: ReceivedMessage, seconds: float) -> ReceivedMessage:
        """Hide a message for so long from now on; gives it with its new handle."""
        return self._call(self._client.change_invisible(message, seconds))
