"""Rows of an Arrow batch, made ready to become messages: each column checked as a whole.

A row that cannot become a message is refused by its number, its column and the reason before
anything of its batch is sent. Owns what columns mean; how they are written is `packing`'s.
"""

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pocketmq.errors import InvalidInput, MQError, RowRefused
from pocketmq.model.message import MAX_BODY_SIZE, Message
from pocketmq.model.names import NOT_SENDABLE_TOPICS, check_topic
from pocketmq.protocol.property_text import LIMIT as PROPERTIES_LIMIT
from pocketmq.protocol.property_text import decode_properties
from pocketmq.spark.sink_columns import SinkColumns

RESERVE = 1024
"""Bytes of the properties that are kept for what each message gets of RocketMQ's own."""
_ROOM = PROPERTIES_LIMIT - RESERVE
_NOTHING = pa.scalar(b"", pa.binary())
_NAME_END, _VALUE_END = pa.scalar(b"\1", pa.binary()), pa.scalar(b"\2", pa.binary())


class _Bad(Exception):
    def __init__(self, at: int, column: str, reason: str) -> None:
        self.at, self.column, self.reason = at, column, reason
        super().__init__(reason)


class Rows(msgspec.Struct, frozen=True):
    """Rows that can be sent. Arrays are as long as there are rows; None is a column of nothing."""

    numbers: npt.NDArray[np.int64]
    """The rows' numbers in their partition."""
    topics: tuple[str, ...]
    topic_codes: npt.NDArray[np.int32] | None
    """Which of the topics; None if there is one."""
    body: pa.Array
    properties: pa.Array | None
    """Property text."""
    keys: pa.Array | None
    tags: pa.Array | None
    ordering: pa.Array | None
    delay: npt.NDArray[np.float64] | None
    """Seconds; 0 is none."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, order: npt.NDArray[np.int64]) -> "Rows":
        """Give some rows, in another order."""
        at = pa.array(order)

        def some(array: pa.Array | None) -> pa.Array | None:
            return None if array is None else array.take(at)

        return Rows(
            self.numbers[order],
            self.topics,
            None if self.topic_codes is None else self.topic_codes[order],
            self.body.take(at),
            some(self.properties),
            some(self.keys),
            some(self.tags),
            some(self.ordering),
            None if self.delay is None else self.delay[order],
        )

    def topic_of(self, at: int) -> str:
        """Give the topic of one row."""
        return self.topics[0 if self.topic_codes is None else int(self.topic_codes[at])]

    def message(self, at: int) -> Message:
        """Give one row as a message."""
        text = None if self.properties is None else self.properties[at].as_py()
        keys = None if self.keys is None else self.keys[at].as_py()
        tag = None if self.tags is None else self.tags[at].as_py()
        return Message(
            self.topic_of(at),
            self.body[at].as_py(),
            tag=None if tag is None else tag.decode(),
            keys=keys.decode().split(" ") if keys else (),
            properties=decode_properties(text) if text else {},
        )


def read_rows(
    batch: pa.RecordBatch,
    columns: SinkColumns,
    topic: str | None,
    first: int = 0,
    partition: int | None = None,
) -> Rows:
    """Read a batch whose first row has the number `first`; raises `RowRefused`."""
    try:
        return _read(batch, columns, topic, first)
    except _Bad as bad:
        raise RowRefused(first + bad.at, partition, bad.column, bad.reason) from None


def _read(batch: pa.RecordBatch, columns: SinkColumns, topic: str | None, first: int) -> Rows:
    def column(place: int) -> pa.Array | None:
        found = None if place < 0 else batch.column(place)
        return None if found is None or found.null_count == len(found) else found

    if topic is None:
        topics, codes = _topics(batch.column(columns.topic))
    else:
        topics, codes = (topic,), None
    body = _body(batch.column(columns.body))
    tags = _tags(column(columns.tags))
    keys = _keys(column(columns.keys))
    properties = _properties(column(columns.properties))
    _check_together({"properties": properties, "keys": keys, "tags": tags})
    return Rows(
        np.arange(first, first + batch.num_rows),
        topics,
        codes,
        body,
        properties,
        keys,
        tags,
        column(columns.ordering_key),
        _delay(column(columns.delay)),
    )


def _check_together(texts: dict[str, pa.Array | None]) -> None:
    """Hold the properties of each row to what the wire has room for."""
    sizes = {name: sizes_of(array) for name, array in texts.items() if array is not None}
    total = np.asarray(sum(sizes.values()))
    if sizes and (total > _ROOM).any():
        at = int((total > _ROOM).argmax())
        column = max(sizes, key=lambda name: int(np.asarray(sizes[name])[at]))
        reason = f"is too long: {_ROOM} bytes are allowed for properties, keys and tags together"
        raise _Bad(at, column, reason)


def sizes_of(
    array: pa.Array | None,
) -> npt.NDArray[np.int64] | int:
    """Give how many bytes each value has; those that are null have none."""
    if array is None:
        return 0
    sizes = pc.binary_length(array)
    if sizes.null_count:
        sizes = sizes.fill_null(0)
    return np.asarray(sizes, np.int64)


def join(*pieces: pa.Array | pa.Scalar, nulls: str = "emit_null") -> pa.Array:
    """Put pieces of binary text together, row by row."""
    return pc.binary_join_element_wise(*pieces, _NOTHING, null_handling=nulls)


def _refuse(bad: npt.NDArray[np.bool_], column: str, reason: str) -> None:
    if bad.any():
        raise _Bad(int(bad.argmax()), column, reason)


def _refuse_nulls(array: pa.Array, column: str, reason: str) -> None:
    if array.null_count:
        _refuse(array.is_null().to_numpy(zero_copy_only=False), column, reason)


def _topics(
    array: pa.Array,
) -> tuple[tuple[str, ...], npt.NDArray[np.int32] | None]:
    _refuse_nulls(array, "topic", "is null; every message needs a topic")
    coded = array.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    topics = tuple(coded.dictionary.to_pylist())
    for code, topic in enumerate(topics):
        try:
            check_topic(topic)
            if topic in NOT_SENDABLE_TOPICS:
                raise InvalidInput(f"names a topic of RocketMQ's own: {topic!r}")
        except MQError as error:
            raise _Bad(int((codes == code).argmax()), "topic", str(error)) from None
    return topics, codes if len(topics) > 1 else None


def _body(array: pa.Array) -> pa.Array:
    _refuse_nulls(array, "body", "is null; brokers take no message without a body")
    body = array.cast(pa.binary())
    sizes = sizes_of(body)
    assert isinstance(sizes, np.ndarray)
    _refuse(sizes == 0, "body", "is empty; brokers take no message without a body")
    _refuse(sizes > MAX_BODY_SIZE, "body", f"is larger than {MAX_BODY_SIZE} bytes")
    return body


def _tags(array: pa.Array | None) -> pa.Array | None:
    if array is None:
        return None
    tags = array.cast(pa.binary())
    empty = pc.equal(pc.binary_length(tags), 0)
    if pc.any(empty).as_py():
        tags = pc.if_else(empty, pa.scalar(None, pa.binary()), tags)
    _refuse_separator(tags, "tags")
    return tags


def _keys(array: pa.Array | None) -> pa.Array | None:
    """Give keys as text in which single blanks separate them."""
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
            reason = f"has a key {key!r}: keys are not null or empty, and hold no white space"
            raise _Bad(at, "keys", reason)
    return " ".join(keys).encode() if keys else None  # type: ignore[arg-type]


def _properties(array: pa.Array | None) -> pa.Array | None:
    """Give a map as property text; a value that is null is no property."""
    if array is None:
        return None
    if array.null_count:  # what a map that is null spans does not count
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
    """Hold names and values to the rules of `Message`; few names are ever seen, and each once."""

    def refuse(at: int, error: InvalidInput) -> None:
        row = int(np.searchsorted(offsets, at, side="right")) - 1
        raise _Bad(row, "properties", f"cannot be sent: {error}")

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


def _delay(
    array: pa.Array | None,
) -> npt.NDArray[np.float64] | None:
    if array is None:
        return None
    if pa.types.is_duration(array.type):
        micros = array.cast(pa.duration("us")).cast(pa.int64()).fill_null(0)
        delay = micros.to_numpy(zero_copy_only=False) / 1e6
    else:
        delay = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    bad = ~((delay >= 0) & (delay < 3.2e9))  # a hundred years; also what is no number
    _refuse(bad, "delay", "must be seconds from now on, and not negative")
    return delay if delay.any() else None


def _refuse_separator(array: pa.Array, column: str) -> None:
    if (_bytes_of(array)[0] == 2).any():
        bad = pc.match_substring(array, b"\2").fill_null(False).to_numpy(zero_copy_only=False)
        _refuse(bad, column, "holds the separator character \\x02")


def _has_below(array: pa.Array, limit: int, *, and_from: int) -> bool:
    data = _bytes_of(array)[0]
    return bool(((data < limit) | (data >= and_from)).any())


def _has_empty(array: pa.Array) -> bool:
    return bool(pc.any(pc.equal(pc.binary_length(array), 0)).as_py())


def _bytes_of(
    array: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Give the bytes of all values, one after another, and where each begins and ends."""
    _, bounds, data = array.buffers()
    ends = np.frombuffer(bounds, np.int32)[array.offset : array.offset + len(array) + 1]
    if data is None or not len(ends):
        return np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], ends - ends[0]
