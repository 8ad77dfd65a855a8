"""Rows as requests: batches for one queue each, encoded without a Python step per row.

Rows that cannot be in a batch (delayed, with a priority, too large, for a retry topic) are sent
alone. Rows with the same ordering key keep their order; rows that name their queue (columns
`queueId` and `brokerName`) go there; rows for any queue become as many requests as there are
queues, so that a small write fills them all. Uses no connection: yields what to send, in order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pocketmq.balance.producer.selectors import by_hash, long_hash
from pocketmq.blocking.record_sender import IdRange
from pocketmq.errors import RowRefused
from pocketmq.model import MessageQueue
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.batch import ENTRY_OVERHEAD
from pocketmq.spark.attendance import named
from pocketmq.spark.checked_columns import join, sizes_of
from pocketmq.spark.rows import Rows

Queues = Callable[[str], Sequence[MessageQueue]]
"""Returns the writable queues of a topic, in the order Java's selectors see them."""

MOST_ROWS = 32_768
"""Rows encoded together: half of the message ids available per millisecond."""
MOST_BYTES = 64 << 20
FEWEST_ROWS = 8
"""Rows that are not worth two requests, although they leave queues empty."""

_WAIT = b"WAIT\1true\2"
_DIGITS = np.array([b"%04X" % number for number in range(1 << 16)], "S4")


class Packed(NamedTuple):
    """A batch: its encoded body, and the rows in it by their numbers."""

    topic: str
    queue: MessageQueue | None
    body: bytes
    first: int
    last: int
    rows: int


class Alone(NamedTuple):
    """One row of `rows` that is sent by itself."""

    rows: Rows
    at: int
    queue: MessageQueue | None
    delay: float | None


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in slices of limited size, in order."""
    if batch.num_rows > 1 and (batch.num_rows > MOST_ROWS or batch.nbytes > MOST_BYTES):
        half = batch.num_rows // 2
        yield from slices(batch.slice(0, half))
        yield from slices(batch.slice(half))
    elif batch.num_rows:
        yield batch


def one_queue(_: str) -> int:
    """Return 1: the rows of a topic are not spread."""
    return 1


def pack(
    rows: Rows,
    limit: int,
    take_ids: Callable[[int], IdRange],
    queues: Queues,
    queue_count: Callable[[str], int] = one_queue,
    *,
    mark: bytes = b"",
) -> Iterator[Packed | Alone]:
    """Yield what to send for some rows; no batch has more than `limit` bytes.

    `mark` is property text that all of them get.

    Rows for any queue are spread over `queue_count` of them: producers send each batch to the next
    queue. Raises `RowRefused` for a row that is pinned to a queue that its topic does not have.
    """
    rows, targets, bounds = grouped(rows, queues)
    entries = encode(rows, take_ids(len(rows)), mark)
    ends = np.frombuffer(entries.buffers()[1], np.int32)[: len(rows) + 1]
    alone = np.diff(ends) > limit
    if rows.delay is not None:
        alone |= rows.delay > 0
    if rows.priority is not None:  # the broker chooses the queue of each
        alone |= rows.priority >= 0
    data = entries.buffers()[2]
    for (topic, queue), start, stop in zip(targets, bounds, bounds[1:], strict=False):
        if is_retry_topic(topic):
            alone[start:stop] = True
        most = stop - start
        if queue is None:
            most = max(FEWEST_ROWS, -(-most // max(1, queue_count(topic))))
        at = start
        for odd in (*np.flatnonzero(alone[start:stop]) + start, stop):
            while at < odd:
                cut = int(np.searchsorted(ends, ends[at] + limit, side="right")) - 1
                cut = min(cut, int(odd), at + most)
                body = data.slice(int(ends[at]), int(ends[cut] - ends[at])).to_pybytes()
                numbers = rows.numbers[at:cut]
                yield Packed(topic, queue, body, int(numbers[0]), int(numbers[-1]), cut - at)
                at = cut
            if odd < stop:
                delay = 0.0 if rows.delay is None else float(rows.delay[odd])
                yield Alone(rows, int(odd), queue, delay or None)
                at = int(odd) + 1


def grouped(
    rows: Rows, queues: Queues
) -> tuple[Rows, list[tuple[str, MessageQueue | None]], list[int]]:
    """Group rows by topic and queue; within a group they keep their order.

    Returns the rows, the target of each group, and the bounds of the groups.
    """
    if rows.ordering is None and rows.topic_codes is None and rows.queue_ids is None:
        return rows, [(rows.topics[0], None)], [0, len(rows)]
    codes = np.zeros(len(rows), np.int64) if rows.topic_codes is None else rows.topic_codes
    places: list[tuple[str, MessageQueue | None]] = []
    place_of = np.zeros(len(rows), np.int64)
    for code, topic in enumerate(rows.topics):
        here = np.flatnonzero(codes == code)
        chosen: Sequence[MessageQueue | None] = (None,)
        choice = np.zeros(len(here), np.int64)
        if rows.ordering is not None or rows.queue_ids is not None:
            all_queues = queues(topic)
            chosen = (None, *all_queues)
            if rows.ordering is not None:
                choice = _choices(rows.ordering.take(pa.array(here)), all_queues)
            if rows.queue_ids is not None:
                pinned = pins(rows, here, all_queues)
                choice = np.where(pinned > 0, pinned, choice)
        place_of[here] = len(places) + choice
        places += [(topic, queue) for queue in chosen]
    order = np.argsort(place_of, kind="stable")
    used, starts = np.unique(place_of[order], return_index=True)
    bounds = [*(int(start) for start in starts), len(rows)]
    return rows.take(order), [places[place] for place in used], bounds


def _choices(keys: pa.Array, queues: Sequence[MessageQueue]) -> npt.NDArray[np.int64]:
    """Return the queue each key selects, counted from 1; 0 for a null key, which takes any."""
    coded = keys.dictionary_encode()
    wide = pa.types.is_int64(keys.type)
    position = {queue: place for place, queue in enumerate(queues, 1)}
    of_key = [0]
    of_key += [
        position[by_hash(queues, long_hash(key) if wide else key)]
        for key in coded.dictionary.to_pylist()
    ]
    codes = np.asarray(coded.indices.fill_null(-1), np.int64)
    return np.array(of_key, np.int64)[codes + 1]


def pins(
    rows: Rows, here: npt.NDArray[np.int64], queues: Sequence[MessageQueue]
) -> npt.NDArray[np.int64]:
    """Return the queue that each of some rows names, counted from 1; 0 where it names none.

    `here` are the rows of one topic, `queues` its queues. Raises `RowRefused`.
    """
    assert rows.queue_ids is not None
    ids = rows.queue_ids.take(pa.array(here)).cast(pa.int64())
    unpinned = ids.is_null().to_numpy(zero_copy_only=False)
    numbers = np.asarray(ids.fill_null(0), np.int64)
    names: list[str | None] = [None]
    codes = np.zeros(len(here), np.int64)
    if rows.brokers is not None:
        coded = rows.brokers.take(pa.array(here)).dictionary_encode()
        names += coded.dictionary.to_pylist()
        codes = np.asarray(coded.indices.fill_null(-1), np.int64) + 1
    chosen = np.zeros(len(here), np.int64)
    pairs = np.unique(np.stack([numbers[~unpinned], codes[~unpinned]]), axis=1)
    for number, code in pairs.T.tolist():
        queue = pinned_queue(number, names[code], queues)
        place = -1 if queue is None else queues.index(queue) + 1
        chosen[(numbers == number) & (codes == code) & ~unpinned] = place
    if (chosen < 0).any():
        at = int((chosen < 0).argmax())
        there = named(queues) or "it has none"
        reason = f"is {numbers[at]}, which is not among the queues of its topic: {there}"
        raise RowRefused(int(rows.numbers[here[at]]), rows.partition, "queueId", reason)
    return chosen


def pinned_queue(
    number: int, broker: str | None, queues: Sequence[MessageQueue]
) -> MessageQueue | None:
    """Return the queue of this number on a broker; None if there is none.

    Without a broker, or with one that has no queue of the topic (rows may come from another
    cluster), the brokers share the numbers: the same number is always the same queue.
    """
    if any(queue.broker_name == broker for queue in queues):
        found = [each for each in queues if (each.broker_name, each.queue_id) == (broker, number)]
    else:
        found = sorted(
            (each for each in queues if each.queue_id == number), key=lambda each: each.broker_name
        )
    return found[number % len(found)] if found else None


def encode(rows: Rows, ids: IdRange, mark: bytes = b"") -> pa.Array:
    """Return each row as the bytes of its entry in a batch, equal to those of `protocol.batch`."""
    amount = len(rows)
    before_id = f"UNIQ_KEY\1{ids.prefix}".encode()
    pieces: list[pa.Array | pa.Scalar] = []
    size: npt.NDArray[np.int64] | int = 0
    if rows.properties is not None:
        pieces.append(rows.properties)
        size = size + sizes_of(rows.properties)
    if rows.keys is not None:
        pieces.append(_named(b"KEYS", rows.keys))
        size = size + sizes_of(pieces[-1])
    pieces.append(pa.scalar(mark + _WAIT, pa.binary()))
    if rows.tags is not None:
        pieces.append(_named(b"TAGS", rows.tags))
        size = size + sizes_of(pieces[-1])
    pieces.append(pa.scalar(before_id, pa.binary()))
    pieces.append(_fixed(_DIGITS[np.arange(ids.first, ids.first + amount) & 0xFFFF]))
    pieces.append(pa.scalar(b"\2", pa.binary()))
    size = size + len(mark) + len(_WAIT) + len(before_id) + 5
    body_sizes = sizes_of(rows.body)
    head = np.zeros((amount, 5), ">i4")  # size, magic, checksum, flag, size of the body
    head[:, 0] = ENTRY_OVERHEAD + body_sizes + size
    head[:, 4] = body_sizes
    text_size = np.zeros(amount, ">i2")
    text_size[:] = size
    return join(
        _fixed(head.view("S20").ravel()),
        rows.body,
        _fixed(text_size.view("S2")),
        *pieces,
        nulls="replace",
    )


def _named(name: bytes, values: pa.Array) -> pa.Array:
    """Return a property; null where there is no value."""
    return join(pa.scalar(name + b"\1", pa.binary()), values, pa.scalar(b"\2", pa.binary()))


def _fixed(values: npt.NDArray[np.bytes_]) -> pa.Array:
    width = values.dtype.itemsize
    raw = pa.py_buffer(np.ascontiguousarray(values))
    whole = pa.Array.from_buffers(pa.binary(width), len(values), [None, raw])
    return whole.cast(pa.binary())
