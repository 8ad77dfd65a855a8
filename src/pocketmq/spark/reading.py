"""How a task reads its ranges: pulls joined until decoding pays, the next ones under way meanwhile.

Runs in Spark's worker processes. A decoded batch never mixes what was asked for with more: rows
outside of the ranges are dropped.
"""

import logging
import queue as queues
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.record_reader import PulledRecords, RecordReader
from pocketmq.errors import DataLost, MessageMalformed
from pocketmq.spark.connections import reader_of, settle
from pocketmq.spark.damaged import without_damage
from pocketmq.spark.layout import Part
from pocketmq.spark.planning import Range
from pocketmq.spark.records import Wanted, decode
from pocketmq.spark.source_options import Pulling

logger = logging.getLogger("pocketmq.spark")

JOINED_BYTES = 8 * 1024 * 1024
"""Records that are decoded together at most, give or take one pull."""
_AHEAD = 2
"""Batches pulled ahead of the one that is decoded."""
_FEW = 2_000
"""Messages below which a thread costs more than it saves."""
_PAUSE = 0.05
_TICK = 0.5


def read_ranges(
    ranges: Sequence[Range], wanted: Wanted, pulling: Pulling
) -> Iterator[pa.RecordBatch]:
    """Give the rows of some ranges, in the order of the ranges. Raises `DataLost` and `MQError`."""
    settle()
    reader = reader_of(pulling.reach, pulling.group)
    batches: Iterable[list[Part]] = _batches(reader, ranges, pulling)
    if sum(each.size for each in ranges) > _FEW:
        batches = _Ahead(batches)
    for parts in batches:
        try:
            decoded = decode(parts, wanted)
        except MessageMalformed:
            sound = (part for each in parts for part in without_damage(reader, each, pulling))
            decoded = (batch for part in sound for batch in decode([part], wanted))
        for batch in decoded:
            if batch.num_rows:
                yield batch


def _batches(
    reader: RecordReader, ranges: Sequence[Range], pulling: Pulling
) -> Iterator[list[Part]]:
    """Join what pulls give until it is worth decoding."""
    parts: list[Part] = []
    rows = size = 0
    for each in ranges:
        for part, count in _pulls(reader, each, pulling):
            parts.append(part)
            rows += count
            size += len(part.records)
            if rows >= pulling.rows or size >= JOINED_BYTES:
                yield parts
                parts, rows, size = [], 0, 0
    if parts:
        yield parts


def _pulls(reader: RecordReader, wanted: Range, pulling: Pulling) -> Iterator[tuple[Part, int]]:
    """Pull a range, and tell about how many rows each pull gave."""
    at, silent_since = wanted.start, None
    while at < wanted.end:
        count = min(pulling.messages, wanted.end - at)
        pulled = reader.pull(
            wanted.queue, at, max_messages=count, max_bytes=pulling.size, wanted=pulling.wanted
        )
        if pulled.status is PullStatus.FOUND and pulled.next_offset > at:
            part = Part(
                wanted.queue,
                pulled.records,
                at,
                wanted.end,
                pulled.offset_delta,
                pulled.next_offset,
            )
            yield part, pulled.next_offset - at
        elif pulled.status is not PullStatus.NO_MATCHED_MSG or pulled.next_offset <= at:
            # Nothing where there was something: gone, or not yet at the slave that was asked.
            now = time.monotonic()
            silent_since = now if silent_since is None else silent_since
            patience = pulling.reach.retry_timeout
            at = _gone(wanted, at, pulled, pulling, over=now - silent_since > patience)
            continue
        at, silent_since = pulled.next_offset, None


def _gone(wanted: Range, at: int, pulled: PulledRecords, pulling: Pulling, *, over: bool) -> int:
    """Give where to go on after a pull that found nothing; raises `DataLost`."""
    first, end = pulled.min_offset, pulled.max_offset
    if at < first:
        why, go_on = f"its first offset is {first} by now", min(first, wanted.end)
    elif at >= end and (over or pulled.status is PullStatus.OFFSET_ILLEGAL):
        why, go_on = f"its end is {end} by now, as if it had been made anew", wanted.end
    elif over:
        why, go_on = "its broker gives none of them", wanted.end
    else:
        time.sleep(_PAUSE)
        return at
    queue = wanted.queue
    lost = DataLost(queue.topic, queue.broker_name, queue.queue_id, (at, go_on), why)
    if pulling.fail_on_data_loss:
        raise lost
    logger.warning("%s", lost)
    return go_on


class _Ahead:
    """Runs an iterator in a thread, a little ahead of whoever takes what it gives."""

    def __init__(self, source: Iterable[list[Part]]) -> None:
        self._source = source
        self._given: queues.Queue[list[Part] | BaseException | None] = queues.Queue(_AHEAD)
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[list[Part]]:
        thread = threading.Thread(target=self._run, name="pocketmq-prefetch", daemon=True)
        thread.start()
        try:
            while (given := self._given.get()) is not None:
                if isinstance(given, BaseException):
                    raise given
                yield given
        finally:
            self._stopped.set()  # a task that needs no more rows leaves in the middle

    def _run(self) -> None:
        try:
            for parts in self._source:
                if not self._give(parts):
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._give(error)
        else:
            self._give(None)

    def _give(self, what: list[Part] | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._given.put(what, timeout=_TICK)
            except queues.Full:
                continue
            return True
        return False
