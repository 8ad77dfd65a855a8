"""Timed messages on a real store, with time as the test says."""

from pathlib import Path

from pocketmq.broker.timers.queue import KIND, DeliveredTimers, TimerQueue
from pocketmq.broker.timers.rules import TimerLimits, hold_back
from pocketmq.broker.timers.timers import timer_tag_rules
from pocketmq.broker.writing.drafts import Draft
from pocketmq.protocol import RecordView
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.disk import FileSystem

START_MS = 1_700_000_000_000
LIMITS = TimerLimits(True, 3 * 24 * 3_600_000, "broker-a")


def draft(key: str = "K", topic: str = "T", queue_id: int = 0, **properties: str) -> Draft:
    """A message that asks for a moment."""
    return Draft(
        topic=topic,
        queue_id=queue_id,
        body=b"hello",
        properties={"UNIQ_KEY": key} | properties,
        flag=0,
        sys_flag=0,
        born_timestamp_ms=START_MS,
        born_host=bytes(8),
    )


class Timed:
    """The timed messages of a broker that can be killed."""

    def __init__(
        self,
        path: Path | None,
        now_ms: int = START_MS,
        *,
        disk: FileSystem | None = None,
        segment_size: int = 1 << 20,
    ) -> None:
        options = StoreOptions(segment_size=segment_size)
        self.now_ms = now_ms
        self.store = MessageStore.open(path, options, tag_rules=timer_tag_rules(), disk=disk)
        self.timers = TimerQueue(self.store)
        self.timers.recover(dict(self.store.metadata.documents(KIND)).get(KIND))

    def send(self, key: str, due_ms: int, queue_id: int = 0) -> None:
        """Take in a message, as the broker does."""
        self.append(draft(key, queue_id=queue_id, TIMER_DELIVER_MS=str(due_ms)))

    def recall(self, key: str, due_ms: int) -> None:
        """Take a message back."""
        self.append(draft(key, TIMER_DELIVER_MS=str(due_ms), TIMER_DEL_UNIQKEY=f"T+{key}"))

    def append(self, message: Draft) -> None:
        hold_back(message, LIMITS, self.now_ms)
        record = Record(
            topic=message.topic.encode(),
            body=message.body,
            property_bytes=encode_properties(message.properties),
            queue_id=message.queue_id,
            born_timestamp_ms=message.born_timestamp_ms,
        )
        queue = self.store.make_queue(message.topic, message.queue_id)
        self.store.append(queue, [record], [message.tag or 0], self.now_ms)
        self.store.write()

    def deliver(self, messages: int = 1_000_000, size: int = 1 << 30) -> DeliveredTimers:
        self.store.write()
        self.timers.take_in()
        return self.timers.deliver(self.now_ms, messages, size)

    def save(self) -> None:
        """Save how far it is as the broker does: once the log is safe."""
        snapshot = self.timers.snapshot()
        self.store.request_sync(lambda error: None)
        self.store.metadata.save_documents(KIND, {KIND: snapshot()})

    def kill(self) -> None:
        """End without writing, saving or checkpointing anything, as `kill -9` does."""
        self.store._release()

    def records(self, queue_id: int = 0) -> list[RecordView]:
        queue = self.store.queue("T", queue_id)
        if queue is None:
            return []
        read = self.store.read(queue, queue.min_offset, 1_000_000, 1 << 30)
        return [RecordView(bytes(piece), 0) for piece in read.pieces]

    def keys(self, queue_id: int = 0) -> list[str]:
        """The unique keys in a queue, in order."""
        return [properties_of(record)["UNIQ_KEY"] for record in self.records(queue_id)]


def properties_of(record: RecordView) -> dict[str, str]:
    return decode_properties(record.property_bytes)
