"""Values that travel as JSON objects: Java's camelCase names, and a place for unknown fields."""

from typing import Any

import msgspec


class WireValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value with a JSON form that other RocketMQ versions may extend.

    Fields this version does not know are kept in `extra` under their wire names, and written back
    out, so that a value can be read from one peer and handed to another without loss.
    """

    extra: dict[str, Any] = {}


class DataVersion(WireValue, frozen=True, kw_only=True):
    """A table's version; two are the same table exactly if all three numbers agree."""

    state_version: int = 0  # the broker's epoch in a replicated cluster (5.x)
    timestamp: int = 0  # milliseconds of the last change
    counter: int = 0

    def following(self, now_ms: int, state_version: int | None = None) -> "DataVersion":
        """Return the version after one more change."""
        return DataVersion(
            state_version=self.state_version if state_version is None else state_version,
            timestamp=now_ms,
            counter=self.counter + 1,
        )
