"""Values that travel as JSON objects: Java's camelCase names, and a place for unknown fields."""

from typing import Any

import msgspec


class WireValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value with a JSON form that other RocketMQ versions may extend.

    Fields this version does not know are kept in `extra` under their wire names, and written back
    out, so that a value can be read from one peer and handed to another without loss.
    """

    extra: dict[str, Any] = {}
