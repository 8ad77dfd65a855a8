"""What a consumer is subscribed to: topics, expressions, versions.

Two sets of names: the application's, and those of the wire with their namespace. Independent
of brokers. Belongs to one event loop once the consumer is started.
"""

from collections.abc import Collection, Mapping

import msgspec

from pocketmq.client.filters import Filter, subscription_to
from pocketmq.model import Subscription
from pocketmq.model.names import check_topic, is_retry_topic, unwrap_namespace, wrap_namespace
from pocketmq.protocol.filter import TagFilter, tag_filter


class SubscribedTopic(msgspec.Struct, frozen=True):
    """A subscription in the form that pulls need, computed once."""

    subscription: Subscription
    """With the names of the wire."""
    shown: str
    """The topic as the application calls it."""
    tags: TagFilter
    wanted_since: int
    """The version in which the expression came. Pulls carry this one and not the latest, which has
    the same expression and which a broker may not have received yet: it would refuse the pull."""

    @classmethod
    def of(cls, subscription: Subscription, namespace: str) -> "SubscribedTopic":
        """Compute the rest of a new subscription."""
        shown = unwrap_namespace(namespace, subscription.topic)
        return cls(subscription, shown, tag_filter(subscription), subscription.sub_version)


class Subscriptions:
    """The subscriptions of one consumer."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._by_topic: dict[str, SubscribedTopic] = {}  # by the wire's name
        self.generation = 0
        """The number of changes so far."""

    def want(self, topic: str, wanted: str | Filter, *, version_ms: int) -> None:
        """Subscribe a topic, or change its expression.

        Raises `NameInvalid`, `FilterSyntaxError`.
        """
        check_topic(topic)
        self._put(subscription_to(self.wire(topic), wanted, version_ms))

    def add_own(self, topic: str, version_ms: int) -> None:
        """Subscribe a topic of the group's own, such as its retry topic, by the wire's name."""
        self._put(subscription_to(topic, "*", version_ms))

    def remove(self, topic: str) -> bool:
        """Unsubscribe a topic; False if it was not subscribed."""
        self.generation += 1
        return self._by_topic.pop(self.wire(topic), None) is not None

    def remove_own(self, topic: str) -> None:
        """Unsubscribe a topic of the group's own."""
        self.generation += 1
        self._by_topic.pop(topic, None)

    def bump(self, topic: str, version_ms: int) -> None:
        """Raise the version of a topic's subscription, by the wire's name."""
        known = self._by_topic.get(topic)
        if known is not None:
            newer = max(version_ms, known.subscription.sub_version)  # clocks may step back
            subscription = msgspec.structs.replace(known.subscription, sub_version=newer)
            self._by_topic[topic] = msgspec.structs.replace(known, subscription=subscription)
            self.generation += 1

    def get(self, topic: str) -> SubscribedTopic | None:
        """Return the subscription of a topic, by the wire's name."""
        return self._by_topic.get(topic)

    def wire(self, topic: str) -> str:
        """Return a topic's name on the wire."""
        return wrap_namespace(self._namespace, topic)

    def shown(self, topic: str) -> str:
        """Return a topic's name for the application."""
        return unwrap_namespace(self._namespace, topic)

    def topics(self) -> Collection[str]:
        """List all topics by the wire's names, in the order they were subscribed."""
        return tuple(self._by_topic)

    def all(self) -> tuple[Subscription, ...]:
        """Return the subscriptions that heartbeats carry."""
        return tuple(each.subscription for each in self._by_topic.values())

    def own(self) -> Mapping[str, Subscription]:
        """Return the application's subscriptions by the wire's names, without retry topics."""
        return {
            topic: each.subscription
            for topic, each in self._by_topic.items()
            if not is_retry_topic(topic)
        }

    def _put(self, subscription: Subscription) -> None:
        self._by_topic[subscription.topic] = SubscribedTopic.of(subscription, self._namespace)
        self.generation += 1
