"""The columns of the sink, each read and checked as a whole Arrow array.

A value that cannot be sent raises `BadColumn` with the number of its row. Independent of how
messages are written.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import Message
from pocketmq.model.message import MAX_BODY_SIZE, MOST_URGENT
from pocketmq.model.names import NOT_SENDABLE_TOPICS, check_topic

LONGEST_DELAY = 3.2e9
"""Seconds: a hundred years."""

_NOTHING = pa.scalar(b"", pa.binary())
_NAME_END, _VALUE_END = pa.scalar(b"\1", pa.binary()), pa.scalar(b"\2", pa.binary())


class BadColumn(Exception):
    """The row at `at` cannot be sent, because of one column."""

    def __init__(self, at: int, column: str, reason: str) -> None:
        self.at, self.column, self.reason = at, column, reason
        super().__init__(reason)


def sizes_of(array: pa.Array | None) -> npt.NDArray[np.int64] | int:
    """Return the size of each value in bytes; 0 for null."""
    if array is None:
        return 0
    sizes = pc.binary_length(array)
    if sizes.null_count:
        sizes = sizes.fill_null(0)
    return np.asarray(sizes, np.int64)


def join(*pieces: pa.Array | pa.Scalar, nulls: str = "emit_null") -> pa.Array:
    """Concatenate binary pieces, row by row."""
    return pc.binary_join_element_wise(*pieces, _NOTHING, null_handling=nulls)


def _refuse(bad: npt.NDArray[np.bool_], column: str, reason: str) -> None:
    if bad.any():
        raise BadColumn(int(bad.argmax()), column, reason)


def _refuse_nulls(array: pa.Array, column: str, reason: str) -> None:
    if array.null_count:
        _refuse(array.is_null().to_numpy(zero_copy_only=False), column, reason)


def read_topics(array: pa.Array) -> tuple[tuple[str, ...], npt.NDArray[np.int32] | None]:
    """Return the distinct topics, and the number of each row's; None if there is only one."""
    _refuse_nulls(array, "topic", "is null; every message needs a topic")
    coded = array.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    topics = tuple(coded.dictionary.to_pylist())
    for code, topic in enumerate(topics):
        try:
            check_topic(topic)
            if topic in NOT_SENDABLE_TOPICS:
                raise InvalidInput(f"is a system topic of RocketMQ: {topic!r}")
        except MQError as error:
            raise BadColumn(int((codes == code).argmax()), "topic", str(error)) from None
    return topics, codes if len(topics) > 1 else None


def read_body(array: pa.Array) -> pa.Array:
    """Return bodies as bytes."""
    _refuse_nulls(array, "body", "is null; brokers refuse a message without a body")
    body = array.cast(pa.binary())
    sizes = sizes_of(body)
    assert isinstance(sizes, np.ndarray)
    _refuse(sizes == 0, "body", "is empty; brokers refuse a message without a body")
    _refuse(sizes > MAX_BODY_SIZE, "body", f"is larger than {MAX_BODY_SIZE} bytes")
    return body


def read_tags(array: pa.Array | None) -> pa.Array | None:
    """Return tags as bytes, null where there is none."""
    if array is None:
        return None
    tags = array.cast(pa.binary())
    empty = pc.equal(pc.binary_length(tags), 0)
    if pc.any(empty).as_py():
        tags = pc.if_else(empty, pa.scalar(None, pa.binary()), tags)
    _refuse_separator(tags, "tags")
    return tags


def read_keys(array: pa.Array | None) -> pa.Array | None:
    """Return keys as text, separated by single spaces."""
    if array is None:
        return None
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        texts = [_joined_keys(at, keys) for at, keys in enumerate(array.to_pylist())]
        keys = pa.array(texts, pa.binary())
    else:
        keys = array.cast(pa.binary())
        if _has_below(keys, 0x21, and_from=0x80) or _has_empty(keys):
            texts = [
                " ".join(text.decode().split()).encode() or None if text is not None else None
                for text in keys.to_pylist()
            ]
            keys = pa.array(texts, pa.binary())
    _refuse_separator(keys, "keys")
    return None if keys.null_count == len(keys) else keys


def _joined_keys(at: int, keys: list[str | None] | None) -> bytes | None:
    for key in keys or ():
        if not key or key.split() != [key]:
            reason = (
                f"has the key {key!r}; a key must not be null or empty, nor contain white space"
            )
            raise BadColumn(at, "keys", reason)
    return " ".join(keys).encode() if keys else None  # type: ignore[arg-type]


def read_properties(array: pa.Array | None) -> pa.Array | None:
    """Return a map as property text; null values are left out."""
    if array is None:
        return None
    if array.null_count:  # a null map may still span entries
        array = pa.array(array.to_pylist(), array.type)
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    span = slice(int(offsets[0]), int(offsets[-1]))
    names = array.keys[span].cast(pa.binary())
    values = array.items[span].cast(pa.binary())
    offsets -= offsets[0]
    if values.null_count:
        kept = values.is_valid()
        before = np.concatenate(([0], np.cumsum(kept.to_numpy(zero_copy_only=False))))
        offsets = before[offsets]
        names, values = names.filter(kept), values.filter(kept)
    if not len(values):
        return None
    _check_properties(names, values, offsets)
    pairs = join(names, _NAME_END, values, _VALUE_END)
    ends = np.frombuffer(pairs.buffers()[1], np.int32)[: len(pairs) + 1]
    return pa.Array.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer(ends[offsets]), pairs.buffers()[2]]
    )


def _check_properties(
    names: pa.Array,
    values: pa.Array,
    offsets: npt.NDArray[np.int64],
) -> None:
    """Apply the rules of `Message` to names and values; each distinct name is checked once."""

    def refuse(at: int, error: InvalidInput) -> None:
        row = int(np.searchsorted(offsets, at, side="right")) - 1
        raise BadColumn(row, "properties", f"cannot be sent: {error}")

    coded = names.dictionary_encode()
    for code, name in enumerate(coded.dictionary.to_pylist()):
        try:
            Message("t", b"-", properties={name.decode(): "-"})
        except InvalidInput as error:
            refuse(int((coded.indices.to_numpy(zero_copy_only=False) == code).argmax()), error)
    data, bounds = _bytes_of(values)
    first = data[np.minimum(bounds[:-1], max(len(data) - 1, 0))] if len(data) else data
    odd = (np.diff(bounds) == 0) | ((first <= 0x20) | (first >= 0x80) if len(data) else True)
    if (data == 2).any():
        odd = odd | pc.match_substring(values, b"\2").to_numpy(zero_copy_only=False)
    for at in np.flatnonzero(odd).tolist():
        try:
            Message("t", b"-", properties={names[at].as_py().decode(): values[at].as_py().decode()})
        except InvalidInput as error:
            refuse(at, error)


def read_delay(array: pa.Array | None) -> npt.NDArray[np.float64] | None:
    """Return delays in seconds, 0 where there is none; None if no row has one."""
    if array is None:
        return None
    if pa.types.is_duration(array.type):
        micros = array.cast(pa.duration("us")).cast(pa.int64()).fill_null(0)
        delay = micros.to_numpy(zero_copy_only=False) / 1e6
    else:
        delay = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    bad = ~((delay >= 0) & (delay < LONGEST_DELAY))  # also refuses NaN
    _refuse(bad, "delay", f"must be from 0 to {LONGEST_DELAY:.0f} seconds")
    return delay if delay.any() else None


def read_priority(array: pa.Array | None) -> npt.NDArray[np.int64] | None:
    """Return priorities, -1 where there is none; None if no row has one."""
    if array is None:
        return None
    priority = array.cast(pa.int64())
    found = np.asarray(priority.fill_null(0), np.int64)
    wrong = (found < 0) | (found > MOST_URGENT)
    _refuse(wrong, "priority", f"must be from 0 to {MOST_URGENT}")
    return np.asarray(priority.fill_null(-1), np.int64)


def _refuse_separator(array: pa.Array, column: str) -> None:
    if (_bytes_of(array)[0] == 2).any():
        bad = pc.match_substring(array, b"\2").fill_null(False).to_numpy(zero_copy_only=False)
        _refuse(bad, column, "contains the separator character \\x02")


def _has_below(array: pa.Array, limit: int, *, and_from: int) -> bool:
    data = _bytes_of(array)[0]
    return bool(((data < limit) | (data >= and_from)).any())


def _has_empty(array: pa.Array) -> bool:
    return bool(pc.any(pc.equal(pc.binary_length(array), 0)).as_py())


def _bytes_of(
    array: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Return the bytes of all values, concatenated, and the bounds of each value."""
    _, bounds, data = array.buffers()
    ends = np.frombuffer(bounds, np.int32)[array.offset : array.offset + len(array) + 1]
    if data is None or not len(ends):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], ends - ends[0]
