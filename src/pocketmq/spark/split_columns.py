"""The properties of many messages, split by the native core: columns from its offsets and texts."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pocketmq import native
from pocketmq.protocol.split_properties import SplitProperties, Texts, split_properties


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
