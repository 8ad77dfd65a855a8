"""The half messages of a broker: which are open, and how each of them ends, exactly once.

Ending one appends what becomes of it together with a record that marks it as ended, so that both
are stored or neither. What a crash tears apart is repaired from the log:
a committed message names its half message. Half messages stay where they are however often their
producers are asked; so a transaction has one offset and one position, and cannot be ended twice.
Works on the store with `now` as an argument, without timers and connections. Belongs to the
broker's loop.
"""

import logging
from collections.abc import Callable

import msgspec

from pocketmq.broker.core.log_origins import copies_since
from pocketmq.broker.transactions import half_states
from pocketmq.broker.transactions.rules import HalfEnding, op_body, op_form, op_record, read_op
from pocketmq.broker.transactions.usual_commits import PackedEnding
from pocketmq.errors import BodyMalformed
from pocketmq.model.kinds import TRANSACTION_MASK
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol import RecordView, tags_code
from pocketmq.protocol.records import RecordForm
from pocketmq.store import MessageStore, QueueIndex

logger = logging.getLogger("pocketmq.broker")

KIND = "transactions"
_CHUNK = 1024
_CHUNK_SIZE = 4 << 20
_OP_TAG = tags_code(b"TAGS\1d\2")
_MARKED_AT_ONCE = 10_000


def _nobody() -> None:
    """Ignore it."""


class SavedStates(msgspec.Struct, frozen=True):
    """What is saved of the half messages."""

    base: int = 0
    states: bytes = b""  # packed
    op_offset: int = 0
    """Records from here on may mark others as ended."""
    position: int = 0
    """Messages committed before this position of the log are in `states`."""


class HalfMessages:
    """The open transactions of one broker."""

    def __init__(self, store: MessageStore) -> None:
        self.states = half_states.HalfStates()
        self.saved_position = 0
        self.changed: Callable[[], None] = _nobody
        """Called after a change of any state."""
        self._store = store
        self._unsure: list[tuple[int, int]] = []  # ended, but perhaps not written: state before
        self._op_end = 0
        self._forms: dict[tuple[int, bytes], RecordForm] = {}  # of marks, by state and host

    @property
    def queue(self) -> QueueIndex | None:
        """Where half messages wait."""
        return self._store.queue(HALF_TOPIC, 0)

    def open_count(self) -> int:
        """Count the transactions that are open."""
        queue = self.queue
        return 0 if queue is None else self.states.open_count(queue.next_offset)

    def at(self, position: int, offset: int = -1) -> RecordView | None:
        """Return the half message that begins at a position of the log.

        `offset` is the one that its producer has for it. If the index agrees, the record need not
        be looked for: nothing else begins there.
        """
        store, queue = self._store, self.queue
        if queue is not None and (found := store.record_of(queue, offset, position)) is not None:
            return RecordView(found, 0)
        record = store.record_at(position) if position >= 0 else None
        if record is None:
            return None
        half = RecordView(record, 0)
        return half if half.topic_bytes == HALF_TOPIC.encode() else None

    def state(self, offset: int) -> int | None:
        """Return the state of a half message; None if it ended too long ago."""
        self._take_back()
        return self.states.get(offset)

    def end(
        self,
        half: RecordView,
        state: int,
        ending: HalfEnding | PackedEnding | None,
        now_ms: int,
    ) -> QueueIndex:
        """End an open half message; return the queue of what becomes of it, or of the mark.

        Raises `StoreFull` or `StoreFailed`; it is still open then, also if that happens only when
        it is written.
        """
        self._take_back()
        store, offset = self._store, half.queue_offset
        queue = ops = store.queue(OP_HALF_TOPIC, 0) or store.make_queue(OP_HALF_TOPIC, 0)
        form = self._forms.get((state, host := half.store_host_bytes))
        if form is None:
            form = self._forms[state, host] = op_form(state, host, store.store_host)
        mark = ops, form, op_body([offset]), _OP_TAG
        if ending is None:
            store.append_marked(None, mark, now_ms)
        else:
            queue = store.make_queue(ending.topic, ending.queue_id)
            if isinstance(ending, PackedEnding):
                tag = ending.tag
            else:
                tag = tags_code(ending.record.property_bytes)
            store.append_marked((queue, ending.record, tag), mark, now_ms)
        self._unsure.append((offset, self.states.get(offset) or 0))
        self._op_end = ops.next_offset
        self.states.set(offset, state)
        self.changed()
        return queue

    def checked(self, offset: int, checks: int) -> None:
        """Record how often a producer was asked."""
        self.states.set(offset, min(checks, half_states.MOST_CHECKS))
        self.changed()

    def _take_back(self) -> None:
        """Reopen what ended in a batch that the store could not write.

        Each ending appended one mark. If the queue of marks is shorter than after the last one,
        the store has dropped that many, the latest first.
        """
        if not self._unsure:
            return
        ops = self._store.make_queue(OP_HALF_TOPIC, 0)
        lost = min(self._op_end - ops.next_offset, len(self._unsure))
        for offset, before in self._unsure[len(self._unsure) - lost :] if lost > 0 else ():
            self.states.set(offset, before)
        if lost > 0 or not self._store.log.pending:
            self._unsure.clear()
        self._op_end = ops.next_offset

    # Keeping

    def snapshot(self) -> Callable[[], bytes]:
        """Capture the states, for a log in which everything has been written."""
        self._take_back()
        self.states.trim()
        base, states = self.states.base, self.states.copy()
        ops = self._store.queue(OP_HALF_TOPIC, 0)
        op_offset = 0 if ops is None else ops.next_offset
        self.saved_position = position = self._store.log.written
        return lambda: msgspec.json.encode(
            SavedStates(base, half_states.pack_states(states), op_offset, position)
        )

    def recover(self, document: bytes | None, now_ms: int) -> int:
        """Resume from what was saved and what the log has since; return how many are open.

        Raises `BodyMalformed` for a malformed document, `StoreError` if marks are missing and
        cannot be written.
        """
        saved = SavedStates()
        if document is not None:
            try:
                saved = msgspec.json.decode(document, type=SavedStates)
                self.states = half_states.HalfStates(
                    saved.base, half_states.unpack_states(saved.states)
                )
            except ValueError as error:
                raise BodyMalformed("states of transactions", str(error)) from error
        self.saved_position = saved.position
        queue = self.queue
        if queue is None:
            self.states = half_states.HalfStates()
            return 0
        self.states.cut(queue.min_offset, queue.next_offset)
        marked = self._read_marks(saved.op_offset, queue)
        if self._store.recovered.damage and self._store.log.first <= saved.position:
            self._open_again(marked, saved.position)
        first = self.states.first_open(queue.next_offset)
        if first < queue.next_offset:
            # What ends a half message lies behind it.
            self._find_endings(max(saved.position, queue.position(first) or 0), now_ms)
        return sum(1 for _ in self.states.open_from(self.states.base, queue.next_offset))

    def _read_marks(self, offset: int, queue: QueueIndex) -> dict[int, int]:
        """Read which half messages ended; return positions and offsets of those with an ending.

        A mark lies behind its half message. One that does not is of a half message that a power
        cut took, whose offset another one has by now.
        """
        ops = self._store.queue(OP_HALF_TOPIC, 0)
        marked: dict[int, int] = {}
        while ops is not None and offset < ops.next_offset:
            read = self._store.read(ops, offset, _CHUNK, _CHUNK_SIZE)
            for piece in read.pieces:
                mark = RecordView(piece, 0)
                halves, state = read_op(mark)
                for half in halves:
                    position = queue.position(half) if half >= 0 else None
                    if position is not None and position < mark.commit_log_offset:
                        self.states.set(half, state)
                        if state in (half_states.COMMITTED, half_states.DISCARDED):
                            marked[position] = half
            offset = max(read.next_offset, offset + 1)
        return marked

    def _open_again(self, marked: dict[int, int], position: int) -> None:
        """Reopen what is marked as ended if a power cut took the message it ended with."""
        topic = DISCARDED_HALF_TOPIC.encode()
        kept = {copy.origin for copy in copies_since(self._store, position, topic)}
        for origin in marked.keys() - kept:
            logger.warning(
                "transaction reopened: its commit or rollback was lost in a power cut: position=%d",
                origin,
            )
            self.states.set(marked[origin], half_states.OPEN)

    def _find_endings(self, position: int, now_ms: int) -> None:
        """Mark what ended just before a crash that took the mark."""
        unmarked: dict[int, list[int]] = {}
        host = b""
        for copy in copies_since(self._store, position, DISCARDED_HALF_TOPIC.encode()):
            half = self.at(copy.origin)
            if half is None or (copy.body_crc, copy.born_ms) != (
                half.body_crc,
                half.born_timestamp_ms,
            ):
                continue
            state = self.states.get(half.queue_offset)
            if state is not None and state <= half_states.MOST_CHECKS:
                committed = copy.sys_flag & TRANSACTION_MASK
                ended = half_states.COMMITTED if committed else half_states.DISCARDED
                self.states.set(half.queue_offset, ended)
                unmarked.setdefault(ended, []).append(half.queue_offset)
                host = half.store_host_bytes
        ops = self._store.make_queue(OP_HALF_TOPIC, 0)
        for state, offsets in unmarked.items():
            logger.info(
                "recovered transactions that ended just before a crash: count=%d", len(offsets)
            )
            for start in range(0, len(offsets), _MARKED_AT_ONCE):
                mark = op_record(offsets[start : start + _MARKED_AT_ONCE], state, now_ms, host)
                self._store.append(ops, [mark], [_OP_TAG], now_ms)
        self._store.write()
