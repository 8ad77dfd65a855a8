"""Power loss with synchronous flush: what was confirmed is there, whatever happened to the rest.

Everything that was not synced survives or vanishes by chance, unit by unit, in any combination.
"""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.store import MessageStore, StoreOptions
from tests.store.faults import PowerDisk, abandon
from tests.store.messages import NOW_MS, kept, record

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

Key = tuple[str, int]


class PowerLoss(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.sent: dict[Key, dict[int, bytes]] = {}  # by offset, since the topic was last made
        self.confirmed: dict[Key, set[int]] = {}
        self.documents: dict[str, bytes] = {}
        self.deleted: set[str] = set()  # since offsets were last saved
        self.count = 0
        self.open()

    def open(self) -> None:
        options = StoreOptions(segment_size=16_384, sync=True, checkpoint_bytes=60_000)
        self.disk = PowerDisk(self.folder)
        self.store = MessageStore.open(self.folder, options, disk=self.disk)

    @rule(
        topic=st.sampled_from(["A", "B"]),
        queue_id=st.integers(0, 1),
        sizes=st.lists(st.sampled_from([0, 10, 700, 5000, 9000]), min_size=1, max_size=4),
        text_size=st.sampled_from([0, 8, 400, 6000]),
        inner=st.booleans(),
    )
    def send(
        self, topic: str, queue_id: int, sizes: list[int], text_size: int, inner: bool
    ) -> None:
        text = (b"k\x01" + b"v" * text_size)[:text_size]
        queue = self.store.make_queue(topic, queue_id)
        records = []
        for size in sizes:
            self.count += 1
            body = b"%d:" % self.count + bytes([self.count % 256]) * size
            records.append(record(topic, body, queue_id=queue_id, text=text))
        if inner:
            body = encode_batch([BatchEntry(one.body, text) for one in records])
            like = record(topic, b"", queue_id=queue_id, text=text)
            first = self.store.append_inner(queue, body, like, 0, NOW_MS).queue_offset
        else:
            first = self.store.append(queue, records, [0] * len(records), NOW_MS).queue_offset
        sent = self.sent.setdefault((topic, queue_id), {})
        sent |= {first + n: one.body for n, one in enumerate(records)}
        self.store.write()

    @rule()
    def confirm(self) -> None:
        heard: list[Exception | None] = []
        self.store.request_sync(heard.append)
        assert heard == [None]
        for key, sent in self.sent.items():
            self.confirmed.setdefault(key, set()).update(sent)

    @rule()
    def checkpoint(self) -> None:
        self.store.checkpoint()
        for key, sent in self.sent.items():
            self.confirmed.setdefault(key, set()).update(sent)

    @rule()
    def drop_oldest(self) -> None:
        if self.store.drop_first_segment():
            for (topic, queue_id), sent in self.sent.items():
                queue = self.store.queue(topic, queue_id)
                assert queue is not None
                for offset in [offset for offset in sent if offset < queue.min_offset]:
                    del sent[offset]
                    self.confirmed.get((topic, queue_id), set()).discard(offset)

    @rule(topic=st.sampled_from(["A", "B"]))
    def delete_topic(self, topic: str) -> None:
        self.store.delete_topic(topic)
        for key in [key for key in self.sent if key[0] == topic]:
            del self.sent[key]
            self.confirmed.pop(key, None)
        self.deleted.add(topic)

    @rule()
    def save_offsets(self) -> None:
        """Save the end of every queue for a group, once the log is synced."""
        self.confirm()
        self.deleted.clear()
        ends = self.store.queues.ends()
        rows = [(topic, "G", queue_id, end) for (topic, queue_id), end in ends.items()]
        self.store.metadata.save_consumer_offsets(rows, [("A", "G"), ("B", "G")])

    @rule(value=st.binary(max_size=3))
    def save_document(self, value: bytes) -> None:
        self.store.metadata.save_documents("topic", {"x": value})
        self.documents = {"x": value}

    @rule(
        seed=st.integers(0, 1 << 32),
        chance=st.sampled_from([0.0, 0.5, 0.9]),
        unit=st.sampled_from([512, 4096]),
    )
    def lose_power(self, seed: int, chance: float, unit: int) -> None:
        abandon(self.store)
        luck = random.Random(seed)
        self.disk.cut_power(unit, lambda: luck.random() < chance)
        self.open()
        assert self.store.queues.topics() <= {topic for topic, _ in self.sent}
        for (topic, queue_id), sent in list(self.sent.items()):
            queue = self.store.queue(topic, queue_id)
            found = kept(self.store, queue)
            confirmed = self.confirmed.get((topic, queue_id), set())
            assert confirmed <= set(found)
            assert all(sent[offset] == body for offset, body in found.items())
            self.sent[topic, queue_id] = found
            if queue is None:
                del self.sent[topic, queue_id]
        assert dict(self.store.metadata.documents("topic")) == self.documents
        ends = self.store.queues.ends()
        for topic, _, queue_id, offset in self.store.metadata.consumer_offsets():
            if topic not in self.deleted:
                assert offset <= ends[topic, queue_id]

    def teardown(self) -> None:
        abandon(self.store)
        shutil.rmtree(self.folder)


TestPowerLoss = PowerLoss.TestCase
TestPowerLoss.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
