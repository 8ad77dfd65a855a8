"""Message types on gRPC's wire: which a topic accepts."""

from pocketmq.model.topic_kinds import TopicKind
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

_ACCEPTED = {
    TopicKind.NORMAL: [d.MessageType.NORMAL],
    TopicKind.FIFO: [d.MessageType.FIFO],
    TopicKind.DELAY: [d.MessageType.DELAY],
    TopicKind.TRANSACTION: [d.MessageType.TRANSACTION],
    TopicKind.PRIORITY: [d.MessageType.PRIORITY],
    TopicKind.LITE: [d.MessageType.LITE],
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


def check_kind(expected: TopicKind, actual: TopicKind) -> None:
    """Raise `CallRefused` if a topic does not accept messages of a type."""
    if expected is TopicKind.MIXED or actual is expected:
        return
    raise CallRefused(
        d.Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"TopicMessageType validate failed, the expected type is {expected.name}, "
        f"but actual type is {actual.name}",
    )
