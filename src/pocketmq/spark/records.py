"""Stored records to rows: decoded in bulk into Arrow columns, without a Python object each.

Only requested columns are made. Compressed bodies are inflated one by one, and a batch ends where
they become too many bytes; everything else, IPv6 hosts and long topics included, is done in bulk.
"""

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pocketmq.errors import BodyTooLarge, MessageMalformed, MQError
from pocketmq.model import SysFlag, property_names
from pocketmq.protocol.compression import INFLATE_LIMIT, decompress_body
from pocketmq.protocol.hosts import decode_host
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.spark.codecs import use_arrow_codecs
from pocketmq.spark.gathering import chosen, numbers_at, pieces, repeated, valid_text
from pocketmq.spark.layout import Layout, QueueRecords, unwrapped
from pocketmq.spark.split_columns import Asked

logger = logging.getLogger("pocketmq.spark")

use_arrow_codecs()

BATCH_BYTES = 32 * 1024 * 1024
"""Inflated bytes per batch, unless one body alone has more. Spark holds a few batches."""
_COMPRESSED = int(SysFlag.COMPRESSED)
_LONG = struct.Struct(">q")
_PROPERTIES = {
    "tags": property_names.TAGS,
    "keys": property_names.KEYS,
    "messageId": property_names.UNIQUE_KEY,
}
"""Columns that are one property."""
_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999


class RowSelection(msgspec.Struct, frozen=True):
    """The columns to make, in order, and the rows to keep."""

    columns: tuple[str, ...]
    schema: Any
    """Arrow's schema, of the same length."""
    tags: frozenset[str] = frozenset()
    """Rows with other tags are dropped; empty keeps all."""
    strict: bool = True
    """Whether a body that cannot be inflated raises; else it is null."""
    largest: int = INFLATE_LIMIT
    """The largest inflated size of one body, and of one inner batch."""


def decode(parts: Sequence[QueueRecords], wanted: RowSelection) -> Iterator[pa.RecordBatch]:
    """Return an iterator over the rows of some parts.

    Raises `MessageMalformed` at once if a record is damaged, before there are any rows. The
    iterator raises it for a body that cannot be inflated, and `CodecMissing`.
    """
    layout = Layout(parts, _asked(wanted))
    if layout.count and "body" in wanted.columns:
        layout.check_bodies()
    pieces_of_it = unwrapped(layout, wanted.largest)
    return (batch for piece in pieces_of_it for batch in _batches(piece, wanted))


def _asked(wanted: RowSelection) -> Asked:
    """Return the properties that the columns and the selection of rows need."""
    needed = {_PROPERTIES[name] for name in wanted.columns if name in _PROPERTIES}
    if wanted.tags:
        needed.add(property_names.TAGS)
    return Asked(tuple(sorted(needed)), others="properties" in wanted.columns)


def _batches(layout: Layout, wanted: RowSelection) -> Iterator[pa.RecordBatch]:
    kept = _kept(layout, wanted.tags)
    fields = dict(zip(wanted.columns, wanted.schema, strict=True))
    made = {
        name: _MAKERS[name](layout, field.type, wanted)
        for name, field in fields.items()
        if name != "body"
    }
    if "body" in fields:
        for start, bodies in _bodies(layout, wanted, kept):
            count = len(bodies)
            stop = start + count
            text = fields["body"].type == pa.string()
            body = valid_text(bodies.view(pa.string())) if text else bodies
            columns = [made[name].slice(start, count) if name in made else body for name in fields]
            batch = pa.RecordBatch.from_arrays(columns, schema=wanted.schema)
            del bodies, body, columns
            yield batch if kept is None else batch.filter(pa.array(kept[start:stop]))
        return
    if made:
        batch = pa.RecordBatch.from_arrays(list(made.values()), schema=wanted.schema)
    else:  # only the number of rows is wanted
        nothing = pa.nulls(layout.count)
        batch = pa.RecordBatch.from_arrays([nothing], ["nothing"]).select([])
    yield batch if kept is None else batch.filter(pa.array(kept))


def _kept(layout: Layout, tags: frozenset[str]) -> Any:
    """Return which rows are wanted; None for all."""
    offsets = layout.offsets
    first = layout.each([part.start for part in layout.parts])
    end = layout.each([part.end for part in layout.parts])
    kept = (offsets >= first) & (offsets < end)
    if tags:
        held = pc.is_in(
            layout.properties.column(property_names.TAGS), pa.array(sorted(tags), pa.string())
        )
        kept = kept & held.to_numpy(zero_copy_only=False)
    return None if kept.all() else kept


def _topic(layout: Layout, *_: Any) -> Any:
    return _of_queues(layout, [part.queue.topic for part in layout.parts])


def _broker_name(layout: Layout, *_: Any) -> Any:
    return _of_queues(layout, [part.queue.broker_name for part in layout.parts])


def _of_queues(layout: Layout, texts: list[str]) -> Any:
    if len(set(texts)) == 1:
        return repeated(texts[0], layout.count)
    which = np.repeat(np.arange(len(texts), dtype=np.int32), layout.counts)
    return pa.array(texts, pa.string()).take(pa.array(which))


def _queue_id(layout: Layout, *_: Any) -> Any:
    ids = np.array([part.queue.queue_id for part in layout.parts], np.int32)
    return pa.array(np.repeat(ids, layout.counts))


def _queue_offset(layout: Layout, *_: Any) -> Any:
    return pa.array(layout.offsets)


def _bodies(layout: Layout, wanted: RowSelection, kept: Any) -> Iterator[tuple[int, Any]]:
    """Yield the bodies of consecutive rows, with the first row: as many as fit into a batch."""
    packed = (layout.flags & _COMPRESSED) != 0
    if kept is not None:
        packed &= kept
    start = size = 0
    inflated: dict[int, bytes | None] = {}
    for row in np.flatnonzero(packed).tolist():
        body = _inflated(layout, row, wanted)
        grown = 0 if body is None else len(body)
        if size and size + grown > BATCH_BYTES:
            yield start, _joined(layout, start, row, inflated)
            start, size = row, 0
        inflated[row] = body
        size += grown
        del body
    yield start, _joined(layout, start, layout.count, inflated)


def _joined(layout: Layout, start: int, stop: int, inflated: dict[int, bytes | None]) -> Any:
    """Return the bodies of some rows as one array, and release the inflated ones."""
    rows = slice(start, stop)
    bodies = pieces(layout.buffer, layout.body_at[rows], layout.body_end[rows], pa.binary())
    if inflated:
        values = bodies.to_pylist()
        for row, body in inflated.items():
            values[row - start] = body
        inflated.clear()
        bodies = pa.array(values, pa.binary())
    return bodies


def _inflated(layout: Layout, row: int, wanted: RowSelection) -> bytes | None:
    body = layout.data[layout.body_at[row] : layout.body_end[row]]
    try:
        return decompress_body(body, int(layout.flags[row]), wanted.largest)
    except MessageMalformed as error:
        where = f"the body at offset {layout.offsets[row]} of {layout.queue_of(row)}"
        if not wanted.strict:
            logger.warning("%s cannot be read, its column is null: %s", where, error.reason)
            return None
        if isinstance(error, BodyTooLarge):
            raise error.at(f"{where} is over maxInflatedBytes") from error
        raise MessageMalformed(f"{where}: {error.reason}", int(layout.at[row])) from error


def _tags(layout: Layout, *_: Any) -> Any:
    return layout.properties.column(property_names.TAGS)


def _keys(layout: Layout, *_: Any) -> Any:
    return layout.properties.column(property_names.KEYS)


def _properties(layout: Layout, kind: pa.DataType, _: RowSelection) -> Any:
    return layout.properties.others(kind)


def _message_id(layout: Layout, *_: Any) -> Any:
    """Return the sender's message ids, or the offset id where there is none."""
    ids = layout.properties.column(property_names.UNIQUE_KEY)
    if not ids.null_count:
        return ids
    rows = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))
    return _replaced(ids, rows, pa.array([_offset_id(layout, int(r)) for r in rows], pa.string()))


def _offset_id(layout: Layout, row: int) -> str:
    start = int(layout.at[row])
    (place,) = _LONG.unpack_from(layout.data, start + 28)
    host_at = start + 56 + layout.born_host_size(row)
    return encode_offset_id(layout.data[host_at : int(layout.body_at[row]) - 16], place)


def _born_timestamp(layout: Layout, kind: pa.DataType, _: RowSelection) -> Any:
    return _moments(layout.head["born"], kind)


def _store_timestamp(layout: Layout, kind: pa.DataType, _: RowSelection) -> Any:
    if not layout.v6:
        return _moments(layout.head["stored"], kind)
    at = layout.at + 56 + 12 * (layout.flags >> 4 & 1)
    return _moments(numbers_at(layout.data, ">i8", at), kind)


def _moments(milliseconds: Any, kind: pa.DataType) -> Any:
    """Return times; null before the year 1 and after 9999, which no reader can show."""
    moments = milliseconds.astype(np.int64)
    strange = (moments < _YEAR_1) | (moments > _YEAR_9999)
    moments *= 1000
    if strange.any():
        return pa.array(moments, pa.int64(), mask=strange).cast(kind)
    return pa.Array.from_buffers(kind, len(moments), [None, pa.py_buffer(moments)])


def _born_host(layout: Layout, *_: Any) -> Any:
    """Return the senders' addresses; there are few distinct ones, so each is formatted once."""
    if layout.v6:
        starts = enumerate((layout.at + 48).tolist())
        raw = [layout.data[at : at + layout.born_host_size(row)] for row, at in starts]
        known = {each: _host(each) for each in set(raw)}
        return pa.array([known[each] for each in raw], pa.string())
    packed = layout.head["born_host"].astype(np.int64)
    if (packed == packed[0]).all():
        hosts, which = packed[:1], np.zeros(layout.count, np.int64)
    else:
        hosts, which = np.unique(packed, return_inverse=True)
    texts = [_host(_LONG.pack(int(each))) for each in hosts]
    if len(texts) == 1 and texts[0] is not None:
        return repeated(texts[0], layout.count)
    return chosen(pa.array(texts, pa.string()), which)


def _host(raw: bytes) -> str | None:
    try:
        return decode_host(raw)
    except MQError:  # an invalid port
        return None


def _reconsume_times(layout: Layout, *_: Any) -> Any:
    if not layout.v6:
        return pa.array(layout.head["reconsumed"].astype(np.int32))
    return pa.array(numbers_at(layout.data, ">i4", layout.body_at - 16).astype(np.int32))


def _replaced(values: Any, rows: Any, others: Any) -> Any:
    """Return an array with some of its rows replaced."""
    which = np.arange(len(values), dtype=np.int64)
    which[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([values, others]).take(pa.array(which))


_MAKERS: dict[str, Callable[[Layout, pa.DataType, RowSelection], Any]] = {
    "topic": _topic,
    "brokerName": _broker_name,
    "queueId": _queue_id,
    "queueOffset": _queue_offset,
    "tags": _tags,
    "keys": _keys,
    "properties": _properties,
    "messageId": _message_id,
    "bornTimestamp": _born_timestamp,
    "storeTimestamp": _store_timestamp,
    "bornHost": _born_host,
    "reconsumeTimes": _reconsume_times,
}
