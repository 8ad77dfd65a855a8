"""Pieces of a buffer as Arrow and numpy arrays, without a Python object for each.

Depends only on bytes and positions.
"""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

_SIZES = {">i2": 2, ">u2": 2, ">i4": 4, ">i8": 8, "<u8": 8}


_HEAD = np.dtype(
    {
        "names": [
            "magic", "queue_offset", "flags", "born", "born_host", "stored", "reconsumed",
            "body_size",
        ],
        "formats": [">i4", ">i8", ">i4", ">i8", ">i8", ">i8", ">i4", ">i4"],
        "offsets": [4, 20, 36, 40, 48, 56, 72, 84],
        "itemsize": 88,
    }
)  # fmt: skip
"""The start of a stored record; the fields after the sender's host are as with IPv4 hosts."""


def heads_at(data: bytes, places: Ints) -> Any:
    """Read the heads of records: one 88-byte copy each, instead of one gather per field."""
    if not len(places):
        return np.empty(0, _HEAD)
    raw = np.ndarray((len(data) - 87,), "V88", data, strides=(1,))
    return raw[places].view(_HEAD)


def numbers_at(buffer: Any, kind: str, places: Ints) -> Any:
    """Read numbers of a kind, such as `>i4`, at any positions of a buffer."""
    count = memoryview(buffer).nbytes - _SIZES[kind] + 1
    return np.ndarray((count,), kind, buffer, strides=(1,))[places]


def pieces(buffer: pa.Buffer, starts: Any, ends: Any, kind: pa.DataType) -> Any:
    """Return the pieces of a buffer from `starts` to `ends`, which ascend, as one Arrow array.

    The buffer itself is read as an array whose every second value is a gap between two pieces;
    Arrow then takes the others, which costs one copy.
    """
    count = len(starts)
    if count == 0:
        return pa.array([], kind)
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = ends
    both = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(offsets), buffer])
    return both.take(pa.array(np.arange(0, 2 * count - 1, 2, dtype=np.int32)))


def repeated(value: str, count: int) -> Any:
    """Return an Arrow array that repeats one text."""
    raw = value.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(raw)
    if offsets[-1] > 0x7FFFFFFF:
        return pa.array([value] * count, pa.string())
    held = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), count, [None, held, pa.py_buffer(raw * count)])


def chosen(values: Any, which: Any) -> Any:
    """Return the values at these positions, null for -1."""
    return values.take(pa.array(which, mask=which < 0))


def valid_text(values: Any) -> Any:
    """Return texts with what is not UTF-8 replaced by U+FFFD."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = values.view(pa.binary()).to_pylist()
        texts = [None if each is None else each.decode("utf-8", "replace") for each in raw]
        return pa.array(texts, pa.string())
    return values
