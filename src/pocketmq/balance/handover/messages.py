"""What members tell each other on the bus, and how it is written.

The bus is queue 0 of topic `POCKETMQ_BALANCE` on each broker; a message's tag is the group. One
record carries what a member has to tell at one time: a JSON list of messages. Members of later
versions may tell what this one does not know; it is skipped.
"""

import msgspec

from pocketmq.model.queue import MessageQueue

BUS_TOPIC = "POCKETMQ_BALANCE"


class Hello(msgspec.Struct, frozen=True, tag="HELLO", tag_field="kind"):
    """A member has started and listens; all others answer with `State`."""

    boot: str


class State(msgspec.Struct, frozen=True, tag="STATE", tag_field="kind"):
    """Which queues a member has. `number` grows with each state of a boot; older ones are void."""

    boot: str
    number: int
    held: tuple[MessageQueue, ...] = ()
    draining: tuple[MessageQueue, ...] = ()
    table: dict[str, tuple[MessageQueue, ...]] = {}
    """What the sender knows of others; the first in rank adds it for those who have just come."""


class Claim(msgspec.Struct, frozen=True, tag="CLAIM", tag_field="kind"):
    """The sender is to have these queues, which `to` has: it shall give them."""

    to: str
    queues: tuple[MessageQueue, ...]
    number: int


class Give(msgspec.Struct, frozen=True, tag="GIVE", tag_field="kind"):
    """The sender starts no message of a queue at `offset` or above; `to` may, if it gets the lock.

    It answers claim `number` and is void for any other.
    """

    to: str
    queue: MessageQueue
    offset: int
    number: int


class Bye(msgspec.Struct, frozen=True, tag="BYE", tag_field="kind"):
    """A member leaves. With `back_within` seconds its queues wait for it; 0: claim them now."""

    boot: str
    back_within: float = 0.0


BusMessage = Hello | State | Claim | Give | Bye
