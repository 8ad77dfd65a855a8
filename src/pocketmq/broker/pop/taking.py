"""Taking messages: one pop over the queues of a topic and its retry topics.

Owns Java's order: queues from a random one on, retries first in some pops and last in the others;
of a topic with priorities from the most urgent queue on, retries last.
What is found is noted in the table by `note`, before any other request is served. Belongs to the
broker's loop.
"""

import random
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from pocketmq.broker.pop.changes import MessagesPopped
from pocketmq.broker.pop.in_flight import OrderedPop, ordered_pop
from pocketmq.broker.pop.single_messages import single_messages
from pocketmq.broker.pop.sources import MOST_MESSAGES, PopSource, queue_order
from pocketmq.broker.pop.table import LATEST_MS, PopTable
from pocketmq.broker.pulling.selection import Selection
from pocketmq.errors import InvalidInput
from pocketmq.model import property_names
from pocketmq.protocol.handles import ORDERED_REVIVE_QUEUE, PopHandle, TopicMark
from pocketmq.protocol.property_text import append_property, find_property
from pocketmq.protocol.records import decode_record, encode_record
from pocketmq.protocol.requests.pop import PopRequest
from pocketmq.store import QueueIndex, QueueRead

if TYPE_CHECKING:
    from pocketmq.broker.state import BrokerState

REVIVE_QUEUE = 0
_SCANS = 16
"""Reads in which nothing matches before other requests are served."""
_OFFSET: Callable[[memoryview, int], tuple[int]] = struct.Struct(">q").unpack_from
_ATTEMPT = 256

_Found: TypeAlias = tuple[str, TopicMark, int, Sequence[int], QueueRead]
"""What a queue had: topic, mark, queue id, offsets, and the read."""


class PopBatch:
    """The messages that a pop has found so far."""

    __slots__ = (
        "count", "order_counts", "pieces", "places", "rest", "size", "starts", "stopped",
        "unfinished",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pieces: list[memoryview | bytes] = []
        self.size = 0
        self.count = 0
        self.rest = 0  # messages that are left for other pops
        self.unfinished = False  # more would have to be read to know whether any matches
        self.stopped = False  # the group has too many in flight to get more
        self.starts: list[str] = []
        self.places: list[str] = []
        self.order_counts: list[str] = []


class Taking:
    """One pop being carried out."""

    def __init__(
        self,
        state: "BrokerState",
        table: PopTable,
        source: PopSource,
        header: PopRequest,
        selection: Selection,
    ) -> None:
        self._state = state
        self._table = table
        self._source = source
        self._header = header
        self._selection = selection
        self._now_ms = state.batch.now_ms
        most = header.max_msg_nums
        self._most = most if 0 < most <= MOST_MESSAGES else max(1, min(most, MOST_MESSAGES))
        self._attempt = None if header.attempt_id is None else header.attempt_id[:_ATTEMPT]
        self._batch = PopBatch()
        self._found: list[_Found] = []

    def run(self) -> PopBatch:
        """Find what there is, up to what was asked for; `note` takes it."""
        header, source, batch = self._header, self._source, self._batch
        chance = int(random.random() * 100)  # noqa: S311 - where to begin is no secret
        if header.order:
            self._from_topic(header.topic, TopicMark.NORMAL, header.queue_id, chance)
            return batch
        by_priority = chance < source.by_priority
        start = None if by_priority else chance
        if not source.retries:
            self._from_topic(header.topic, TopicMark.NORMAL, header.queue_id, start)
            return batch
        config = self._state.config
        retries_first = chance < (
            config.pop_from_retry_probability_for_priority
            if by_priority
            else config.pop_from_retry_probability
        )
        if retries_first:
            self._from_retries(start)
        self._from_topic(header.topic, TopicMark.NORMAL, header.queue_id, start)
        if not retries_first:
            self._from_retries(start)
        return batch

    def _from_retries(self, chance: int | None) -> None:
        for mark, topic in self._source.retries:
            self._from_topic(topic, mark, -1, chance)

    def _from_topic(self, topic: str, mark: TopicMark, queue_id: int, chance: int | None) -> None:
        """Take from one queue, or from all; `chance` is where to begin, None for by priority."""
        state, batch, most = self._state, self._batch, self._most
        if queue_id >= 0:
            queue = state.store.queue(topic, queue_id)
            if queue is not None:
                self._from_queue(topic, mark, queue)
            return
        if mark is TopicMark.NORMAL:
            count = self._source.queues
        else:
            config = state.topics.get(topic)
            count = 0 if config is None else config.read_queue_nums
        order = queue_order(count, chance, ascending=state.config.priority_order_asc)
        by_id = state.store.queues.by_id(topic)
        queues = [by_id[each] for each in order if each in by_id]
        group = self._header.consumer_group
        for queue, start, rest in self._table.left_in(topic, group, queues):
            if rest is None or (rest and batch.count < most):
                self._from_queue(topic, mark, queue, start)
            else:
                batch.rest += rest

    def _from_queue(
        self, topic: str, mark: TopicMark, queue: QueueIndex, start: int | None = None
    ) -> None:
        """Take from a queue, from `start` on if that is where it continues for certain."""
        state, header, batch = self._state, self._header, self._batch
        group, queue_id = header.consumer_group, queue.queue_id
        if start is None:
            start = self._start(topic, queue)
        if header.order:
            locked = self._table.locked(topic, group, queue_id)
            if locked is not None and locked.pop.is_blocked(self._attempt, self._now_ms):
                return  # unlocking it wakes the pops that wait
        left = queue.next_offset - start
        if left == 0:
            return
        config = state.config
        most_bytes = config.max_transfer_bytes_on_message_in_memory
        count = self._most - batch.count
        if config.enable_pop_message_threshold:
            out = self._table.count(topic, group, queue_id)
            if out >= config.pop_inflight_message_threshold:
                batch.stopped = True
                count = 0
        if count <= 0 or batch.size >= most_bytes:
            batch.rest += max(left, 0)
            return
        # What leaves as it lies in the log may come in fewer pieces.
        joined = mark is TopicMark.NORMAL or config.pop_response_return_actual_retry_topic
        read, first = self._read(topic, queue, start, (count, most_bytes), joined=joined)
        left = read.max_offset - read.next_offset
        if left > 0:
            batch.rest += left
        if not read.pieces:
            batch.unfinished |= read.next_offset < read.max_offset
            if read.next_offset > start:
                self._table.skip(topic, group, queue_id, read.next_offset)
            return
        offsets = _offsets_of(read, first)
        self._found.append((topic, mark, queue_id, offsets, read))
        self._add(read, mark, queue_id, offsets)

    def _start(self, topic: str, queue: QueueIndex) -> int:
        """Return where to continue in a queue, or where a new group begins."""
        offsets, group = self._state.offsets, self._header.consumer_group
        target = offsets.take_reset(group, topic, queue.queue_id)
        if target is not None:
            self._table.clear(topic, group, queue.queue_id, target)
            offsets.commit(group, topic, queue.queue_id, target)
            return target
        start = self._table.cursor(topic, group, queue.queue_id)
        if start is not None and start >= 0:
            return start
        start = first_offset(queue, topic, self._header.init_mode)
        offsets.commit(group, topic, queue.queue_id, start)
        return start

    def _read(
        self, topic: str, queue: QueueIndex, start: int, most: tuple[int, int], *, joined: bool
    ) -> tuple[QueueRead, int]:
        """Read what matches, `most` messages and bytes at most; also return where it began."""
        store, wanted = self._state.store, self._selection
        count, most_bytes = most
        offset = start
        for _ in range(_SCANS):
            read = store.read(
                queue, offset, count, most_bytes, wanted.matches, tags=wanted.codes, joined=joined
            )
            if read.has_batches:
                read = single_messages(read, offset, count, most_bytes)
            elif len(read.pieces) < read.count != read.next_offset - offset:
                read = store.read(queue, offset, count, most_bytes)  # damaged ones are missing
            if read.pieces or read.next_offset == offset:
                break
            if read.next_offset < offset:  # the queue is a new one under an old name
                group = self._header.consumer_group
                self._table.clear(topic, group, queue.queue_id, read.next_offset)
                self._state.offsets.commit(group, topic, queue.queue_id, read.next_offset)
            offset = read.next_offset
        return read, offset

    def note(self) -> None:
        """Take what was found: no other pop gets it now. Call it once, after `run`.

        It does not fail: what a response brings may leave before.
        """
        stats, group = self._state.stats, self._header.consumer_group
        for topic, mark, queue_id, offsets, read in self._found:
            stats.were_given(topic, group, read.count, read.size)
            self._note(topic, mark, queue_id, offsets, read.next_offset)

    def _note(
        self, topic: str, mark: TopicMark, queue_id: int, offsets: Sequence[int], following: int
    ) -> None:
        header, table, now_ms = self._header, self._table, self._now_ms
        group, invisible_ms = header.consumer_group, min(header.invisible_time, LATEST_MS)
        self._state.offsets.record_pull(group, topic, queue_id, following)
        if header.order:
            pop = ordered_pop(self._attempt, now_ms, invisible_ms, offsets)
            table.lock(topic, group, queue_id, pop, now_ms)
            self._batch.order_counts += _order_counts(mark, queue_id, pop)
            return
        whole = following - offsets[0] == len(offsets)
        table.take(
            MessagesPopped(
                topic,
                group,
                queue_id,
                offsets[0],
                following,
                now_ms,
                now_ms + invisible_ms,
                None if whole else list(offsets),
            )
        )

    def _add(self, read: QueueRead, mark: TopicMark, queue_id: int, offsets: Sequence[int]) -> None:
        batch, start = self._batch, offsets[0]
        place = f"{mark._value_} {queue_id} "
        batch.starts.append(f"{place}{start}")
        texts = f"{start}" if len(offsets) == 1 else ",".join(map(str, offsets))
        batch.places.append(place + texts)
        batch.count += read.count
        if mark is TopicMark.NORMAL or self._state.config.pop_response_return_actual_retry_topic:
            batch.pieces += read.pieces
            batch.size += read.size
            return
        header = self._header
        for piece in read.pieces:
            handle = PopHandle(
                start_offset=start,
                pop_time_ms=self._now_ms,
                invisible_time_ms=header.invisible_time,
                revive_queue_id=ORDERED_REVIVE_QUEUE if header.order else REVIVE_QUEUE,
                mark=mark,
                broker_name=self._state.config.broker_name,
                queue_id=queue_id,
                queue_offset=_OFFSET(piece, 20)[0],
            )
            changed = as_first_sent(piece, header.topic, str(handle))
            batch.pieces.append(changed)
            batch.size += len(changed)


def first_offset(queue: QueueIndex, topic: str, init_mode: int) -> int:
    """Return where a new group begins: at the first message, or at the last.

    As with pulls a young queue, of which nothing was deleted yet, is always read from its start.
    """
    low = queue.min_offset
    if init_mode == 0 or low <= 0 or TopicMark.of(topic) is not TopicMark.NORMAL:
        return low
    return max(queue.next_offset - 1, 0)


def as_first_sent(piece: memoryview, topic: str, handle: str) -> bytes | memoryview:
    """Return a message of a retry topic under the topic it is popped from, with its handle.

    As in Java. One whose properties have no space for the handle stays as it is: clients can also
    make the handle themselves from the answer's fields.
    """
    record = decode_record(piece)
    text = record.property_bytes
    if find_property(text, property_names.POP_CHECKPOINT.encode()) is None:
        try:
            text = append_property(text, property_names.POP_CHECKPOINT, handle)
        except InvalidInput:
            return piece
    changes: dict[str, Any] = {"topic": topic.encode(), "property_bytes": text}
    return encode_record(msgspec.structs.replace(record, **changes))


def _offsets_of(read: QueueRead, first: int) -> Sequence[int]:
    if read.next_offset - first == read.count:
        return range(first, read.next_offset)
    return [_OFFSET(piece, 20)[0] for piece in read.pieces]


def _order_counts(mark: TopicMark, queue_id: int, pop: OrderedPop) -> list[str]:
    counts = [f"{mark.value} qo{queue_id}%{offset} {count}" for offset, count in pop.counts.items()]
    return [*counts, f"{mark.value} {queue_id} {pop.count_of_queue()}"]
