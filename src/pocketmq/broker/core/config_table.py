"""Settings by name with a version: what the tables of topics and groups have in common.

The table in memory is the truth while the broker runs. It remembers which entries differ from what
was saved last; the owner of the store saves them. Independent of store and wire.
"""

from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from pocketmq.model import DataVersion, WireValue
from pocketmq.model.java_strings import java_sorted
from pocketmq.protocol import decode_body, encode_body

V = TypeVar("V", bound=WireValue)


class ConfigTable(Generic[V]):
    """Values by name. Belongs to the broker's loop."""

    kind: ClassVar[str]
    """What its documents are called in the store."""

    def __init__(self, form: type[V], limit: int, now_ms: int) -> None:
        # A new time stamp at every start: name servers and slaves compare versions for equality.
        self.version = DataVersion(timestamp=now_ms)
        self.entries: dict[str, V] = {}
        self._form = form
        self._limit = limit
        self._unsaved: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, name: str) -> V | None:
        """Return the settings of that name."""
        return self.entries.get(name)

    @property
    def full(self) -> bool:
        """Whether the table has reached its limit."""
        return len(self.entries) >= self._limit

    def put(self, name: str, value: V, now_ms: int) -> None:
        """Add or replace an entry. The caller has checked the name, and `full` for a new one."""
        self.entries[name] = value
        self._changed(name, now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Forget an entry; return whether there was one."""
        if self.entries.pop(name, None) is None:
            return False
        self._changed(name, now_ms)
        return True

    def page(self, start: int, count: int, version: DataVersion | None) -> dict[str, V]:
        """Return `count` entries by name from a position on; from the first if the version moved.

        Callers read a large table in pages and pass the version of the first page.
        """
        begin = max(start, 0) if version == self.version else 0
        names = java_sorted(tuple(self.entries))[begin : begin + max(count, 0)]
        return {name: self.entries[name] for name in names}

    def load(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Take over what was saved before. Raises `BodyMalformed` for what was not."""
        for name, document in documents:
            self.entries[name] = decode_body(document, self._form)

    def unsaved(self) -> dict[str, bytes | None]:
        """Return the documents to save: entries that changed, None for those that are gone."""
        return {
            name: None if (value := self.entries.get(name)) is None else encode_body(value)
            for name in self._unsaved
        }

    def saved(self, names: Iterable[str]) -> None:
        """Record that these documents were saved as they are now."""
        self._unsaved.difference_update(names)

    def _changed(self, name: str, now_ms: int) -> None:
        self._unsaved.add(name)
        self.version = self.version.following(now_ms)
