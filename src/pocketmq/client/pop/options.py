"""What a POP consumer can be told. Times are seconds."""

import msgspec

from pocketmq.client.checks import StartWord, check_range, check_seconds, settle_kinds
from pocketmq.client.options import ClientSettings
from pocketmq.errors import InvalidInput
from pocketmq.model.kinds import ConsumeFromWhere
from pocketmq.model.names import check_consumer_group

MOST_MESSAGES = 32
"""What a broker hands out at once, at most."""
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class PopConsumerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a POP consumer works. Raises `InvalidInput` for what can never work."""

    group: str
    """The name that consumers share who share the work."""
    consume_from: ConsumeFromWhere = LAST
    """Where a group begins that never took a message of the topic: its first or its last."""
    ordered: bool = False
    """Take a queue's messages in order: none before those taken earlier are acknowledged."""
    max_messages: int = MOST_MESSAGES
    """Messages of one `receive`, at most, if it is not told."""
    invisible: float = 60.0
    """How long a message is hidden from others, to be handled and acknowledged."""
    receive_timeout: float = 15.0
    """How long `receive` waits for a message if it is not told."""

    def __post_init__(self) -> None:
        settle_kinds(self)
        check_consumer_group(self.group)
        if self.consume_from not in (FIRST, LAST):
            raise InvalidInput("a POP consumer begins with the first or the last message")
        check_range("max_messages", self.max_messages, 1, MOST_MESSAGES)
        check_seconds("invisible", self.invisible, at_least=0.001)
        check_seconds("receive_timeout", self.receive_timeout)


class PopSettings(ClientSettings, total=False):
    """The keywords of a POP consumer."""

    consume_from: ConsumeFromWhere | StartWord
    ordered: bool
    max_messages: int
    invisible: float
    receive_timeout: float
