r"""The fast path for properties: all messages of a batch have the same names in the same order.

That is nearly always so, since one program sends them. Then the separators form a table with a row
per message, the names are those of the first one, and only values are copied. `regular` verifies it
byte by byte; anything else takes the general path of `PropertyColumns`.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from pocketmq.spark.gathering import numbers_at, pieces


class RegularProperties:
    """Properties as a table: `value_at` and `value_end` have a column for each name."""

    def __init__(self, names: list[bytes], data: pa.Buffer, value_at: Any, value_end: Any) -> None:
        self.names = names
        self._data = data
        self.value_at = value_at
        self.value_end = value_end

    def column(self, name: str) -> Any:
        """Return the values of one property, null where a message has none."""
        if name.encode() not in self.names:
            return pa.nulls(len(self.value_at), pa.string())
        at = self.names.index(name.encode())
        return self._texts(self.value_at[:, at], self.value_end[:, at])

    def others(self, kind: pa.DataType, without: tuple[str, ...]) -> Any:
        """Return the map of all properties but some."""
        left_out = {name.encode() for name in without}
        kept = [at for at, name in enumerate(self.names) if name not in left_out]
        rows = len(self.value_at)
        firsts = np.arange(rows + 1, dtype=np.int32) * len(kept)
        keys = _repeated([self.names[at] for at in kept], rows)
        values = self._texts(self.value_at[:, kept].ravel(), self.value_end[:, kept].ravel())
        return pa.MapArray.from_arrays(pa.array(firsts), keys, values).cast(kind)

    def _texts(self, starts: Any, ends: Any) -> Any:
        return pieces(self._data, starts, ends, pa.string())


def alike(raw: Any, bounds: Any, data: pa.Buffer) -> RegularProperties | None:
    """Return the properties if the texts of all rows have the same size and shape, else None.

    Everything but the values is then at the same positions in all rows, so that a comparison with
    the first row verifies it. `raw` and `bounds` are those of `regular`.
    """
    rows = len(bounds) - 1
    if rows < 2 or (width := int(bounds[1] - bounds[0])) == 0:
        return None
    if int(bounds[0]) or (np.diff(bounds) != width).any():
        return None
    marks = np.flatnonzero(raw[:width] < 3).astype(np.int32)
    found = regular(raw, bounds[:2], data, marks)
    if found is None or np.count_nonzero(raw < 3) != rows * len(marks):
        return None  # there are separators elsewhere, or a zero
    (value_at,), (value_end,) = found.value_at, found.value_end
    fixed = np.full(width, 0xFF, np.uint8)
    for start, end in zip(value_at, value_end, strict=True):
        fixed[start:end] = 0
    # In one long row: numpy is slow with many short ones.
    differing = raw ^ np.tile(raw[:width], rows)
    differing &= np.tile(fixed, rows)
    if differing.any():
        return None
    shifts = np.arange(0, rows * width, width, dtype=np.int32)[:, None]
    return RegularProperties(found.names, data, shifts + value_at, shifts + value_end)


def regular(raw: Any, bounds: Any, data: pa.Buffer, marks: Any) -> RegularProperties | None:
    r"""Return the properties if they are regular, else None.

    `raw` are the texts of all rows, ASCII alone, `bounds` where rows begin and end in it, and
    `marks` where every \x01 and \x02 is.
    """
    rows = len(bounds) - 1
    if rows == 0 or not len(marks) or len(marks) % rows:
        return None
    table = marks.reshape(rows, -1)
    if (table[:, 0] < bounds[:-1]).any() or (table[:, -1] >= bounds[1:]).any():
        return None
    width = table.shape[1]
    pattern = np.arange(width, dtype=np.uint8) % 2 + 1  # a name's end, a value's end, and so on
    if (raw[marks].reshape(rows, width) != pattern).any():
        return None
    name_end = table[:, 0::2]
    name_at = np.empty_like(name_end)
    name_at[:, 0] = bounds[:-1]
    name_at[:, 1:] = table[:, 1 : 2 * name_end.shape[1] - 1 : 2] + 1
    value_end = table[:, 1::2]
    if width % 2:  # the last value has no separator after it
        value_end = np.concatenate([value_end, bounds[1:, None]], axis=1)
    elif (table[:, -1] + 1 != bounds[1:]).any():
        return None
    value_at = name_end + 1
    if (value_end <= value_at).any():
        return None
    names = [_same_name(raw, name_at[:, at], name_end[:, at]) for at in range(name_at.shape[1])]
    found = [name for name in names if name]
    if len(found) < len(names) or len(set(found)) < len(found):
        return None
    return RegularProperties(found, data, value_at, value_end)


def _same_name(raw: Any, starts: Any, ends: Any) -> bytes | None:
    """Return the name that all rows have, or None; compares eight bytes at a time."""
    first: bytes = raw[starts[0] : ends[0]].tobytes()
    size = len(first)
    if not size or (ends - starts != size).any():
        return None
    last = len(raw) - 8
    if last < 0 or starts[-1] > last:
        return None  # at the very end of the buffer, where no eight bytes can be read
    for at in range(0, size, 8):
        begin = max(0, min(at, size - 8))
        words = numbers_at(raw, "<u8", starts + begin)
        wanted = int.from_bytes(first[begin : begin + 8], "little")
        if size < 8:
            words &= np.uint64((1 << 8 * size) - 1)
        if (words != np.uint64(wanted)).any():
            return None
    return first


def _repeated(names: list[bytes], times: int) -> Any:
    """Return an array that repeats some names."""
    sizes = np.array([len(name) for name in names], np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.tile(sizes, times))])
    held = pa.py_buffer(offsets.astype(np.int32))
    text = pa.py_buffer(b"".join(names) * times)
    return pa.Array.from_buffers(pa.string(), len(names) * times, [None, held, text])
