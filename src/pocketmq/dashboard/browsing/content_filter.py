"""Selecting messages by what they contain. Pure."""

import msgspec

from pocketmq.errors import InvalidInput, MQError
from pocketmq.protocol import ReceivedMessage

LONGEST = 1024


class ContentFilter(msgspec.Struct, frozen=True):
    """Selects messages that contain a text, in whatever case; an empty text selects all.

    Searched are body, id, tag, keys, and the application's properties. `name=value` also
    selects by a property. A body that cannot be read contains nothing.
    """

    text: str = ""

    @classmethod
    def of(cls, text: str) -> "ContentFilter":
        """Return the filter for a text of a form. Raises `InvalidInput` if it is too long."""
        if len(text) > LONGEST:
            raise InvalidInput(f"a filter may have at most {LONGEST} characters")
        return cls(text.strip().casefold())

    def matches(self, message: ReceivedMessage) -> bool:
        """Return whether a message contains the text."""
        if not self.text:
            return True
        named = (f"{name}={value}" for name, value in message.user_properties.items())
        fields = (message.message_id, message.tag or "", *message.keys, *named)
        if any(self.text in field.casefold() for field in fields):
            return True
        try:
            body = message.body
        except (MQError, InvalidInput):
            return False
        return self.text in body.decode(errors="replace").casefold()
