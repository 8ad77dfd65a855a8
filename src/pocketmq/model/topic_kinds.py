"""The message types of topics, and which of them a message has (Java: TopicMessageType)."""

from collections.abc import Mapping
from enum import Enum

from pocketmq.model import property_names as names

KIND_ATTRIBUTE = "message.type"
"""The topic's attribute (Java: TopicAttributes.TOPIC_MESSAGE_TYPE_ATTRIBUTE)."""
_DELAYS = frozenset(
    {names.DELAY_LEVEL, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS}
)


class TopicKind(Enum):
    """A topic's message type."""

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    PRIORITY = "PRIORITY"
    LITE = "LITE"
    MIXED = "MIXED"

    @classmethod
    def read(cls, attributes: Mapping[str, str]) -> "TopicKind":
        """Return a topic's type by its attributes; without one it is NORMAL, as in Java."""
        try:
            return cls(attributes.get(KIND_ATTRIBUTE, "NORMAL"))
        except ValueError:
            return cls.UNSPECIFIED


def kind_of(properties: Mapping[str, str]) -> TopicKind:
    """Return a message's type by its properties; Java's order keeps the types apart."""
    if properties.get(names.TRANSACTION_PREPARED, "").lower() == "true":
        return TopicKind.TRANSACTION
    if not _DELAYS.isdisjoint(properties):
        return TopicKind.DELAY
    if names.SHARDING_KEY in properties:
        return TopicKind.FIFO
    if names.PRIORITY in properties:
        return TopicKind.PRIORITY
    return TopicKind.LITE if names.LITE_TOPIC in properties else TopicKind.NORMAL
