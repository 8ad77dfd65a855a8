"""The small closed sets of RocketMQ's vocabulary: enumerations and bit fields of the wire.

Members of an enumeration stand in Java's order, because some peers write ordinals. The last are
the message types of topics, and which of them a message has (Java: TopicMessageType).
"""

from collections.abc import Mapping
from enum import Enum, IntEnum, IntFlag

from pocketmq.model import property_names as names


class MessageModel(Enum):
    """How a group shares a topic: each message to one member, or to all."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"
    LITE_SELECTIVE = "LITE_SELECTIVE"  # each member chooses lite topics of its own (5.5)


class ConsumeType(Enum):
    """How a consumer gets its messages."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"  # the application polls (pull consumer)
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"  # handlers are called (push consumer)
    CONSUME_POP = "CONSUME_POP"


class ConsumeFromWhere(Enum):
    """Where a group without a stored offset starts."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class OnDamage(Enum):
    """What a consumer does about a message with a damaged record, after some retries."""

    SKIP = "SKIP"  # log an error and continue behind it
    STOP = "STOP"  # log an error and stop its queue


class MessageRequestMode(Enum):
    """How a broker hands out messages of a topic to a group (5.x)."""

    PULL = "PULL"
    POP = "POP"


class TopicFilterType(Enum):
    """Whether a message of the topic carries one tag or several."""

    SINGLE_TAG = "SINGLE_TAG"
    MULTI_TAG = "MULTI_TAG"


class ConsumeResult(Enum):
    """The result of consuming one message on demand."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class SysFlag(IntFlag):
    """Bits of a message's system flag."""

    COMPRESSED = 1
    MULTI_TAGS = 2
    PREPARED = 4
    COMMITTED = 8
    ROLLED_BACK = 12
    BORN_HOST_V6 = 16
    STORE_HOST_V6 = 32
    NEED_UNWRAP = 64
    INNER_BATCH = 128
    LZ4 = 256
    ZSTD = 512
    ZLIB = 768


TRANSACTION_MASK = 12
COMPRESSION_MASK = 0x700


class TransactionState(IntEnum):
    """The transaction bits of a system flag, as END_TRANSACTION carries them.

    A local transaction, or a check of one, comes to COMMIT, ROLLBACK or UNKNOWN.
    """

    UNKNOWN = 0
    NONE = 0  # of a message without a transaction
    PREPARED = 4
    COMMIT = 8
    ROLLBACK = 12

    __str__ = Enum.__str__  # as of other enumerations; an IntEnum would print its number


class PullFlag(IntFlag):
    """Bits of a pull request's system flag."""

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


class Permission(IntFlag):
    """What a topic's queues may be used for."""

    INHERIT = 1  # a template that new topics may copy
    WRITE = 2
    READ = 4
    PRIORITY = 8

    def readable(self) -> bool:
        """Return whether consumers may read."""
        return bool(self & Permission.READ)

    def writable(self) -> bool:
        """Return whether producers may write."""
        return bool(self & Permission.WRITE)

    def text(self) -> str:
        """Return RocketMQ's three letters, such as `RW-`."""
        return "".join(
            letter if self & bit else "-"
            for bit, letter in (
                (Permission.READ, "R"),
                (Permission.WRITE, "W"),
                (Permission.INHERIT, "X"),
            )
        )


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
