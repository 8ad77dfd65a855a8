"""Inner batches of a queue that is popped: each message comes as a record of its own.

Java's broker answers a pop with the whole batch as one message, whose body POP clients do not
unwrap. Here a message of a batch is popped, hidden, acknowledged and redelivered like any other.
"""

import logging

from pocketmq.errors import MessageMalformed
from pocketmq.protocol import RecordView
from pocketmq.protocol.inner_batch import INNER_BATCH, WRAPPED, batch_size, entries_from
from pocketmq.protocol.records import Record, encode_record
from pocketmq.store import QueueRead

logger = logging.getLogger("pocketmq.broker")


def single_messages(read: QueueRead, offset: int, most: int, most_bytes: int) -> QueueRead:
    """Return a read from an offset on with the messages of inner batches, instead of these.

    At most `most` and about `most_bytes`; where it stopped is where the next one begins.
    """
    if not read.has_batches:
        return read
    found = QueueRead(read.status, read.next_offset, read.min_offset, read.max_offset)
    for piece in read.pieces:
        view = RecordView(piece, 0)
        following = view.queue_offset + max(batch_size(view), 1)
        for record in _records(view, offset, most - found.count):
            if found.pieces and found.size + len(record) > most_bytes:
                return found
            found.pieces.append(record)
            found.size += len(record)
            found.count += 1
            found.next_offset = RecordView(record, 0).queue_offset + 1
        if found.next_offset < following and found.count >= most:
            return found
    found.next_offset = read.next_offset
    return found


def _records(view: RecordView, offset: int, most: int) -> list[memoryview]:
    """Return up to `most` messages of a record from an offset on."""
    if not view.sys_flag & INNER_BATCH:
        return [memoryview(view.buffer)] if most > 0 else []
    first = view.queue_offset
    start = max(offset, first)
    try:
        entries = entries_from(view.stored_body, start - first, most)
    except MessageMalformed as error:
        logger.error(  # noqa: TRY400 - what was stored, not a fault of the code
            "inner batch skipped: topic=%s queue=%d queue_offset=%d: %s",
            view.topic_bytes.decode("utf-8", "replace"), view.queue_id, first, error,
        )  # fmt: skip
        return []
    return [
        memoryview(
            encode_record(
                Record(
                    topic=view.topic_bytes,
                    body=entry.body,
                    property_bytes=entry.property_bytes,
                    queue_id=view.queue_id,
                    flag=entry.flag,
                    sys_flag=view.sys_flag & ~WRAPPED,
                    born_timestamp_ms=view.born_timestamp_ms,
                    born_host=view.born_host_bytes,
                    reconsume_times=view.reconsume_times,
                    queue_offset=number,
                    commit_log_offset=view.commit_log_offset,
                    store_timestamp_ms=view.store_timestamp_ms,
                    store_host=view.store_host_bytes,
                )
            )
        )
        for number, entry in enumerate(entries, start)
    ]
