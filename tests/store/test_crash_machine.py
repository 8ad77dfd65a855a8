"""Crash and reopen: whatever a store was doing when its process ended, nothing written is lost."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.record_scan import tags_code
from pocketmq.store import MessageStore, StoreOptions
from tests.store.faults import MortalDisk, ProcessEnded, abandon, make_metadata_mortal
from tests.store.messages import NOW_MS, kept, record

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

TAG = b"TAGS\x01a\x02"


class Stored(msgspec.Struct, frozen=True):
    """A message that must be, or may be, in a queue."""

    body: bytes
    position: int


class Expected(msgspec.Struct):
    """A queue: what was written, then what may have been."""

    written: list[Stored] = []
    hoped: list[Stored] = []


class CrashAndReopen(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.queues: dict[tuple[str, int], Expected] = {}
        self.documents: dict[str, bytes] = {}
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.doubtful: dict[str, bytes | None] = {}  # a change under way when the process ended
        self.doubtful_offsets: dict[tuple[str, str, int], int] = {}
        self.dying_topic: str | None = None
        self.count = 0
        self.now = 0.0
        self.segment_size = 4096
        self.open()

    def open(self) -> None:
        options = StoreOptions(
            segment_size=self.segment_size, sync=False, checkpoint_bytes=20_000, sync_interval=3.0
        )
        self.disk = MortalDisk(self.folder)
        self.store = MessageStore.open(self.folder, options, disk=self.disk)
        make_metadata_mortal(self.store, self.disk)

    def attempt(self, action: Callable[[], object]) -> bool:
        """Do something; when the process ends in it, start again and look. Tell whether it came through."""
        try:
            action()
        except ProcessEnded:
            self.die()
            return False
        return True

    def die(self) -> None:
        abandon(self.store)
        self.open()
        self.check()

    def check(self) -> None:
        """Compare everything with the model, which then takes over what was in doubt."""
        store = self.store
        assert store.recovered.damage == []
        topic = self.dying_topic
        if topic is not None and topic not in store.queues.topics():
            for key in [key for key in self.queues if key[0] == topic]:
                del self.queues[key]
        self.dying_topic = None
        for (name, queue_id), expected in list(self.queues.items()):
            queue = store.queue(name, queue_id)
            found = kept(store, queue)
            if queue is None:
                assert expected.written == []
                del self.queues[name, queue_id]
                continue
            every = [*expected.written, *expected.hoped]
            assert len(expected.written) <= queue.next_offset <= len(every)
            now = every[: queue.next_offset]
            gone = sum(stored.position < store.log.first for stored in now)
            assert queue.min_offset == gone
            assert found == {n: now[n].body for n in range(gone, len(now))}
            expected.written, expected.hoped = now, []
        assert store.queues.topics() <= {topic for topic, _ in self.queues}
        self.check_log()
        self.check_metadata()

    def check_log(self) -> None:
        """The log holds each record of a queue where the index says, and in order."""
        records, _ = self.store.walk(0, 100_000)
        places = {position: (queue_id, offset) for position, _, queue_id, offset, *_ in records}
        assert list(places) == sorted(places)
        for (topic, queue_id), expected in self.queues.items():
            queue = self.store.queue(topic, queue_id)
            assert queue is not None
            for offset in range(queue.min_offset, queue.next_offset):
                position = queue.position(offset)
                assert position == expected.written[offset].position
                first = offset
                while first and expected.written[first - 1].position == position:
                    first -= 1  # of an inner batch
                assert places[position] == (queue_id, first)

    def check_metadata(self) -> None:
        documents = dict(self.store.metadata.documents("topic"))
        changed = {k: v for k, v in (self.documents | self.doubtful).items() if v is not None}
        assert documents in (self.documents, changed)
        self.documents, self.doubtful = documents, {}
        offsets = {row[:3]: row[3] for row in self.store.metadata.consumer_offsets()}
        assert offsets in (self.offsets, self.offsets | self.doubtful_offsets)
        self.offsets, self.doubtful_offsets = offsets, {}

    def body(self, size: int) -> bytes:
        self.count += 1
        return b"%d:" % self.count + bytes(size)

    # What happens

    @initialize(size=st.sampled_from([4096, 6000, 20_000]))
    def choose_size(self, size: int) -> None:
        self.segment_size = size

    @rule(
        topic=st.sampled_from(["A", "B", "C" * 130]),
        queue_id=st.integers(0, 2),
        sizes=st.lists(st.sampled_from([0, 10, 700, 3000, 5000]), min_size=1, max_size=4),
        form=st.sampled_from(["single", "batch", "inner"]),
        write=st.booleans(),
    )
    def append(self, topic: str, queue_id: int, sizes: list[int], form: str, write: bool) -> None:
        contents = [self.body(size) for size in sizes]

        def action() -> None:
            queue = self.store.make_queue(topic, queue_id)
            expected = self.queues.setdefault((topic, queue_id), Expected())
            places: Sequence[int]
            if form != "single":
                body = encode_batch([BatchEntry(content, TAG) for content in contents])
                like = record(topic, b"", queue_id=queue_id)
                if form == "inner":
                    appended = self.store.append_inner(queue, body, like, 0, NOW_MS)
                    places = [*appended.positions] * len(contents)
                else:
                    appended = self.store.append_batch(queue, body, like, NOW_MS)
                    places = appended.positions
            else:
                records = [record(topic, content, queue_id=queue_id) for content in contents]
                codes = [tags_code(TAG)] * len(records)
                appended = self.store.append(queue, records, codes, NOW_MS)
                places = appended.positions
            assert appended.queue_offset == len(expected.written) + len(expected.hoped)
            placed = zip(contents, places, strict=True)
            expected.hoped += [Stored(content, position) for content, position in placed]

        if self.attempt(action) and write:
            self.write()

    @rule()
    def write(self) -> None:
        if self.attempt(self.store.write):
            self.acknowledge()

    def acknowledge(self) -> None:
        for expected in self.queues.values():
            expected.written += expected.hoped
            expected.hoped = []

    @rule()
    def checkpoint(self) -> None:
        if self.attempt(self.store.checkpoint):
            self.acknowledge()

    @rule()
    def sync(self) -> None:
        heard: list[Exception | None] = []
        if self.attempt(lambda: self.store.request_sync(heard.append)):
            assert heard == [None]

    @rule(seconds=st.sampled_from([0.1, 5.0, 20.0]))
    def maintain(self, seconds: float) -> None:
        self.now += seconds
        self.attempt(lambda: self.store.maintain(self.now))

    @rule()
    def drop_oldest(self) -> None:
        self.attempt(self.store.drop_first_segment)

    @rule(topic=st.sampled_from(["A", "B"]))
    def delete_topic(self, topic: str) -> None:
        self.dying_topic = topic
        if self.attempt(lambda: self.store.delete_topic(topic)):
            self.dying_topic = None
            self.acknowledge()
            for key in [key for key in self.queues if key[0] == topic]:
                del self.queues[key]

    @rule(key=st.sampled_from(["x", "y"]), value=st.none() | st.binary(max_size=3))
    def save_document(self, key: str, value: bytes | None) -> None:
        self.doubtful = {key: value}
        if self.attempt(lambda: self.store.metadata.save_documents("topic", {key: value})):
            self.documents.pop(key, None)
            if value is not None:
                self.documents[key] = value
            self.doubtful = {}

    @rule(queue_id=st.integers(0, 1), offset=st.integers(0, 9))
    def commit_offset(self, queue_id: int, offset: int) -> None:
        row = ("A", "group", queue_id, offset)
        self.doubtful_offsets = {row[:3]: offset}
        if self.attempt(lambda: self.store.metadata.save_consumer_offsets([row])):
            self.offsets |= self.doubtful_offsets
            self.doubtful_offsets = {}

    @precondition(lambda self: self.disk.steps_left is None)
    @rule(steps=st.integers(1, 12), torn=st.integers(0, 1000))
    def let_the_end_come(self, steps: int, torn: int) -> None:
        self.disk.steps_left, self.disk.torn = steps, torn

    @rule()
    def end_now(self) -> None:
        self.die()

    @rule(size=st.sampled_from([4096, 9000]))
    def restart_cleanly(self, size: int) -> None:
        self.segment_size = size
        if self.attempt(self.store.close):
            self.acknowledge()
            self.open()
            assert self.store.recovered.records == 0
            self.check()

    def teardown(self) -> None:
        abandon(self.store)
        shutil.rmtree(self.folder)


TestCrashAndReopen = CrashAndReopen.TestCase
TestCrashAndReopen.settings = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
