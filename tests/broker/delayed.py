"""Delayed messages on a real store, with time as the test says."""

from pathlib import Path

from pocketmq.broker.delay.delays import delay_tag_rules
from pocketmq.broker.delay.delivery import DelayQueues, DeliveredDelays, DeliveryBudget
from pocketmq.broker.delay.progress import DelayProgress, encode_progress, recover_progress
from pocketmq.broker.delay.rules import DelayLevels, hold_back
from pocketmq.broker.writing.drafts import Draft
from pocketmq.protocol import RecordView
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.disk import FileSystem

START_MS = 1_700_000_000_000
PLENTY = DeliveryBudget(1_000_000, 1 << 30)


def draft(level: str, topic: str = "T", queue_id: int = 0, key: str = "K") -> Draft:
    """A message that asks for a level."""
    return Draft(
        topic=topic,
        queue_id=queue_id,
        body=b"hello",
        properties={"UNIQ_KEY": key, "DELAY": level},
        flag=0,
        sys_flag=0,
        born_timestamp_ms=START_MS,
        born_host=bytes(8),
    )


class Waiting:
    """The delayed messages of a broker that can be killed."""

    def __init__(
        self,
        path: Path | None,
        levels: str = "1s 2s 5s",
        now_ms: int = START_MS,
        *,
        disk: FileSystem | None = None,
        segment_size: int = 1 << 20,
    ) -> None:
        self.now_ms = now_ms
        self.levels = DelayLevels.parse(levels)
        self.store = MessageStore.open(
            path,
            StoreOptions(segment_size=segment_size),
            tag_rules=delay_tag_rules(levels),
            disk=disk,
        )
        self.progress = DelayProgress()
        self.progress.load(self.store.metadata.documents(self.progress.kind), now_ms)
        self.queues = DelayQueues(self.store, self.levels, self.progress)
        recover_progress(self.store, self.progress, self.queues.levels, now_ms)

    def send(self, level: int, key: str, queue_id: int = 0, topic: str = "T") -> None:
        """Take in a message, as the broker does."""
        message = draft(str(level), topic, queue_id, key)
        assert hold_back(message, self.levels, self.now_ms)
        self.append(message)
        self.store.write()

    def append(self, message: Draft) -> None:
        record = Record(
            topic=message.topic.encode(),
            body=message.body,
            property_bytes=encode_properties(message.properties),
            queue_id=message.queue_id,
            born_timestamp_ms=message.born_timestamp_ms,
        )
        queue = self.store.make_queue(message.topic, message.queue_id)
        self.store.append(queue, [record], [message.tag or 0], self.now_ms)

    def deliver(self, budget: DeliveryBudget = PLENTY) -> DeliveredDelays:
        return self.queues.deliver(self.now_ms, budget)

    def save(self) -> None:
        """Save progress as the broker does: once the log is safe."""
        changed = self.progress.take_unsaved(self.store.log.written, self.now_ms)
        self.store.request_sync(lambda error: None)
        self.store.metadata.save_documents(self.progress.kind, encode_progress(changed))
        self.progress.were_saved(changed)

    def kill(self) -> None:
        """End without writing, saving or checkpointing anything, as `kill -9` does."""
        self.store._release()

    def records(self, topic: str = "T", queue_id: int = 0) -> list[RecordView]:
        queue = self.store.queue(topic, queue_id)
        read = self.store.read(queue, 0, 1_000_000, 1 << 30)
        return [RecordView(piece, 0) for piece in read.pieces]

    def keys(self, topic: str = "T", queue_id: int = 0) -> list[str]:
        """The unique keys in a queue, in order."""
        return [key_of(record) for record in self.records(topic, queue_id)]


def key_of(record: RecordView) -> str:
    return decode_properties(record.property_bytes)["UNIQ_KEY"]
