"""The message types of topics: which a message has, and which a topic accepts."""

from collections.abc import Mapping
from enum import Enum

from pocketmq.model import property_names as names
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

ATTRIBUTE = "message.type"
"""The topic's attribute (Java: TopicAttributes.TOPIC_MESSAGE_TYPE_ATTRIBUTE)."""


class TopicKind(Enum):
    """A topic's message type (Java: TopicMessageType)."""

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    MIXED = "MIXED"

    @classmethod
    def read(cls, attributes: Mapping[str, str]) -> "TopicKind":
        """Return a topic's type by its attributes; without one it is NORMAL, as in Java."""
        try:
            return cls(attributes.get(ATTRIBUTE, "NORMAL"))
        except ValueError:
            return cls.UNSPECIFIED


_ACCEPTED = {
    TopicKind.NORMAL: [d.MessageType.NORMAL],
    TopicKind.FIFO: [d.MessageType.FIFO],
    TopicKind.DELAY: [d.MessageType.DELAY],
    TopicKind.TRANSACTION: [d.MessageType.TRANSACTION],
    TopicKind.MIXED: [
        d.MessageType.NORMAL,
        d.MessageType.FIFO,
        d.MessageType.DELAY,
        d.MessageType.TRANSACTION,
    ],
}


def accepted_types(kind: TopicKind) -> list["d.MessageType"]:
    """Return the message types that a topic accepts."""
    return _ACCEPTED.get(kind, [d.MessageType.MESSAGE_TYPE_UNSPECIFIED])


def kind_of(properties: Mapping[str, str]) -> TopicKind:
    """Return a message's type by its properties."""
    if properties.get(names.TRANSACTION_PREPARED) == "true":
        return TopicKind.TRANSACTION
    delays = (
        names.DELAY_LEVEL,
        names.TIMER_DELIVER_MS,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
    )
    if any(name in properties for name in delays):
        return TopicKind.DELAY
    return TopicKind.FIFO if names.SHARDING_KEY in properties else TopicKind.NORMAL


def check_kind(expected: TopicKind, actual: TopicKind) -> None:
    """Raise `CallRefused` if a topic does not accept messages of a type."""
    if expected is TopicKind.MIXED or actual is expected:
        return
    raise CallRefused(
        d.Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"TopicMessageType validate failed, the expected type is {expected.name}, "
        f"but actual type is {actual.name}",
    )
