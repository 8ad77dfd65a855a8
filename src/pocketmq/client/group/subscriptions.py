"""What a consumer is subscribed to: topics, expressions, versions, handlers.

Two sets of names: the application's, and those of the wire with their namespace. Knows no broker.
Belongs to one event loop, or to nobody before the start.
"""

from collections.abc import Collection, Mapping

import msgspec

from pocketmq.client.filters import Filter, subscription_to
from pocketmq.client.push.work import Handler, TopicHandler
from pocketmq.errors import InvalidInput
from pocketmq.model.names import check_topic, is_retry_topic, unwrap_namespace, wrap_namespace
from pocketmq.model.subscription import Subscription
from pocketmq.protocol.filter import TagFilter, tag_filter


class Subscribed(msgspec.Struct, frozen=True):
    """A subscription as pulls need it, worked out once."""

    subscription: Subscription
    """With the names of the wire."""
    shown: str
    """The topic as the application calls it."""
    tags: TagFilter
    wanted_since: int
    """The version in which the expression came. Pulls ask for this one and not for the latest,
    which differs in nothing and which brokers may not have heard of yet: they refuse such pulls."""

    @classmethod
    def of(cls, subscription: Subscription, namespace: str) -> "Subscribed":
        """Work out the rest of a new subscription."""
        shown = unwrap_namespace(namespace, subscription.topic)
        return cls(subscription, shown, tag_filter(subscription), subscription.sub_version)


class Subscriptions:
    """The subscriptions of one consumer."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._by_topic: dict[str, Subscribed] = {}  # by the wire's name
        self._handlers: dict[str, TopicHandler] = {}  # by the application's name

    def add(
        self,
        topic: str,
        wanted: str | Filter,
        handler: Handler | None,
        *,
        batch: bool,
        version_ms: int,
    ) -> None:
        """Subscribe a topic, or change its expression and handler.

        Raises `NameInvalid`, `FilterSyntaxError`, or `InvalidInput` without a handler.
        """
        known = self._handlers.get(topic)
        if handler is None and known is None:
            raise InvalidInput(f"topic {topic!r} needs a handler: subscribe(topic, '*', handler)")
        made = known if handler is None else TopicHandler(topic, handler, batch)
        self.want(topic, wanted, version_ms=version_ms)
        if made is not None:
            self._handlers[topic] = made

    def want(self, topic: str, wanted: str | Filter, *, version_ms: int) -> None:
        """Subscribe a topic whose messages are not handled but asked for.

        Raises `NameInvalid`, `FilterSyntaxError`.
        """
        check_topic(topic)
        self._put(subscription_to(self.wire(topic), wanted, version_ms))

    def add_own(self, topic: str, version_ms: int) -> None:
        """Subscribe a topic of the group's own, such as its retry topic, by the wire's name."""
        self._put(subscription_to(topic, "*", version_ms))

    def remove(self, topic: str) -> bool:
        """Leave a topic; False if it was not subscribed.

        Its handler stays, for messages that are cached, or failed and come again.
        """
        return self._by_topic.pop(self.wire(topic), None) is not None

    def remove_own(self, topic: str) -> None:
        """Leave a topic of the group's own."""
        self._by_topic.pop(topic, None)

    def bump(self, topic: str, version_ms: int) -> None:
        """Give a topic's subscription a new version, by the wire's name."""
        known = self._by_topic.get(topic)
        if known is not None:
            newer = max(version_ms, known.subscription.sub_version)  # clocks may step back
            subscription = msgspec.structs.replace(known.subscription, sub_version=newer)
            self._by_topic[topic] = msgspec.structs.replace(known, subscription=subscription)

    def get(self, topic: str) -> Subscribed | None:
        """Give what is subscribed of a topic, by the wire's name."""
        return self._by_topic.get(topic)

    def handler_for(self, topic: str) -> TopicHandler | None:
        """Give the handler of a topic as the application calls it."""
        return self._handlers.get(topic)

    def wire(self, topic: str) -> str:
        """Give a topic's name on the wire."""
        return wrap_namespace(self._namespace, topic)

    def shown(self, topic: str) -> str:
        """Give a topic's name for the application."""
        return unwrap_namespace(self._namespace, topic)

    def topics(self) -> Collection[str]:
        """List all topics by the wire's names, in the order they were subscribed."""
        return tuple(self._by_topic)

    def all(self) -> tuple[Subscription, ...]:
        """Give what heartbeats say."""
        return tuple(each.subscription for each in self._by_topic.values())

    def own(self) -> Mapping[str, Subscription]:
        """Give the application's subscriptions by the wire's names, without retry topics."""
        return {
            topic: each.subscription
            for topic, each in self._by_topic.items()
            if not is_retry_topic(topic)
        }

    def _put(self, subscription: Subscription) -> None:
        self._by_topic[subscription.topic] = Subscribed.of(subscription, self._namespace)
