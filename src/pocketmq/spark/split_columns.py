r"""The properties of many messages as columns: tags, keys, ids and the map of all others.

By the native core, which splits the texts (`SplitColumns`), or by arrays (`PropertyColumns`).
The rules are those of `protocol.property_text`: pieces without a name or a value are dropped,
of several values the last counts, `\x01` inside a value belongs to it. In arrays a property is
four numbers, the bounds of its name and of its value; rows are ranges of properties.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pocketmq import native
from pocketmq.model import property_names
from pocketmq.protocol.split_properties import SplitProperties, Texts, split_properties
from pocketmq.spark.gathering import chosen, numbers_at, pieces, valid_text
from pocketmq.spark.regular_properties import alike, regular

ELSEWHERE = (
    property_names.TAGS,
    property_names.KEYS,
    property_names.UNIQUE_KEY,
    property_names.WAIT,
    property_names.CLUSTER,
    property_names.MSG_REGION,
    property_names.TRACE_ON,
)
"""What the map leaves out: properties with a column of their own, and those about sending."""

_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)


class PropertyColumns:
    """The properties of a batch, located but not copied."""

    def __init__(self, texts: Any) -> None:
        """Take the property texts of all rows: a binary array without gaps or nulls."""
        rows = len(texts)
        _, offsets, data = texts.buffers()
        self._bounds = np.frombuffer(offsets, np.int32)[: rows + 1]
        self._data = data if data is not None else pa.py_buffer(b"")
        self._rows = rows
        raw = np.frombuffer(self._data, np.uint8)[: self._bounds[-1]]
        self._ascii = not len(raw) or int(raw.max()) < 0x80
        quick = alike(raw, self._bounds, self._data) if self._ascii else None
        if quick is None:
            marks = np.flatnonzero((raw - np.uint8(1)) <= 1).astype(np.int32)  # every \x01 and \x02
            quick = regular(raw, self._bounds, self._data, marks) if self._ascii else None
        self._regular = quick
        if quick is None:
            self._cut(raw, marks)
            self._codes = self._name_codes(raw)
            self._drop_repeated()

    def column(self, name: str) -> Any:
        """Return the values of one property, null where a message has none."""
        if self._regular is not None:
            return self._regular.column(name)
        hits = np.flatnonzero(self._named(name))
        which = np.full(self._rows, -1, np.int32)
        which[np.searchsorted(self._firsts, hits, "right") - 1] = np.arange(len(hits))
        return chosen(self._texts(self._value_at[hits], self._value_end[hits]), which)

    def others(self, kind: pa.DataType) -> Any:
        """Return the map of all properties that are not `ELSEWHERE`."""
        if self._regular is not None:
            return self._regular.others(kind, ELSEWHERE)
        kept = np.ones(len(self._codes), bool)
        for name in ELSEWHERE:
            kept &= ~self._named(name)
        counts = np.concatenate([[0], np.cumsum(kept)])
        firsts = counts[self._firsts].astype(np.int32)
        keys = self._texts(self._name_at[kept], self._name_end[kept])
        values = self._texts(self._value_at[kept], self._value_end[kept])
        return pa.MapArray.from_arrays(pa.array(firsts), keys, values).cast(kind)

    def _named(self, name: str) -> Any:
        """Return which properties have a name; beyond 16 bytes only head and tail are compared."""
        return (self._codes == _code(name)) & (self._name_end - self._name_at == len(name))

    def _cut(self, raw: Any, marks: Any) -> None:
        """Locate names and values."""
        bounds = self._bounds
        ends_name = raw[marks] == 1
        begins = np.empty(len(marks), bool)  # whether the mark is the first of its piece
        begins[:1] = True
        begins[1:] = ~ends_name[:-1]
        of_rows = np.searchsorted(marks, bounds[:-1])
        begins[of_rows[of_rows < len(marks)]] = True
        found = np.flatnonzero(ends_name & begins)
        name_end = marks[found]
        firsts = np.searchsorted(name_end, bounds)
        counts = np.diff(firsts)
        row_ends = np.repeat(bounds[1:], counts)
        row_starts = np.repeat(bounds[:-1], counts)
        before = np.where(found > 0, marks[found - 1] + 1, 0) if len(found) else marks[:0]
        name_at = np.maximum(before, row_starts)
        if len(found) == int(np.count_nonzero(ends_name)):
            closing = np.append(marks, bounds[-1])[found + 1]
        else:
            closers = np.append(marks[~ends_name], bounds[-1])
            closing = closers[np.searchsorted(closers[:-1], name_end)]
        value_end = np.minimum(closing, row_ends)
        whole = (name_end > name_at) & (value_end > name_end + 1)
        self._keep(name_at, name_end, value_end, whole)

    def _keep(self, name_at: Any, name_end: Any, value_end: Any, kept: Any) -> None:
        if not kept.all():
            name_at, name_end, value_end = name_at[kept], name_end[kept], value_end[kept]
        self._name_at = name_at
        self._name_end = name_end
        self._value_at = name_end + 1
        self._value_end = value_end
        self._firsts = np.searchsorted(name_end, self._bounds)

    def _name_codes(self, raw: Any) -> Any:
        """Return a hash of each name."""
        sizes = (self._name_end - self._name_at).astype(np.uint64)
        padded = raw if len(raw) >= 8 else np.concatenate([raw, np.zeros(8, np.uint8)])
        last = len(padded) - 8
        heads = numbers_at(padded, "<u8", np.minimum(self._name_at, last))
        late = np.flatnonzero(self._name_at > last)
        for each in late:  # in the last bytes, where no eight can be read
            heads[each] = int.from_bytes(padded[self._name_at[each] :].tobytes(), "little")
        heads &= _MASKS[np.minimum(sizes, np.uint64(8))]
        codes = heads * _MIX + sizes
        long = np.flatnonzero(sizes > 8)
        if len(long):
            tails = numbers_at(padded, "<u8", self._name_end[long] - 8)
            codes[long] ^= tails * _MIX
        return codes

    def _drop_repeated(self) -> None:
        """Of several values of one name in a row, keep the last."""
        codes, firsts = self._codes, self._firsts
        counts = np.diff(firsts)
        most = int(counts.max()) if len(counts) else 0
        if most < 2:
            return
        if int(counts.min()) == most:  # as nearly always: all messages have the same names
            first = codes[:most]
            if len(set(first.tolist())) == most and (codes.reshape(-1, most) == first).all():
                return
        row = np.repeat(np.arange(self._rows), counts)
        order = np.lexsort((codes, row))
        same = (codes[order][1:] == codes[order][:-1]) & (row[order][1:] == row[order][:-1])
        if not same.any():
            return
        kept = np.ones(len(codes), bool)
        texts = [bytes(t) for t in self._binary(self._name_at, self._name_end).to_pylist()]
        for each in np.unique(row[order][1:][same]):
            last: dict[bytes, int] = {}
            for at in range(firsts[each], firsts[each + 1]):
                if texts[at] in last:
                    kept[last[texts[at]]] = False
                last[texts[at]] = at
        self._codes = codes[kept]
        self._keep(self._name_at, self._name_end, self._value_end, kept)

    def _texts(self, starts: Any, ends: Any) -> Any:
        found = self._binary(starts, ends).view(pa.string())
        return found if self._ascii else valid_text(found)

    def _binary(self, starts: Any, ends: Any) -> Any:
        return pieces(self._data, starts, ends, pa.binary())


def _code(name: str) -> np.uint64:
    raw = name.encode()
    head = int.from_bytes(raw[:8], "little")
    code = (head * int(_MIX) + len(raw)) & 0xFFFF_FFFF_FFFF_FFFF
    if len(raw) > 8:
        tail = int.from_bytes(raw[-8:], "little")
        code ^= tail * int(_MIX) & 0xFFFF_FFFF_FFFF_FFFF
    return np.uint64(code)


class Asked(NamedTuple):
    """The properties that a query needs: some by name, and whether also all others."""

    names: tuple[str, ...]
    others: bool


class SplitColumns:
    """The properties that were asked for, with the methods of `PropertyColumns`."""

    def __init__(self, rows: int, asked: Asked, split: SplitProperties) -> None:
        self._rows = rows
        self._columns = dict(zip(asked.names, split.columns, strict=True))
        self._others = split.others

    def column(self, name: str) -> Any:
        """Return the values of one property, null where a message has none."""
        return _array(self._rows, self._columns[name])

    def others(self, kind: pa.DataType) -> Any:
        """Return the map of all others."""
        assert self._others is not None
        firsts, names, values = self._others
        firsts_of = pa.Array.from_buffers(pa.int32(), self._rows + 1, [None, pa.py_buffer(firsts)])
        count = len(names.offsets) // 4 - 1
        pairs = pa.MapArray.from_arrays(firsts_of, _array(count, names), _array(count, values))
        return pairs.cast(kind)


def split_columns(
    data: bytes, starts: Any, ends: Any, asked: Asked, without: tuple[str, ...]
) -> SplitColumns | None:
    """Return the properties of messages; None without the core, or if they are not all ASCII.

    `starts` and `ends` are the bounds of the property texts, `without` what the map leaves out.
    """
    if split_properties is native.pure["split_properties"]:
        return None  # arrays are faster
    split = split_properties(
        data,
        np.asarray(starts, np.int64).tobytes(),
        np.asarray(ends, np.int64).tobytes(),
        tuple([name.encode() for name in asked.names]),
        tuple([name.encode() for name in without]) if asked.others else None,
    )
    return None if split is None else SplitColumns(len(starts), asked, split)


def _array(count: int, texts: Texts) -> Any:
    offsets, text, present = map(pa.py_buffer, texts)
    return pa.Array.from_buffers(
        pa.string(), count, [present if len(present) else None, offsets, text]
    )
