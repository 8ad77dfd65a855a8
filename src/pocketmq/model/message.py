"""The message an application sends."""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model import properties as names

MAX_BODY_SIZE = 4 * 1024 * 1024

_NO_KEYS: tuple[str, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """What a producer sends: a topic, a body, and what consumers select and find it by.

    Producers take it as it is; ids, ordering and delay belong to the send, not to the message.
    """

    topic: str
    body: bytes
    tag: str | None = None
    keys: Sequence[str] = _NO_KEYS
    properties: Mapping[str, str] = {}
    flag: int = 0

    def __post_init__(self) -> None:
        # Types are checked here, where the mistake is made, and not only by type checkers.
        body: object = self.body
        tag: object = self.tag
        properties: object = self.properties
        plain = type(body) is bytes and (tag is None or type(tag) is str)
        if plain and self.keys is _NO_KEYS and not properties:
            return
        if not isinstance(body, bytes):
            kind = type(body).__name__
            raise InvalidInput(f"a body is bytes, not {kind}; text becomes bytes by text.encode()")
        if tag is not None and not isinstance(tag, str):
            raise InvalidInput(f"a tag is one word of text, not {tag!r}")
        if isinstance(self.keys, str) or not isinstance(self.keys, Sequence):
            raise InvalidInput("keys must be a sequence of strings, such as keys=['A17']")
        if not isinstance(properties, Mapping):
            raise InvalidInput("properties are a mapping of text, such as {'region': 'eu'}")
        for key in self.keys:
            _check_key(key)
        for name, value in self.properties.items():
            _check_property(name, value)

    def wire_properties(self) -> dict[str, str]:
        """Give the properties as they travel, with tag and keys among them."""
        wire = dict(self.properties)
        if self.keys:
            wire[names.KEYS] = " ".join(self.keys)
        wire[names.WAIT] = "true"
        if self.tag:
            wire[names.TAGS] = self.tag
        return wire


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise InvalidInput(f"key {key!r} must be a string, such as keys=['A17']")
    if not key or any(character.isspace() for character in key):
        raise InvalidInput(f"key {key!r} is empty or holds white space, which separates keys")


def _check_property(name: object, value: object) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise InvalidInput(f"property {name!r} must be text, not {value!r}; use str(...)")
    if name in names.RESERVED:
        raise InvalidInput(f"property {name!r} is RocketMQ's own; choose another name")
    if not name.strip() or not value.strip():
        raise InvalidInput(f"property {name!r}: name and value must not be blank")
    if "\x01" in name or "\x02" in name or "\x02" in value:
        raise InvalidInput(f"property {name!r} holds a separator character (\\x01 or \\x02)")
