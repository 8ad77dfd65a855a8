"""The small closed sets of RocketMQ's vocabulary, by the names they have on the wire.

Members stand in Java's order: some peers write ordinals.
"""

from enum import Enum


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
    """Where a group without a stored offset begins."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = (
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    )
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class OnDamage(Enum):
    """What a consumer does about a message whose record is damaged, after some tries."""

    SKIP = "SKIP"  # log an error and go on behind it
    STOP = "STOP"  # log an error and hold its queue


class MessageRequestMode(Enum):
    """How a broker hands out messages of a topic to a group (5.x)."""

    PULL = "PULL"
    POP = "POP"


class TopicFilterType(Enum):
    """Whether a message of the topic carries one tag or several."""

    SINGLE_TAG = "SINGLE_TAG"
    MULTI_TAG = "MULTI_TAG"


class ConsumeResult(Enum):
    """What came of consuming one message directly."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"
