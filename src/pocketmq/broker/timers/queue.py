"""Timed messages on the store: taken in, delivered when due, recalled, moved, recovered.

The queue of rmq_sys_wheel_timer is the truth, the wheel a view of it; `timers.progress` holds what
has been delivered. What was delivered after that was saved is found in the log: it names the
message that waited. Works with `now` as an argument, without timers and connections.
Belongs to the broker's loop.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from pocketmq.broker.timers.progress import (
    CHUNK,
    OlderMark,
    Recalls,
    TimerProgress,
    delivered_since,
    first_due_from,
    records_at,
)
from pocketmq.broker.timers.rules import due_message, key_of, moved, taken_back, timer_tag
from pocketmq.broker.timers.wheel import Entry, TimerWheel
from pocketmq.errors import BodyMalformed, StoreError
from pocketmq.model.names import TIMER_TOPIC
from pocketmq.model.property_names import REAL_TOPIC
from pocketmq.protocol import RecordView, tags_code
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, QueueIndex

logger = logging.getLogger("pocketmq.broker")

KIND = "timers"
_MOVED_AT_ONCE = 256


class SavedTimers(msgspec.Struct, frozen=True):
    """What is saved of the timed messages."""

    done_ms: int = 0
    """Everything due before this time has been delivered or recalled; ..."""
    done_offset: int = -1
    """... of what is due at this time, everything up to this offset; ..."""
    ahead: dict[int, int] = {}
    """... and some of what comes later, by offset; ..."""
    position: int = 0
    """... all of it to places of the commit log before this one."""
    offset: int = 0
    """Messages before this one do not wait any more: they were moved."""
    scope: int = -1
    """The time above holds for messages before this offset; -1 for all; ..."""
    older: list[OlderMark] = []
    """... and these for those before theirs."""


class DeliveredTimers(NamedTuple):
    """What was delivered."""

    by_queue: dict[QueueIndex, tuple[int, int]]
    """How many messages, and how many bytes, came to each queue."""
    error: StoreError | None
    """Why it ended early; what is not delivered stays where it is."""


class TimerQueue:
    """The timed messages of one broker."""

    def __init__(self, store: MessageStore) -> None:
        self.wheel = TimerWheel()
        self.recalls = Recalls()
        self.progress = TimerProgress()
        self.saved_position = 0
        self._store = store
        self._first = 0  # messages before this offset were moved
        self._taken = 0  # messages before this offset are in the wheel, or done with

    @property
    def done(self) -> Entry:
        """When the message was due that was delivered last, and its offset."""
        return self.progress.done

    @property
    def queue(self) -> QueueIndex | None:
        """Where timed messages wait."""
        return self._store.queue(TIMER_TOPIC, 0)

    @property
    def not_taken(self) -> int:
        """How many messages the wheel has yet to take in."""
        queue = self.queue
        return 0 if queue is None else max(queue.next_offset - self._taken, 0)

    @property
    def taken(self) -> int:
        """Messages before this offset are in the wheel, or done with."""
        return self._taken

    def behind_ms(self, now_ms: int) -> int:
        """Return for how long the first message waits that the wheel has yet to take in."""
        queue = self.queue
        if queue is None or self._taken >= queue.next_offset:
            return 0
        return max(now_ms - self._store.store_time(queue, self._taken), 0)

    def late_ms(self, now_ms: int) -> int:
        """Return how long the next message has been due."""
        look_ms = self.wheel.next_look_ms()
        return 0 if look_ms is None else max(now_ms - look_ms, 0)

    def by_topic(self, entries: list[Entry]) -> dict[str, int]:
        """Count waiting messages by the topic they are for, as far as they can be read."""
        counts: dict[str, int] = {}
        queue = self.queue
        if queue is not None:
            for record in records_at(self._store, queue, sorted(offset for _, offset in entries)):
                topic = find_property(record.property_bytes, REAL_TOPIC.encode()) or b""
                name = topic.decode("utf-8", "replace")
                counts[name] = counts.get(name, 0) + 1
        return counts

    def take_in(self, limit: int = 1 << 62) -> bool:
        """Take messages that have been written into the wheel; return whether any are left.

        Call it when nothing is pending in the store: what could still be taken back is not there.
        """
        queue = self.queue
        if queue is None:
            return False
        if queue.next_offset < self._taken:  # the topic was deleted, with all that waited
            self.wheel, self.recalls, self._first, self._taken = TimerWheel(), Recalls(), 0, 0
            self.progress = TimerProgress()
        stop = min(queue.next_offset, self._taken + limit)
        while self._taken < stop:
            tags = queue.tags(self._taken, min(CHUNK, stop - self._taken))
            self._add(queue, self._taken, tags)
            self._taken += len(tags)
        return self._taken < queue.next_offset

    def _add(self, queue: QueueIndex, first: int, tags: list[int]) -> None:
        progress = self.progress
        if progress.all_wait(first, tags):  # as nearly always
            self.wheel.add(zip(tags, range(first, first + len(tags)), strict=True))
            return
        for offset, tag in enumerate(tags, first):
            if tag > 0 and progress.came((tag, offset)):
                self.wheel.rewind()
        self.wheel.add(
            [
                (tag, offset)
                for offset, tag in enumerate(tags, first)
                if tag > 0 and not progress.is_done((tag, offset))
            ]
        )
        if min(tags) < 0:
            done_ms = progress.done[0]
            for offset, tag in enumerate(tags, first):
                if tag < 0 and -tag >= done_ms and offset not in progress.ahead:
                    self._note_recall(queue, offset, -tag)

    def _note_recall(self, queue: QueueIndex, offset: int, due_ms: int) -> None:
        for record in records_at(self._store, queue, [offset]):
            key = taken_back(record)
            if key is not None:
                self.recalls.add(due_ms, key)

    # Delivering

    def deliver(self, now_ms: int, messages: int, size: int) -> DeliveredTimers:
        """Deliver what is due, at most `messages` messages and about `size` bytes, and write it.

        No other messages may be waiting to be written: a write that fails drops all of them.
        """
        entries = self.wheel.take_due(now_ms, messages)
        queue = self.queue
        if not entries or queue is None:
            return DeliveredTimers({}, None)
        runs: dict[tuple[str, int], list[Record]] = {}
        taken = 0
        for waiting in self._waiting(queue, entries):
            taken += 1
            if waiting is not None:
                due = due_message(waiting, now_ms)
                if due is None:
                    logger.error(
                        "timed message has no target topic: position=%d; skipped",
                        waiting.commit_log_offset,
                    )
                else:
                    runs.setdefault(due[:2], []).append(due.record)
                    size -= len(due.record.body)
                    if size <= 0:
                        break
        self.wheel.put_back(entries[taken:])
        return self._append(entries[:taken], runs, now_ms)

    def _waiting(self, queue: QueueIndex, entries: list[Entry]) -> Iterator[RecordView | None]:
        """Yield the messages of entries, None for those that are lost or were recalled."""
        found = {
            record.queue_offset: record
            for record in records_at(self._store, queue, [o for _, o in entries])
        }
        for due_ms, offset in entries:
            record = found.get(offset)
            if record is None:
                logger.error("timed message is lost: offset=%d; skipped", offset)
                yield None
            else:
                recalled = self.recalls.get(due_ms)
                yield None if recalled and key_of(record) in recalled else record

    def _append(
        self, entries: list[Entry], runs: dict[tuple[str, int], list[Record]], now_ms: int
    ) -> DeliveredTimers:
        store = self._store
        start = store.log.written
        appended: list[tuple[QueueIndex, int, int, int]] = []
        error: StoreError | None = None
        try:
            for (topic, queue_id), records in runs.items():
                queue = store.make_queue(topic, queue_id)
                tags = [tags_code(record.property_bytes) for record in records]
                offset = store.append(queue, records, tags, now_ms).queue_offset
                bytes_in = sum([len(record.body) for record in records])
                appended.append((queue, offset, len(records), bytes_in))
            store.write()
        except StoreError as failed:
            error = failed
        by_queue = {
            queue: (count, bytes_in)
            for queue, offset, count, bytes_in in appended
            if queue.next_offset > offset
        }
        if error is not None:
            self._keep_rest(entries, start)
            return DeliveredTimers(by_queue, error)
        self.progress.reached(entries[-1], self._taken)
        self.recalls.forget(self.done[0] - 1)
        return DeliveredTimers(by_queue, None)

    def _keep_rest(self, entries: list[Entry], start: int) -> None:
        """Put back what a store that refuses has not taken; some of it may be stored already."""
        with suppress(StoreError):
            self._store.write()
        stored = delivered_since(self._store, start)
        self.progress.ahead |= {offset: due_ms for due_ms, offset in entries if offset in stored}
        self.wheel.put_back([entry for entry in entries if entry[1] not in stored])

    # Keeping

    def snapshot(self) -> Callable[[], bytes]:
        """Capture how far deliveries are, for a log in which everything has been written."""
        self.saved_position = self._store.log.written
        progress = self.progress
        saved = SavedTimers(
            *progress.done,
            dict(progress.ahead),
            self.saved_position,
            self._first,
            progress.scope,
            list(progress.older),
        )
        return lambda: msgspec.json.encode(saved)

    def recover(self, document: bytes | None) -> None:
        """Resume from what was saved and what the log has since. Raises `BodyMalformed`."""
        saved = SavedTimers()
        if document is not None:
            try:
                saved = msgspec.json.decode(document, type=SavedTimers)
            except ValueError as error:
                raise BodyMalformed("state of timed messages", str(error)) from error
        self.saved_position = saved.position
        queue = self.queue
        end = 0 if queue is None else queue.next_offset
        done, scope = (saved.done_ms, saved.done_offset), min(saved.scope, end)
        self.progress = TimerProgress(done, end if scope < 0 else scope, saved.older)
        self.progress.ahead = saved.ahead
        if queue is None:
            return
        self._first = 0 if saved.offset > queue.next_offset else saved.offset
        first = self._first_waiting(queue, max(queue.min_offset, self._first))
        if first is None:
            self._taken = queue.next_offset
            return
        # A copy lies behind its original: nothing before the first that may wait need be read.
        start = max(saved.position, queue.position(first) or 0)
        for offset in delivered_since(self._store, start):
            for tag in queue.tags(offset, 1) if offset >= first else ():
                self.progress.ahead[offset] = abs(tag)
        self._taken = first
        self.take_in()

    def _first_waiting(self, queue: QueueIndex, offset: int) -> int | None:
        """Return the first message that may wait, from an offset on."""
        scope = max(offset, self.progress.scope)
        found = first_due_from(queue, offset, self.done[0])
        if found is None or found > scope:
            return scope if scope < queue.next_offset else found
        return found

    # Before a log file is deleted

    def move_before(self, position: int, now_ms: int) -> None:
        """Append the waiting messages before a position again: their file is to be deleted.

        Raises `StoreError`.
        """
        self._store.write()
        self.take_in()
        queue = self.queue
        if queue is None:
            return
        cut = queue.first_behind(position)
        waiting = {offset for _, offset in self.wheel.before(cut)}
        first = max(queue.min_offset, self._first)
        for offset, tag in enumerate(queue.tags(first, max(0, cut - first)), first):
            if tag < 0 and -tag >= self.done[0] and offset not in self.progress.ahead:
                waiting.add(offset)
        offsets = sorted(waiting)
        for start in range(0, len(offsets), _MOVED_AT_ONCE):
            found = list(records_at(self._store, queue, offsets[start : start + _MOVED_AT_ONCE]))
            if found:
                tags = [timer_tag(record) for record in found]
                self._store.append(queue, [moved(record) for record in found], tags, now_ms)
        if offsets:
            self._store.sync_now()
        self.wheel.drop_before(cut)
        self._first = max(self._first, cut)
        ahead = self.progress.ahead
        self.progress.ahead = {offset: due for offset, due in ahead.items() if offset >= cut}
        self.take_in()
