"""Rows that name their queue: column `queueId`, and the broker that column `brokerName` names."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pocketmq.errors import RowRefused
from pocketmq.model import MessageQueue
from pocketmq.spark.attendance import named
from pocketmq.spark.rows import Rows


def pins(
    rows: Rows, here: npt.NDArray[np.int64], queues: Sequence[MessageQueue]
) -> npt.NDArray[np.int64]:
    """Return the queue that each of some rows names, counted from 1; 0 where it names none.

    `here` are the rows of one topic, `queues` its queues. Raises `RowRefused`.
    """
    assert rows.queue_ids is not None
    ids = rows.queue_ids.take(pa.array(here)).cast(pa.int64())
    unpinned = ids.is_null().to_numpy(zero_copy_only=False)
    numbers = np.asarray(ids.fill_null(0), np.int64)
    names: list[str | None] = [None]
    codes = np.zeros(len(here), np.int64)
    if rows.brokers is not None:
        coded = rows.brokers.take(pa.array(here)).dictionary_encode()
        names += coded.dictionary.to_pylist()
        codes = np.asarray(coded.indices.fill_null(-1), np.int64) + 1
    chosen = np.zeros(len(here), np.int64)
    pairs = np.unique(np.stack([numbers[~unpinned], codes[~unpinned]]), axis=1)
    for number, code in pairs.T.tolist():
        queue = pinned_queue(number, names[code], queues)
        place = -1 if queue is None else queues.index(queue) + 1
        chosen[(numbers == number) & (codes == code) & ~unpinned] = place
    if (chosen < 0).any():
        at = int((chosen < 0).argmax())
        there = named(queues) or "it has none"
        reason = f"is {numbers[at]}, which is not among the queues of its topic: {there}"
        raise RowRefused(int(rows.numbers[here[at]]), rows.partition, "queueId", reason)
    return chosen


def pinned_queue(
    number: int, broker: str | None, queues: Sequence[MessageQueue]
) -> MessageQueue | None:
    """Return the queue of this number on a broker; None if there is none.

    Without a broker, or with one that has no queue of the topic (rows may come from another
    cluster), the brokers share the numbers: the same number is always the same queue.
    """
    if any(queue.broker_name == broker for queue in queues):
        found = [each for each in queues if (each.broker_name, each.queue_id) == (broker, number)]
    else:
        found = sorted(
            (each for each in queues if each.queue_id == number), key=lambda each: each.broker_name
        )
    return found[number % len(found)] if found else None
