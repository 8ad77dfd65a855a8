"""Delivery progress of each delay level, and what of it has been saved.

A saved document holds a level's next offset and the end of the commit log at that time: whatever
was delivered later lies behind it, which is where `delay.recovery` searches after a crash.
Independent of store and clock. Belongs to the broker's loop.
"""

from collections.abc import Iterable, Mapping

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion
from pocketmq.protocol.requests.offsets import DelayOffsets


class SavedProgress(msgspec.Struct, frozen=True):
    """A level's progress as it is saved."""

    offset: int
    """The next message to deliver."""
    position: int
    """The messages before it had been delivered to places of the commit log before this one."""


class DelayProgress:
    """The next offset of each level."""

    kind = "delay_offset"

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.version = DataVersion()
        self._saved: dict[int, SavedProgress] = {}
        self._unsaved: set[int] = set()

    def load(self, documents: Iterable[tuple[str, bytes]], now_ms: int) -> None:
        """Take over what was saved before. Raises `BodyMalformed` for what was not."""
        self.version = DataVersion(timestamp=now_ms)
        for key, document in documents:
            try:
                level, saved = int(key), msgspec.json.decode(document, type=SavedProgress)
            except ValueError as error:
                raise BodyMalformed(f"progress of delay level {key[:20]!r}", str(error)) from error
            self._saved[level] = saved
            self.offsets[level] = saved.offset

    def saved(self, level: int) -> SavedProgress:
        """Return a level's progress as it was saved last; zero if it never was."""
        return self._saved.get(level, SavedProgress(0, 0))

    def offset(self, level: int) -> int:
        """Return the next message of a level to deliver."""
        return self.offsets.get(level, 0)

    def reached(self, level: int, offset: int) -> None:
        """Record a level's next message."""
        if self.offsets.get(level) != offset:
            self.offsets[level] = offset
            self._unsaved.add(level)

    @property
    def has_unsaved(self) -> bool:
        """Whether `take_unsaved` would return anything."""
        return bool(self._unsaved)

    def take_unsaved(self, position: int, now_ms: int) -> dict[int, SavedProgress]:
        """Return what has changed, for a commit log that ends at this position.

        It may be saved once the log is safe up to there, and is confirmed by `were_saved` or
        `not_saved`.
        """
        changed = {
            level: SavedProgress(self.offsets[level], position) for level in sorted(self._unsaved)
        }
        self._unsaved.clear()
        if changed:
            self.version = self.version.following(now_ms)
        return changed

    def were_saved(self, changed: Mapping[int, SavedProgress]) -> None:
        """Record that this is in the store."""
        self._saved.update(changed)

    def not_saved(self, changed: Mapping[int, SavedProgress]) -> None:
        """Record that saving failed: it is still to be done."""
        self._unsaved.update(changed)

    def table(self) -> DelayOffsets:
        """Return the progress of all levels as tools read it."""
        return DelayOffsets(
            offset_table=dict(sorted(self.offsets.items())), data_version=self.version
        )


def encode_progress(changed: Mapping[int, SavedProgress]) -> dict[str, bytes | None]:
    """Return the documents to save."""
    return {str(level): msgspec.json.encode(saved) for level, saved in changed.items()}
