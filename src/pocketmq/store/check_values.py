"""What a check of a store needs and what it reports, as values.

The store keeps documents and tag codes without knowing what they mean. The broker does, and passes
their formats to a check; see `pocketmq.broker.upkeep.stored_formats`.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

from pocketmq.store.recovery import TagRule

ReadDocument = Callable[[str, bytes], object]
"""Reads a document by its key and bytes; raises whatever if it cannot be read."""

WaitsFor = Callable[[bytes], tuple[str, int] | None]
"""Returns the topic and queue that a message of a system topic will go to, by its properties."""

_SHOWN = 5


class StoredFormats(msgspec.Struct, frozen=True):
    """How to read what a store only keeps. Without it, neither documents nor codes are checked."""

    documents: Mapping[str, ReadDocument] = MappingProxyType({})
    """How documents of each kind are read."""
    tag_rules: Mapping[str, TagRule | None] | None = None
    """Topics whose codes are not the hash of the tag; None for codes that cannot be checked."""
    waits_for: WaitsFor = lambda _: None
    """Where messages go that wait in system topics: delayed, timed and half ones."""


NO_FORMATS = StoredFormats()


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"  # something is lost or contradicts something else
    WARNING = "warning"  # something is lost that is made again by itself, or known to be lost
    NOTE = "note"  # nothing is wrong


class CheckFinding(msgspec.Struct, frozen=True):
    """One finding of a check."""

    severity: Severity
    part: str
    text: str


class CheckReport(msgspec.Struct, frozen=True):
    """The result of a check; `figures` are lines about each part that was checked."""

    path: str
    figures: dict[str, str]
    findings: list[CheckFinding]

    @property
    def sound(self) -> bool:
        """Whether there is no error."""
        return not any(each.severity is Severity.ERROR for each in self.findings)


class Findings:
    """Collects findings; of each kind only the first few are listed."""

    def __init__(self) -> None:
        self.listed: list[CheckFinding] = []
        self._counts: dict[tuple[Severity, str, str], int] = {}

    def add(self, severity: Severity, part: str, text: str, *, kind: str = "") -> None:
        """Take note; findings of one `kind` are counted once there are many."""
        key = severity, part, kind or text
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count <= _SHOWN:
            self.listed.append(CheckFinding(severity, part, text))

    def error(self, part: str, text: str, *, kind: str = "") -> None:
        """Take note of an error."""
        self.add(Severity.ERROR, part, text, kind=kind)

    def finished(self) -> list[CheckFinding]:
        """Return what was found, and how much more of a kind there was."""
        more = [
            CheckFinding(severity, part, f"{count - _SHOWN} more of this kind: {kind}")
            for (severity, part, kind), count in self._counts.items()
            if count > _SHOWN
        ]
        return self.listed + more
