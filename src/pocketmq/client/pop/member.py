"""A POP consumer as its session and brokers see it: subscriptions in heartbeats, no queues."""

from collections.abc import Collection

from pocketmq.client.consumer_options import PopConsumerOptions
from pocketmq.client.filters import Filter, subscription_to
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import ResponseCode, SystemFailure
from pocketmq.model.groups import ConsumerData, Subscription
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.names import check_topic, wrap_namespace
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.protocol.requests.client_calls import (
    PROP_CONSUME_TYPE,
    PROP_ORDERLY,
    PROP_START_TIMESTAMP,
    DirectConsumeResult,
    RunningInfo,
)


class PopMember:
    """What is subscribed, told to whoever asks. Names of topics and group are the wire's."""

    def __init__(self, options: PopConsumerOptions, namespace: str) -> None:
        self._options = options
        self._namespace = namespace
        self._by_name: dict[str, Subscription] = {}
        self.group = wrap_namespace(namespace, options.group)
        self.started_at_ms = 0

    def subscribe(self, topic: str, expression: str | Filter, version_ms: int) -> None:
        """Subscribe, or change what is subscribed; raises `NameInvalid`, `FilterSyntaxError`."""
        check_topic(topic)
        wire = wrap_namespace(self._namespace, topic)
        self._by_name[topic] = subscription_to(wire, expression, version_ms)

    def unsubscribe(self, topic: str) -> bool:
        """Leave a topic; False if it was not subscribed."""
        return self._by_name.pop(topic, None) is not None

    def subscribed(self, topic: str | None = None) -> list[tuple[str, Subscription]]:
        """List topics as the application calls them, with what is subscribed."""
        return [(name, sub) for name, sub in self._by_name.items() if topic in (None, name)]

    def wire_topic(self, topic: str) -> str:
        """Give a topic's name on the wire."""
        return wrap_namespace(self._namespace, topic)

    # What the session asks and tells.

    def topics(self) -> Collection[str]:
        """List the topics whose routes shall be kept fresh."""
        return [subscription.topic for subscription in self._by_name.values()]

    def consumer_data(self) -> ConsumerData:
        """Say what heartbeats tell brokers."""
        return ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_POP,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=self._options.consume_from,
            subscription_data_set=list(self._by_name.values()),
        )

    def on_route_changed(self, known: KnownRoute) -> None:
        """Do nothing: every receive looks at the routes."""

    def on_ids_changed(self) -> None:
        """Do nothing: there is nothing to share out."""

    def on_broker_active(self, address: str) -> None:
        """Do nothing: nothing is kept at a connection."""

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Do nothing: the broker has moved the group already."""

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:  # noqa: ARG002 - a member's
        """Give nothing: the broker knows."""
        return {}

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:  # noqa: ARG002 - a member's
        """Give an account of the consumer."""
        return RunningInfo(
            properties={
                PROP_CONSUME_TYPE: ConsumeType.CONSUME_POP.value,
                PROP_ORDERLY: str(self._options.ordered).lower(),
                PROP_START_TIMESTAMP: str(self.started_at_ms),
            },
            subscription_set=list(self._by_name.values()),
        )

    async def consume_directly(
        self,
        message: ReceivedMessage,  # noqa: ARG002 - a member's
        broker_name: str | None,  # noqa: ARG002 - a member's
    ) -> DirectConsumeResult:
        """Refuse: there is no handler."""
        raise SystemFailure(ResponseCode.SYSTEM_ERROR, "a POP consumer has no handler")
