"""What members tell each other on the bus, and how it is written.

The bus is queue 0 of topic `POCKETMQ_BALANCE` on each broker; a message's tag is the group. One
notice carries what a member has to tell at one time. Members of later versions may tell what this
one does not know; it is skipped. Nothing that is read here is trusted: sizes and numbers have
limits, and no message can make a member lose messages (see `stay`).
"""

from typing import Annotated

import msgspec

from pocketmq.model import MessageQueue

BUS_TOPIC = "POCKETMQ_BALANCE"
PROTOCOL_VERSION = 1
MEMBER_SUFFIX = f"@pm{PROTOCOL_VERSION}"
"""How the client ids of members end that speak this protocol."""

MOST_MESSAGES = 64
"""Messages of one notice that are read, beside those that give queues."""
MOST_GIVEN = 1_024
"""Queues that one notice can give. The heirs of more claim the rest again."""
MOST_OTHERS = 1_000
"""Boots and brokers that one `State` can tell of, beside the sender's own."""
_LONGEST_NOTICE = 4 << 20

Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Name = Annotated[str, msgspec.Meta(max_length=512)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Queues = Annotated[tuple[MessageQueue, ...], msgspec.Meta(max_length=20_000)]


class Hello(msgspec.Struct, frozen=True, tag="HELLO", tag_field="kind"):
    """A member has started and listens; all others answer with `State`."""

    orderly: bool = False
    """It locks as orderly consumers do."""


class State(msgspec.Struct, frozen=True, tag="STATE", tag_field="kind"):
    """Which queues a member has. `number` grows with each state of a boot; older ones are void."""

    number: Number
    held: Queues = ()
    draining: Queues = ()
    table: Annotated[dict[Name, Queues], msgspec.Meta(max_length=MOST_OTHERS)] = {}
    """What the sender knows of others, by lock owner (`client id#boot`); the first in rank adds it
    for those who have just come."""
    away: Annotated[dict[Name, Seconds], msgspec.Meta(max_length=MOST_OTHERS)] = {}
    """Of these, who has left and will be back, and for how long queues still wait for it."""
    lost: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_OTHERS)] = ()
    """Brokers that do not answer the sender; it is not reported to hold any of their queues."""
    orderly: bool = False


class QueueClaim(msgspec.Struct, frozen=True, tag="CLAIM", tag_field="kind"):
    """The sender is to have these queues, which `to` has: it shall give them."""

    to: Name
    queues: Queues
    number: Number


class Give(msgspec.Struct, frozen=True, tag="GIVE", tag_field="kind"):
    """The sender starts no message of a queue at `offset` or above; `to` may, if it gets the lock.

    It answers claim `number` and is void for any other.
    """

    to: Name
    queue: MessageQueue
    offset: Number
    number: Number


class Bye(msgspec.Struct, frozen=True, tag="BYE", tag_field="kind"):
    """A member leaves. With `back_within` seconds its queues wait for it; 0: claim them now."""

    back_within: Seconds = 0.0


BusMessage = Hello | State | QueueClaim | Give | Bye


class Notice(msgspec.Struct, frozen=True):
    """What one member tells at one time: the body of one message on the bus."""

    sender: Name
    boot: Name
    messages: tuple[BusMessage, ...]


class _RawNotice(msgspec.Struct, frozen=True):
    sender: Name
    boot: Name
    messages: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=20_000)]


_notice_decoder = msgspec.json.Decoder(_RawNotice)
_message_decoder: msgspec.json.Decoder[BusMessage] = msgspec.json.Decoder(BusMessage)


def write_notice(notice: Notice) -> bytes:
    """Return the body that carries a notice."""
    return msgspec.json.encode(notice)


def read_notice(body: bytes) -> Notice | None:
    """Return what a body carries; None if it is not a notice at all.

    Messages of unknown kinds, with values out of range or above the limits are skipped.
    """
    if len(body) > _LONGEST_NOTICE:
        return None
    try:
        raw = _notice_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    messages: list[BusMessage] = []
    given = 0
    for item in raw.messages:
        try:
            message = _message_decoder.decode(item)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        # Each costs a reader work. Members give each queue with a message of its own, and tell few
        # others at one time.
        if isinstance(message, Give):
            given += 1
            if given > MOST_GIVEN:
                continue
        elif len(messages) - min(given, MOST_GIVEN) >= MOST_MESSAGES:
            continue
        messages.append(message)
    return Notice(raw.sender, raw.boot, tuple(messages))


def is_ours(client_id: str) -> bool:
    """Return whether a member speaks this protocol; all others are foreign."""
    return client_id.endswith(MEMBER_SUFFIX)


def lock_owner(client_id: str, boot: str) -> str:
    """Return the name under which a member locks: two processes with one id never share a lock."""
    return f"{client_id}#{boot}"
