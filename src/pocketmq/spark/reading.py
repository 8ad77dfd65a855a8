"""How a task reads its ranges: pulls are joined until decoding pays, and prefetched by a thread.

Runs in Spark's worker processes. Rows outside of the ranges are dropped. Damaged records are rare:
only a batch that fails to decode is read again record by record (`without_damage`), and either an
error names the damaged record, or the query continues without it.
"""

import queue as queues
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from pocketmq import errors
from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.record_reader import PulledRecords, RecordReader, Suspicion
from pocketmq.model import OnDamage
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.spark.connections import reader_of, settle
from pocketmq.spark.layout import QueueRecords
from pocketmq.spark.planning import Range, data_lost, fail_or_warn
from pocketmq.spark.records import RowSelection, decode
from pocketmq.spark.source_options import PullOptions

JOINED_BYTES = 8 * 1024 * 1024
"""Bytes of records decoded together, plus at most one pull."""
_AHEAD = 2
"""Batches prefetched beside the one that is decoded: bounds the memory of a task."""
_FEW = 2_000
"""Messages below which a thread costs more than it saves."""
_PAUSE = 0.05
_TICK = 0.5


def read_ranges(
    ranges: Sequence[Range], wanted: RowSelection, pulling: PullOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some ranges, in their order. Raises `DataLost` and `MQError`."""
    settle()
    reader = reader_of(pulling.reach, pulling.group)
    batches: Iterable[list[QueueRecords]] = _batches(reader, ranges, pulling)
    if sum(each.size for each in ranges) > _FEW:
        batches = _Ahead(batches)
    for parts in batches:
        try:
            decoded = decode(parts, wanted)
        except errors.MessageMalformed:
            sound = (part for each in parts for part in without_damage(reader, each, pulling))
            decoded = (batch for part in sound for batch in decode([part], wanted))
        for batch in decoded:
            if batch.num_rows:
                yield batch


def _batches(
    reader: RecordReader, ranges: Sequence[Range], pulling: PullOptions
) -> Iterator[list[QueueRecords]]:
    """Yield the results of pulls, joined until they are worth decoding."""
    parts: list[QueueRecords] = []
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


def _pulls(
    reader: RecordReader, wanted: Range, pulling: PullOptions
) -> Iterator[tuple[QueueRecords, int]]:
    """Pull a range; yield records and the approximate number of rows of each pull."""
    at, silent_since = wanted.start, None
    while at < wanted.end:
        count = min(pulling.messages, wanted.end - at)
        try:
            pulled = reader.pull(
                wanted.queue, at, max_messages=count, max_bytes=pulling.size, wanted=pulling.wanted
            )
        except (errors.TransportError, errors.BrokerNotFound, errors.RouteNotFound) as error:
            why = f"its broker does not respond for {pulling.reach.retry_timeout:g} s ({error})"
            lost = data_lost(wanted.queue, (at, wanted.end), why)
            fail_or_warn(lost, fail=pulling.fail_on_data_loss)
            return
        if pulled.status is PullStatus.FOUND and pulled.next_offset > at:
            part = QueueRecords(
                wanted.queue,
                pulled.records,
                at,
                wanted.end,
                pulled.offset_delta,
                pulled.next_offset,
            )
            yield part, pulled.next_offset - at
        elif pulled.status is not PullStatus.NO_MATCHED_MSG or pulled.next_offset <= at:
            # Nothing where the plan saw messages: deleted, or not yet replicated to this slave.
            now = time.monotonic()
            silent_since = now if silent_since is None else silent_since
            patience = pulling.reach.retry_timeout
            at = _gone(wanted, at, pulled, pulling, over=now - silent_since > patience)
            continue
        at, silent_since = pulled.next_offset, None


def _gone(
    wanted: Range, at: int, pulled: PulledRecords, pulling: PullOptions, *, over: bool
) -> int:
    """Return the offset to continue at after a pull that found nothing; raises `DataLost`."""
    first, end = pulled.min_offset, pulled.max_offset
    if at < first:
        why, resume = f"its first offset is {first} now", min(first, wanted.end)
    elif at >= end and (over or pulled.status is PullStatus.OFFSET_ILLEGAL):
        why, resume = f"its end is {end} now, as if the topic had been recreated", wanted.end
    elif over:
        why, resume = "its broker returns none of them", wanted.end
    else:
        time.sleep(_PAUSE)
        return at
    lost = data_lost(wanted.queue, (at, resume), why)
    fail_or_warn(lost, fail=pulling.fail_on_data_loss)
    return resume


class _Ahead:
    """Runs an iterator in a thread, `_AHEAD` items ahead of its consumer.

    An error of the thread is raised where the consumer waits; a consumer that stops early (a LIMIT)
    sets `_stopped`, or the thread would wait for ever to hand over what is not taken.
    """

    def __init__(self, source: Iterable[list[QueueRecords]]) -> None:
        self._source = source
        self._given: queues.Queue[list[QueueRecords] | BaseException | None] = queues.Queue(_AHEAD)
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[list[QueueRecords]]:
        thread = threading.Thread(target=self._run, name="pocketmq-prefetch", daemon=True)
        thread.start()
        try:
            while (given := self._given.get()) is not None:
                if isinstance(given, BaseException):
                    raise given
                yield given
        finally:
            self._stopped.set()  # a task that needs no more rows stops early

    def _run(self) -> None:
        try:
            for parts in self._source:
                if not self._give(parts):
                    return
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer
            self._give(error)
        else:
            self._give(None)

    def _give(self, what: list[QueueRecords] | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._given.put(what, timeout=_TICK)
            except queues.Full:
                continue
            return True
        return False


def without_damage(
    reader: RecordReader, part: QueueRecords, pulling: PullOptions
) -> Iterator[QueueRecords]:
    """Yield the sound records of a part; those after a damaged one are pulled again.

    Raises `DataLost` at a damaged record, unless the query tolerates data loss.
    """
    suspicion = Suspicion()
    on_damage = OnDamage.STOP if pulling.fail_on_data_loss else OnDamage.SKIP
    at, records, behind = part.start, part.records, part.behind
    delta = part.offset_delta
    while True:
        try:
            decode_pulled(records, DeliveryContext())
        except errors.MessagesCutShort as error:
            if error.decoded:
                suspicion.clear()
                yield QueueRecords(part.queue, records[: error.position], at, part.end, delta)
                at = error.decoded[-1].queue_offset + delta + 1
            else:
                try:
                    at = suspicion.next_offset(part.queue, at, behind, error, on_damage)
                except errors.MessagesCutShort:
                    raise _lost(part, at, max(at + 1, behind), error) from error
        else:
            suspicion.clear()
            if records:
                yield QueueRecords(part.queue, records, at, part.end, delta)
            at = max(at + 1, behind)
        if at >= min(part.behind, part.end):
            return
        pulled = reader.pull(
            part.queue,
            at,
            max_messages=1 if suspicion.alone else min(part.behind, part.end) - at,
            max_bytes=pulling.size,
            wanted=pulling.wanted,
        )
        records, behind, delta = pulled.records, pulled.next_offset, pulled.offset_delta
        if pulled.status is PullStatus.OFFSET_ILLEGAL:  # deleted meanwhile
            at = behind


def _lost(
    part: QueueRecords, at: int, resume: int, error: errors.MessagesCutShort
) -> errors.DataLost:
    return data_lost(part.queue, (at, resume), f"the stored record is damaged ({error.reason})")
