"""Messages for the store's tests, and what a store holds of them."""

from pocketmq.protocol import RecordView
from pocketmq.protocol.batch import decode_batch
from pocketmq.protocol.inner_batch import INNER_BATCH
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import Record
from pocketmq.store import Appended, MessageStore, QueueIndex

NOW_MS = 1_700_000_000_000


def record(topic: str, body: bytes, *, queue_id: int = 0, text: bytes = b"TAGS\x01a\x02") -> Record:
    return Record(topic=topic.encode(), body=body, property_bytes=text, queue_id=queue_id)


def put(
    store: MessageStore,
    topic: str,
    *bodies: bytes,
    queue_id: int = 0,
    now_ms: int = NOW_MS,
    text: bytes = b"TAGS\x01a\x02",
) -> Appended:
    """Append and write messages."""
    queue = store.make_queue(topic, queue_id)
    records = [record(topic, body, queue_id=queue_id, text=text) for body in bodies]
    appended = store.append(queue, records, [tags_code(text)] * len(bodies), now_ms)
    store.write()
    return appended


def kept(store: MessageStore, queue: QueueIndex | None) -> dict[int, bytes]:
    """Read a whole queue: bodies by offset, as the records themselves name it."""
    found: dict[int, bytes] = {}
    if queue is None:
        return found
    offset = queue.min_offset
    while offset < queue.next_offset:
        read = store.read(queue, offset, 32, 1 << 20)
        for piece in read.pieces:
            view = RecordView(bytes(piece), 0)
            assert view.queue_offset not in found
            assert (view.topic_bytes.decode(), view.queue_id) == (queue.topic, queue.queue_id)
            if not view.sys_flag & INNER_BATCH:
                found[view.queue_offset] = view.stored_body
                continue
            assert read.has_batches
            for number, entry in enumerate(decode_batch(view.stored_body), view.queue_offset):
                found[number] = entry.body
        assert read.next_offset > offset
        offset = read.next_offset
    return found


def bodies(store: MessageStore, topic: str, queue_id: int = 0) -> list[bytes]:
    """Return the bodies of a queue that has lost nothing."""
    queue = store.queue(topic, queue_id)
    found = kept(store, queue)
    if queue is not None:
        assert list(found) == list(range(queue.min_offset, queue.next_offset))
    return list(found.values())
