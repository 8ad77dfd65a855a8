"""What was delivered since a delay level's progress was saved last, found in the log after a crash.

A delivered message is a copy of the one that waited: same properties, body and origin, in the topic
it was sent to. Each level delivers in order, so the messages that were delivered after the saved
offset are the first ones from there on, and their copies lie in the log in the same order. Copies
lie behind the saved position, and were stored no earlier than their messages were due; where the
clock was set back, or a topic was deleted meanwhile, one may be missed: that message then comes a
second time. None is ever taken for delivered that was not.
"""

import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

from pocketmq.broker.delay_progress import DelayProgress, SavedProgress
from pocketmq.broker.delay_rules import delivery_of
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import MessageStore, QueueIndex

_CHUNK = 256
_CHUNK_SIZE = 1 << 20
_FACTS = struct.Struct(">iqiiii").pack
_MARK = b"REAL_TOPIC\1"


class _Suspect(NamedTuple):
    """A level whose next message was due already: it may have been delivered."""

    queue: QueueIndex
    saved: SavedProgress
    offset: int
    due_ms: int


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
        # Java's rule, too: the log may have lost its beginning to retention, or its end to a crash.
        offset = min(max(saved.offset, queue.min_offset), queue.next_offset)
        progress.reached(level, offset)
        for due_ms in queue.tags(offset, 1):
            if due_ms <= now_ms:
                suspects[level] = _Suspect(queue, saved, offset, due_ms)
    copies = _Copies(store, list(suspects.values()))
    for level, suspect in suspects.items():
        progress.reached(level, _delivered_up_to(store, suspect, copies, now_ms))


def _delivered_up_to(store: MessageStore, suspect: _Suspect, copies: "_Copies", now_ms: int) -> int:
    """Give the offset behind the last message of a level whose copy is in the log."""
    reached, behind = suspect.offset, suspect.saved.position - 1
    for waiting in _records(store, suspect.queue, suspect.offset):
        due_ms = suspect.queue.tags(waiting.queue_offset, 1)[0]
        delivery = delivery_of(waiting)
        if due_ms > now_ms:
            break
        if delivery is None:
            continue
        queue = store.queue(delivery.topic, delivery.queue_id)
        position = None if queue is None else copies.find(queue, _digest(waiting), behind)
        if position is None:
            break
        reached, behind = waiting.queue_offset + 1, position
    return reached


class _Copies:
    """Where copies of delayed messages lie, by queue; each queue is read once, when first asked."""

    def __init__(self, store: MessageStore, suspects: list[_Suspect]) -> None:
        self._store = store
        self._suspects = suspects
        self._found: dict[QueueIndex, dict[bytes, list[int]]] = {}

    def find(self, queue: QueueIndex, digest: bytes, behind: int) -> int | None:
        """Give the first position of a copy behind another one."""
        found = self._found.get(queue)
        if found is None:
            found = self._found[queue] = self._read(queue)
        return next((position for position in found.get(digest, ()) if position > behind), None)

    def _read(self, queue: QueueIndex) -> dict[bytes, list[int]]:
        start = min([self._start(queue, suspect) for suspect in self._suspects])
        found: dict[bytes, list[int]] = {}
        for record in _records(self._store, queue, start):
            if _MARK in record.property_bytes:
                found.setdefault(_digest(record), []).append(record.commit_log_offset)
        return found

    def _start(self, queue: QueueIndex, suspect: _Suspect) -> int:
        """Give the first offset at which a copy of a level's messages can be."""
        low, high = queue.min_offset, queue.next_offset
        while low < high:
            middle = (low + high) // 2
            if (queue.position(middle) or 0) < suspect.saved.position:
                low = middle + 1
            else:
                high = middle
        return max(low, self._store.offset_by_time(queue, suspect.due_ms))


def _records(store: MessageStore, queue: QueueIndex, offset: int) -> Iterator[RecordView]:
    """Give a queue's messages from an offset on."""
    while offset < queue.next_offset:
        read = store.read(queue, offset, _CHUNK, _CHUNK_SIZE)
        for piece in read.pieces:
            yield RecordView(piece, 0)
        offset = read.next_offset


def _digest(record: RecordView) -> bytes:
    """Give what a delayed message and its copy have in common, and no others."""
    facts = _FACTS(
        record.flag,
        record.born_timestamp_ms,
        record.reconsume_times,
        record.body_crc,
        record.body_size,
        record.sys_flag & ~0x30,
    )
    return hashlib.blake2b(
        facts + record.born_host_bytes + record.property_bytes, digest_size=16
    ).digest()
