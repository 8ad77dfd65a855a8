"""Half messages on a real store, with time as the test says."""

from pathlib import Path

from pocketmq.broker.transactions.checks import half_tag_rules
from pocketmq.broker.transactions.half_messages import KIND, HalfMessages
from pocketmq.broker.transactions.half_states import COMMITTED, DISCARDED, ROLLED_BACK
from pocketmq.broker.transactions.rules import committed, discarded, prepare
from pocketmq.broker.writing.drafts import Draft
from pocketmq.protocol import RecordView
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, QueueIndex, StoreOptions
from pocketmq.store.disk import FileSystem

START_MS = 1_700_000_000_000


def draft(key: str = "K", topic: str = "T", queue_id: int = 0, **more: str) -> Draft:
    """A message that begins a transaction."""
    return Draft(
        topic=topic,
        queue_id=queue_id,
        body=f"body of {key}".encode(),
        properties={"UNIQ_KEY": key, "TRAN_MSG": "true", "PGROUP": "shop"} | more,
        flag=3,
        sys_flag=4,
        born_timestamp_ms=START_MS,
        born_host=bytes(8),
    )


class Transacting:
    """The transactions of a broker that can be killed."""

    def __init__(
        self, path: Path | None, *, disk: FileSystem | None = None, segment_size: int = 1 << 20
    ) -> None:
        options = StoreOptions(segment_size=segment_size)
        self.now_ms = START_MS
        self.store = MessageStore.open(path, options, tag_rules=half_tag_rules(), disk=disk)
        self.halves = HalfMessages(self.store)
        self.opened = self.halves.recover(
            dict(self.store.metadata.documents(KIND)).get(KIND), self.now_ms
        )

    def send(self, key: str, queue_id: int = 0) -> RecordView:
        """Take in a half message, as the broker does."""
        message = draft(key, queue_id=queue_id)
        prepare(message, self.now_ms)
        record = Record(
            topic=message.topic.encode(),
            body=message.body,
            property_bytes=encode_properties(message.properties),
            sys_flag=message.sys_flag,
            born_timestamp_ms=message.born_timestamp_ms,
        )
        queue = self.store.make_queue(message.topic, 0)
        stored = self.store.append(queue, [record], [message.tag or 0], self.now_ms)
        self.store.write()
        half = self.halves.at(stored.positions[0])
        assert half is not None
        return half

    def end(self, half: RecordView, state: int) -> QueueIndex:
        """End a transaction in one of its ways; nothing is written yet."""
        checks = self.halves.state(half.queue_offset) or 0
        ending = {
            COMMITTED: committed(half, half.property_bytes, checks),
            DISCARDED: discarded(half, checks),
            ROLLED_BACK: None,
        }[state]
        return self.halves.end(half, state, ending, self.now_ms)

    def save(self) -> None:
        """Save the states as the broker does: once the log is safe."""
        self.store.write()
        snapshot = self.halves.snapshot()
        self.store.request_sync(lambda error: None)
        self.store.metadata.save_documents(KIND, {KIND: snapshot()})

    def kill(self) -> None:
        """End without writing, saving or checkpointing anything, as `kill -9` does."""
        self.store._release()

    def keys(self, topic: str = "T", queue_id: int = 0) -> list[str]:
        """The unique keys in a queue, in order."""
        return [key_of(record) for record in self.records(topic, queue_id)]

    def records(self, topic: str = "T", queue_id: int = 0) -> list[RecordView]:
        queue = self.store.queue(topic, queue_id)
        read = self.store.read(queue, 0, 1_000_000, 1 << 30)
        return [RecordView(bytes(piece), 0) for piece in read.pieces]


def key_of(record: RecordView) -> str:
    return decode_properties(record.property_bytes)["UNIQ_KEY"]
