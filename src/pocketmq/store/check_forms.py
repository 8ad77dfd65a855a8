"""What a check of a store must be told by whoever wrote it: forms of documents, tag codes.

The store keeps documents and tag codes without knowing what they mean. The broker does, see
`pocketmq.broker.upkeep.stored_forms`. Also the one document that the store itself keeps.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from pocketmq.store.recovery import TagRule

ReadDocument = Callable[[str, bytes], object]
"""Reads a document by its key and bytes; raises whatever if it cannot be read."""

WaitsFor = Callable[[bytes], tuple[str, int] | None]
"""Returns the topic and queue that a message of a system topic will go to, by its properties."""


class StoredForms(msgspec.Struct, frozen=True):
    """How to read what a store only keeps. Without it, neither documents nor codes are checked."""

    documents: Mapping[str, ReadDocument] = MappingProxyType({})
    """How documents of each kind are read."""
    tag_rules: Mapping[str, TagRule | None] | None = None
    """Topics whose codes are not the hash of the tag; None for codes that nobody can check."""
    waits_for: WaitsFor = lambda _: None
    """Where messages go that wait in system topics: delayed, timed and half ones."""


NO_FORMS = StoredForms()

REPAIR_KIND = "repair"
"""The kind of the document, and its only key, in which a repair leaves word for the next start."""


class RepairNote(msgspec.Struct, frozen=True):
    """What a repair found, for the start that follows it and for later checks."""

    start: int
    """Where the next start begins to walk over the log."""
    tail: int = 0
    """The log ends here at least, though records before may be damaged."""
    ends: list[tuple[str, int, int]] = []
    """Topic, queue id and next offset of queues: lost messages at their ends keep their offsets."""
    damage: list[tuple[int, int]] = []
    """Bytes of the log that are known to hold no sound record."""

    def knows(self, start: int, end: int) -> bool:
        """Return whether damage between two positions was there at the time of the repair."""
        return any(low <= start and end <= high for low, high in self.damage)


def read_repair_note(document: bytes) -> RepairNote:
    """Read the document. Raises `msgspec.MsgspecError` if it is none."""
    return msgspec.json.decode(document, type=RepairNote)
