"""Delivery progress of each delay level, what of it was saved, and what was delivered since.

A saved document holds a level's next offset and the end of the commit log at that time: whatever
was delivered later lies behind it, and is searched there after a crash. A delivered message is a
copy of the one that waited: same properties, body and origin, in the topic it was sent to. Each
level delivers in order, so the messages that were delivered after the saved offset are the first
ones from there on, and their copies lie in the log in the same order. Copies were stored no earlier
than their messages were due; where the clock was set back, or a topic was deleted meanwhile, one
may be missed: that message is then delivered twice. Only an exact copy that a client made itself
can be taken for a delivery. Belongs to the broker's loop.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from pocketmq.broker.delay.rules import real_place
from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.protocol import RecordView
from pocketmq.protocol.requests.offsets import DelayOffsets
from pocketmq.store import MessageStore, QueueIndex


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


_CHUNK = 1024
_CHUNK_SIZE = 4 << 20
_HEAD: Callable[[memoryview, int], tuple[int, ...]] = struct.Struct(">8xi4xiqqiq").unpack_from
_HOST_BITS = 0x30
_MARK = b"REAL_TOPIC\1"

Look: TypeAlias = int
"""A hash over all that a delayed message and its copy have in common, good in this process."""


class _Suspect(NamedTuple):
    """A level whose next message is due: it may have been delivered already."""

    queue: QueueIndex
    saved: SavedProgress
    offset: int
    due_ms: int


class _Seen(NamedTuple):
    """What recovery compares of a record."""

    offset: int
    position: int
    look: Look
    properties: bytes


def recover_progress(
    store: MessageStore, progress: DelayProgress, levels: list[int], now_ms: int
) -> None:
    """Move the progress of all levels to where it was when the broker stopped."""
    suspects = {}
    for level in levels:
        queue = store.queue(SCHEDULE_TOPIC, level - 1)
        if queue is None:
            continue
        saved = progress.saved(level)
        # Java's rule, too: the log may have lost its start to retention, or its end to a crash.
        offset = min(max(saved.offset, queue.min_offset), queue.next_offset)
        progress.reached(level, offset)
        for due_ms in queue.tags(offset, 1):
            if due_ms <= now_ms:
                suspects[level] = _Suspect(queue, saved, offset, due_ms)
    copies = _Copies(store, list(suspects.values()))
    for level, suspect in suspects.items():
        progress.reached(level, _delivered_up_to(store, suspect, copies))


def _delivered_up_to(store: MessageStore, suspect: _Suspect, copies: "_Copies") -> int:
    """Return the offset behind the last message of a level whose copy is in the log."""
    reached, behind = suspect.offset, suspect.saved.position - 1
    for waiting in _records(store, suspect.queue, suspect.offset):
        place = real_place(waiting.properties)
        if place is None:
            continue
        queue = store.queue(*place)
        position = None if queue is None else copies.find(queue, waiting.look, behind)
        if position is None:
            break
        reached, behind = waiting.offset + 1, position
    return reached


class _Copies:
    """Where copies of delayed messages lie, by queue; each queue is read once, when first asked."""

    def __init__(self, store: MessageStore, suspects: list[_Suspect]) -> None:
        self._store = store
        self._suspects = suspects
        self._found: dict[QueueIndex, dict[Look, list[int]]] = {}

    def find(self, queue: QueueIndex, look: Look, behind: int) -> int | None:
        """Return the first position of a copy behind another one, each only once."""
        found = self._found.get(queue)
        if found is None:
            found = self._found[queue] = self._read(queue)
        positions = found.get(look, [])
        while positions:
            position = positions.pop()
            if position > behind:
                return position
        return None

    def _read(self, queue: QueueIndex) -> dict[Look, list[int]]:
        """Return the positions of all copies that can be of interest, by look, the last first."""
        start = min([self._start(queue, suspect) for suspect in self._suspects])
        found: dict[Look, list[int]] = {}
        for record in _records(self._store, queue, start):
            if _MARK in record.properties:
                found.setdefault(record.look, []).append(record.position)
        for positions in found.values():
            positions.reverse()
        return found

    def _start(self, queue: QueueIndex, suspect: _Suspect) -> int:
        """Return the first offset at which a copy of a level's messages can be."""
        behind = queue.first_behind(suspect.saved.position)
        return max(behind, self._store.offset_by_time(queue, suspect.due_ms))


def _records(store: MessageStore, queue: QueueIndex, offset: int) -> Iterator[_Seen]:
    """Read a queue's messages from an offset on."""
    while offset < queue.next_offset:
        read = store.read(queue, offset, _CHUNK, _CHUNK_SIZE)
        for piece in read.pieces:
            record = RecordView(piece, 0)
            crc, flag, number, position, sys_flag, born_ms = _HEAD(piece, 0)
            text = record.property_bytes
            facts = crc, flag, sys_flag & ~_HOST_BITS, born_ms, record.reconsume_times, text
            yield _Seen(number, position, hash(facts), text)
        offset = read.next_offset
