"""Rows of an Arrow batch, checked and ready to become messages.

A row that cannot be sent is refused by its number, its column and the reason, before anything of
its batch is sent. `checked_columns` reads the columns, `packing` writes the messages.
"""

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pocketmq.errors import RowRefused
from pocketmq.model.message import CopiedMessage, Message
from pocketmq.protocol.property_text import LIMIT as PROPERTIES_LIMIT
from pocketmq.protocol.property_text import decode_properties
from pocketmq.spark import checked_columns
from pocketmq.spark.sink_options import SinkColumns

RESERVE = 1024
"""Bytes of the properties that are reserved for those that RocketMQ adds to a message."""
_ROOM = PROPERTIES_LIMIT - RESERVE


class Rows(msgspec.Struct, frozen=True):
    """Rows that can be sent. Each array has one entry per row; None is an empty column."""

    numbers: npt.NDArray[np.int64]
    """The rows' numbers in their partition."""
    topics: tuple[str, ...]
    topic_codes: npt.NDArray[np.int32] | None
    """The number of each row's topic; None if there is only one."""
    body: pa.Array
    properties: pa.Array | None
    """Property text."""
    keys: pa.Array | None
    tags: pa.Array | None
    ordering: pa.Array | None
    delay: npt.NDArray[np.float64] | None
    """Delays in seconds; 0 is none."""
    queue_ids: pa.Array | None = None
    """The number of the queue that a row is pinned to; null is any."""
    brokers: pa.Array | None = None
    """The broker of that queue; counts only for pinned rows."""
    partition: int | None = None
    """The task, for errors."""
    priority: npt.NDArray[np.int64] | None = None
    """Priorities; -1 is none."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, order: npt.NDArray[np.int64]) -> "Rows":
        """Return rows in another order."""
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
            some(self.queue_ids),
            some(self.brokers),
            self.partition,
            None if self.priority is None else self.priority[order],
        )

    def topic_of(self, at: int) -> str:
        """Return the topic of one row."""
        return self.topics[0 if self.topic_codes is None else int(self.topic_codes[at])]

    def message(self, at: int) -> Message:
        """Return one row as a message."""
        text = None if self.properties is None else self.properties[at].as_py()
        keys = None if self.keys is None else self.keys[at].as_py()
        tag = None if self.tags is None else self.tags[at].as_py()
        priority = -1 if self.priority is None else int(self.priority[at])
        return CopiedMessage(
            self.topic_of(at),
            self.body[at].as_py(),
            tag=None if tag is None else tag.decode(),
            keys=keys.decode().split(" ") if keys else (),
            properties=decode_properties(text) if text else {},
            priority=priority if priority >= 0 else None,
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
        return _read(batch, columns, topic, first, partition)
    except checked_columns.BadColumn as bad:
        raise RowRefused(first + bad.at, partition, bad.column, bad.reason) from None


def _read(
    batch: pa.RecordBatch,
    columns: SinkColumns,
    topic: str | None,
    first: int,
    partition: int | None,
) -> Rows:
    def column(place: int) -> pa.Array | None:
        found = None if place < 0 else batch.column(place)
        return None if found is None or found.null_count == len(found) else found

    if topic is None:
        topics, codes = checked_columns.read_topics(batch.column(columns.topic))
    else:
        topics, codes = (topic,), None
    body = checked_columns.read_body(batch.column(columns.body))
    tags = checked_columns.read_tags(column(columns.tags))
    keys = checked_columns.read_keys(column(columns.keys))
    properties = checked_columns.read_properties(column(columns.properties))
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
        checked_columns.read_delay(column(columns.delay)),
        column(columns.queue_id),
        column(columns.broker_name),
        partition,
        checked_columns.read_priority(column(columns.priority)),
    )


def _check_together(texts: dict[str, pa.Array | None]) -> None:
    """Check that the properties of each row fit into the wire format."""
    sizes = {
        name: checked_columns.sizes_of(array) for name, array in texts.items() if array is not None
    }
    total = np.asarray(sum(sizes.values()))
    if sizes and (total > _ROOM).any():
        at = int((total > _ROOM).argmax())
        column = max(sizes, key=lambda name: int(np.asarray(sizes[name])[at]))
        reason = f"is too long: properties, keys and tags together may have {_ROOM} bytes"
        raise checked_columns.BadColumn(at, column, reason)
