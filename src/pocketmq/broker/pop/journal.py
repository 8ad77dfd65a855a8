"""The journal of pops: what changed, in order, as records of a queue that recovery replays.

Owns the records; their entries are in `changes`. Changes of one event-loop iteration go into one
record, consecutive acknowledgements of one pop into one entry. `note` only collects; `seal` appends
the record, which is written with the iteration's messages. Acknowledgements are answered after
that, a pop may be before: if its entry is lost, or cannot be read, its messages are at worst
delivered again. Belongs to the broker's loop.
"""

import logging
from collections.abc import Iterator, Sequence

import msgspec

from pocketmq.broker.pop.changes import Entry, MessagesSettled
from pocketmq.model.names import REVIVE_TOPIC_PREFIX
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import RecordForm
from pocketmq.store import MessageStore, QueueIndex

logger = logging.getLogger("pocketmq.broker")

_CHUNK = 512
_CHUNK_SIZE = 4 << 20
_ENTRIES = 256
_RECORD = 64 << 10
"""Entries, and about the bytes, of one record at most."""
_NOBODY = bytes(8)


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[Entry])


class Journal:
    """The journal of one broker."""

    def __init__(self, store: MessageStore, cluster: str) -> None:
        self._store = store
        self._topic = REVIVE_TOPIC_PREFIX + cluster
        self._form = RecordForm(
            self._topic.encode(), b"", born_host=_NOBODY, store_host=store.store_host
        )
        self._pending: list[Entry] = []
        self._queue: QueueIndex | None = None

    @property
    def end(self) -> int:
        """Where the next record goes."""
        queue = self._store.queue(self._topic, 0)
        return 0 if queue is None else queue.next_offset

    def note(self, entry: Entry) -> None:
        """Add a change to the record of this iteration."""
        self._pending.append(entry)

    def note_settled(  # noqa: PLR0917 - the fields of an entry
        self,
        topic: str,
        group: str,
        queue_id: int,
        pop_time_ms: int,
        offsets: list[int],
        copies: Sequence[int] = (),
    ) -> None:
        """Add acknowledgements of one pop, or messages and their copies; the list is kept."""
        pending = self._pending
        if pending:
            last = pending[-1]
            if (
                type(last) is MessagesSettled
                and bool(last.copies) == bool(copies)
                and last.pop_time_ms == pop_time_ms
                and last.queue_id == queue_id
                and last.topic == topic
                and last.group == group
            ):
                last.offsets += offsets
                last.copies += copies
                return
        pending.append(MessagesSettled(topic, group, queue_id, pop_time_ms, offsets, [*copies]))

    def seal(self, now_ms: int) -> int:
        """Append what was noted, to be written with this iteration's messages; return how much.

        Raises `StoreError`; what was noted is not tried again then.
        """
        if not self._pending:
            return 0
        pending, self._pending = self._pending, []
        store, form = self._store, self._form
        queue = self._queue
        if queue is None or not queue.number:  # new, or deleted
            queue = self._queue = store.make_queue(self._topic, 0)
        if len(pending) == 1:
            store.append_body(queue, form, _encode(pending), 0, now_ms)
            return 1
        limit = min(_RECORD, store.options.segment_size // 4)
        for body in _bodies(pending, limit):
            store.append_body(queue, form, body, 0, now_ms)
        return len(pending)

    def position_before(self, offset: int) -> int:
        """Return a position of the log behind which all records from an offset on lie."""
        queue = self._store.queue(self._topic, 0)
        return 0 if queue is None else queue.position(offset - 1) or 0

    def entries(self, offset: int) -> Iterator[tuple[int, Entry]]:
        """Return what was noted, from an offset of the journal on, and where in the log."""
        queue = self._store.queue(self._topic, 0)
        if queue is None:
            return
        offset = max(offset, queue.min_offset)
        while offset < queue.next_offset:
            read = self._store.read(queue, offset, _CHUNK, _CHUNK_SIZE)
            for piece in read.pieces:
                record = RecordView(piece, 0)
                try:
                    for entry in _decoder.decode(record.stored_body):
                        yield record.commit_log_offset, entry
                except msgspec.MsgspecError as error:
                    logger.error(  # noqa: TRY400 - damaged data, not a fault of the code
                        "skipping damaged record of the pop journal: offset=%d error=%s",
                        record.queue_offset, error,
                    )  # fmt: skip
            offset = max(read.next_offset, offset + 1)


def _bodies(entries: list[Entry], limit: int) -> Iterator[bytes]:
    """Write entries as few records, each small enough for the smallest file of a log."""
    for start in range(0, len(entries), _ENTRIES):
        some = entries[start : start + _ENTRIES]
        body = _encode(some)
        if len(body) <= limit or len(some) == 1:
            yield body
        else:
            half = len(some) // 2
            yield from _bodies(some[:half], limit)
            yield from _bodies(some[half:], limit)
