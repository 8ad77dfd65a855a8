"""The message an application sends, and the receipt for it."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NoReturn

import msgspec

from pocketmq.errors import InvalidInput, ResponseCode
from pocketmq.model import property_names
from pocketmq.model.queue import MessageQueue

MAX_BODY_SIZE = 4 * 1024 * 1024
_NO_KEYS: tuple[str, ...] = ()
MOST_URGENT = 2**31 - 1
DEFAULT_REGION = "DefaultRegion"


class _NoProperties(dict[str, str]):
    """The properties of all messages without any.

    A dict for each takes time, and lets the garbage collector run twice as often: it counts both
    the dicts and the futures of messages in flight.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the properties of a message cannot be changed; pass them to Message")

    __setitem__ = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[()]]:
        return dict, ()


NO_PROPERTIES: Mapping[str, str] = _NoProperties()


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message to send: a topic, a body, and what consumers select and find it by.

    Producers take it as it is; ids, ordering and delay belong to the send, not to the message.
    `priority` is for topics of the type PRIORITY: consumers that pop get larger numbers first, and
    the broker stores the message in the queue of that number, or in the last one.
    Raises `InvalidInput` for what consumers could not read or select.
    """

    topic: str
    body: bytes
    tag: str | None = None
    keys: Sequence[str] = _NO_KEYS
    properties: Mapping[str, str] = NO_PROPERTIES
    flag: int = 0
    priority: int | None = None

    def __post_init__(self) -> None:
        if (  # as nearly all are
            type(self.body) is bytes
            and self.tag is None
            and self.keys is _NO_KEYS
            and self.properties is NO_PROPERTIES
            and self.priority is None
        ):
            return
        # Types are checked here, where the mistake is made, and not only by type checkers.
        body: object = self.body
        tag: object = self.tag
        properties: object = self.properties
        plain = type(body) is bytes and (tag is None or (type(tag) is str and "||" not in tag))
        if plain and self.keys is _NO_KEYS and not properties and self.priority is None:
            return
        if not isinstance(body, bytes):
            kind = type(body).__name__
            raise InvalidInput(
                f"a message body must be bytes, not {kind}; use text.encode() for text"
            )
        if tag is not None and not isinstance(tag, str):
            raise InvalidInput(f"a tag must be one string, not {tag!r}")
        self._check_tag()
        if isinstance(self.keys, str) or not isinstance(self.keys, Sequence):
            raise InvalidInput("keys must be a sequence of strings, such as keys=['A17']")
        if not isinstance(properties, Mapping):
            raise InvalidInput("properties must be a mapping of strings, such as {'region': 'eu'}")
        for key in self.keys:
            _check_key(key)
        for name, value in self.properties.items():
            _check_property(name, value)
        if self.priority is not None:
            _check_priority(self.priority)

    def _check_tag(self) -> None:
        if self.tag is not None and "||" in self.tag:
            raise InvalidInput(
                f"tag {self.tag!r} contains '||', which separates tags in subscriptions: no "
                "consumer could select it; a message has one tag"
            )

    def wire_properties(self) -> dict[str, str]:
        """Return the properties as they travel, with tag and keys among them."""
        wire = dict(self.properties)
        if self.keys:
            wire[property_names.KEYS] = " ".join(self.keys)
        wire[property_names.WAIT] = "true"
        if self.tag:
            wire[property_names.TAGS] = self.tag
        if self.priority is not None:
            wire[property_names.PRIORITY] = str(self.priority)
        return wire


class CopiedMessage(Message, frozen=True):
    """A copy of a stored message, whose tag another producer chose: any tag is kept."""

    def _check_tag(self) -> None:
        pass


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise InvalidInput(f"key {key!r} must be a string, such as keys=['A17']")
    if not key or any(character.isspace() for character in key):
        raise InvalidInput(
            f"key {key!r} must not be empty or contain white space, which separates keys"
        )


def _check_priority(priority: object) -> None:
    if type(priority) is not int or not 0 <= priority <= MOST_URGENT:
        raise InvalidInput(
            f"a priority must be a whole number from 0 to {MOST_URGENT}, not {priority!r}"
        )


def _check_property(name: object, value: object) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise InvalidInput(f"property {name!r} must be a string, not {value!r}; use str(...)")
    if name in property_names.RESERVED:
        raise InvalidInput(f"property {name!r} is reserved by RocketMQ; choose another name")
    if not name.strip() or not value.strip():
        raise InvalidInput(f"property {name!r}: name and value must not be blank")
    if "\x01" in name or "\x02" in name or "\x02" in value:
        raise InvalidInput(f"property {name!r} contains a separator character (\\x01 or \\x02)")


class SendStatus(Enum):
    """How safely a message was stored. All four mean that the broker has it."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STORED = SendStatus.SEND_OK  # kept: members of an enum are slow to look up
_BY_CODE: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


def send_status(code: int) -> SendStatus | None:
    """Read the response code of a send; None means the broker refused the message."""
    return _BY_CODE.get(code)


class SendReceipt(msgspec.Struct, frozen=True, gc=False):
    """A broker's confirmation that it stored a message (Java: SendResult).

    `message_id` is the id the producer gave (several, separated by commas, for a batch);
    `offset_message_id` is the broker's own, which is its location in the store.
    """

    status: SendStatus
    message_id: str
    offset_message_id: str | None
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    region_id: str = DEFAULT_REGION
    trace_on: bool = True

    @property
    def ok(self) -> bool:
        """Whether the message is stored as safely as the broker is configured to."""
        return self.status is _STORED
