"""Stored records to rows: many at once, into Arrow's columns, without a Python object for each.

Only the columns asked for are made. Compressed bodies are inflated one by one; everything else,
IPv6 hosts and long topics included, goes in bulk.
"""

import logging
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pocketmq.errors import MessageMalformed, MQError
from pocketmq.model import properties as names
from pocketmq.model.flags import SysFlag
from pocketmq.protocol.compression import decompress_body
from pocketmq.protocol.hosts import decode_host
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.spark.gathering import chosen, numbers_at, pieces, repeated, valid_text
from pocketmq.spark.layout import Layout, Part

logger = logging.getLogger("pocketmq.spark")

_COMPRESSED = int(SysFlag.COMPRESSED)
_LONG = struct.Struct(">q")
_YEAR_1, _YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999


class Wanted(msgspec.Struct, frozen=True):
    """The columns to make, in order, and the rows to keep."""

    columns: tuple[str, ...]
    schema: Any
    """Arrow's schema, of the same length."""
    tags: frozenset[str] = frozenset()
    """Rows with other tags are dropped; none: all are kept."""
    strict: bool = True
    """Whether a body that cannot be inflated is an error; else it is null."""


def decode(parts: Sequence[Part], wanted: Wanted) -> pa.RecordBatch:
    """Give the rows of some parts. Raises `MessageMalformed`, and `CodecMissing`."""
    layout = Layout(parts)
    fields = zip(wanted.columns, wanted.schema, strict=True)
    if layout.count == 0:
        return pa.RecordBatch.from_pylist([], schema=wanted.schema)
    if "body" in wanted.columns:
        layout.check_bodies()
    made = [_MAKERS[name](layout, field.type, wanted) for name, field in fields]
    if made:
        batch = pa.RecordBatch.from_arrays(made, schema=wanted.schema)
    else:  # a count alone is wanted
        nothing = pa.nulls(layout.count)
        batch = pa.RecordBatch.from_arrays([nothing], ["nothing"]).select([])
    kept = _kept(layout, wanted.tags)
    return batch if kept is None else batch.filter(pa.array(kept))


def _kept(layout: Layout, tags: frozenset[str]) -> Any:
    """Tell which rows are wanted; None for all."""
    offsets = layout.offsets
    first = layout.each([part.start for part in layout.parts])
    end = layout.each([part.end for part in layout.parts])
    kept = (offsets >= first) & (offsets < end)
    if tags:
        held = pc.is_in(layout.properties.column(names.TAGS), pa.array(sorted(tags), pa.string()))
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


def _body(layout: Layout, kind: pa.DataType, wanted: Wanted) -> Any:
    bodies = pieces(layout.buffer, layout.body_at, layout.body_end, pa.binary())
    packed = np.flatnonzero(layout.flags & _COMPRESSED)
    if len(packed):
        rows = [_inflated(layout, int(row), strict=wanted.strict) for row in packed]
        bodies = _replaced(bodies, packed, pa.array(rows, pa.binary()))
    return valid_text(bodies.view(pa.string())) if kind == pa.string() else bodies


def _inflated(layout: Layout, row: int, *, strict: bool) -> bytes | None:
    body = layout.data[layout.body_at[row] : layout.body_end[row]]
    try:
        return decompress_body(body, int(layout.flags[row]))
    except MessageMalformed as error:
        where = f"the body at offset {layout.offsets[row]} of {layout.queue_of(row)}"
        if strict:
            reason = f"{where}: {error.reason}"
            raise MessageMalformed(reason, int(layout.at[row])) from error
        logger.warning("%s is null: %s", where, error.reason)
        return None


def _tags(layout: Layout, *_: Any) -> Any:
    return layout.properties.column(names.TAGS)


def _keys(layout: Layout, *_: Any) -> Any:
    return layout.properties.column(names.KEYS)


def _properties(layout: Layout, kind: pa.DataType, _: Wanted) -> Any:
    return layout.properties.others(kind)


def _message_id(layout: Layout, *_: Any) -> Any:
    """Give the sender's id, else that of where the message is stored."""
    ids = layout.properties.column(names.UNIQUE_KEY)
    if not ids.null_count:
        return ids
    rows = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))
    return _replaced(ids, rows, pa.array([_offset_id(layout, int(r)) for r in rows], pa.string()))


def _offset_id(layout: Layout, row: int) -> str:
    start = int(layout.at[row])
    (place,) = _LONG.unpack_from(layout.data, start + 28)
    host_at = start + 56 + layout.born_host_size(row)
    return encode_offset_id(layout.data[host_at : int(layout.body_at[row]) - 16], place)


def _born_timestamp(layout: Layout, kind: pa.DataType, _: Wanted) -> Any:
    return _moments(layout.head["born"], kind)


def _store_timestamp(layout: Layout, kind: pa.DataType, _: Wanted) -> Any:
    if not layout.v6:
        return _moments(layout.head["stored"], kind)
    at = layout.at + 56 + 12 * (layout.flags >> 4 & 1)
    return _moments(numbers_at(layout.data, ">i8", at), kind)


def _moments(milliseconds: Any, kind: pa.DataType) -> Any:
    """Give times; one before the year 1 or after 9999, which no reader could show, is null."""
    moments = milliseconds.astype(np.int64)
    strange = (moments < _YEAR_1) | (moments > _YEAR_9999)
    moments *= 1000
    if strange.any():
        return pa.array(moments, pa.int64(), mask=strange).cast(kind)
    return pa.Array.from_buffers(kind, len(moments), [None, pa.py_buffer(moments)])


def _born_host(layout: Layout, *_: Any) -> Any:
    """Give the senders' addresses; there are few, so each is written once."""
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
    except MQError:  # a port that no socket has
        return None


def _reconsume_times(layout: Layout, *_: Any) -> Any:
    if not layout.v6:
        return pa.array(layout.head["reconsumed"].astype(np.int32))
    return pa.array(numbers_at(layout.data, ">i4", layout.body_at - 16).astype(np.int32))


def _replaced(values: Any, rows: Any, others: Any) -> Any:
    """Give an array with some of its rows replaced."""
    which = np.arange(len(values), dtype=np.int64)
    which[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([values, others]).take(pa.array(which))


_MAKERS: dict[str, Callable[[Layout, pa.DataType, Wanted], Any]] = {
    "topic": _topic,
    "brokerName": _broker_name,
    "queueId": _queue_id,
    "queueOffset": _queue_offset,
    "body": _body,
    "tags": _tags,
    "keys": _keys,
    "properties": _properties,
    "messageId": _message_id,
    "bornTimestamp": _born_timestamp,
    "storeTimestamp": _store_timestamp,
    "bornHost": _born_host,
    "reconsumeTimes": _reconsume_times,
}
