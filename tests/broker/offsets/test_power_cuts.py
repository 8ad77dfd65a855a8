"""Power loss with asynchronous flush: no group's offset is beyond what is left of the log.

The tail of the log that was not synced survives or vanishes by chance; the offsets in SQLite are as
they were saved. Then new messages come, and every group must get all of them.
"""

import logging
import random
import tempfile
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pocketmq.broker.saving import submit_offsets
from pocketmq.protocol import RecordView, decode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.stats import ConsumeStatsBody
from pocketmq.store import StoreOptions
from tests.broker.tables import Desk
from tests.store.faults import PowerDisk, SteppedFlusher, abandon

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

TOPIC = "T"
QUEUES = range(2)
GROUPS = ("g", "h")

Cut: TypeAlias = tuple[int, float, int]
"""A seed, the chance that a unit not synced survives, and the size of a unit."""

CUTS = st.tuples(
    st.integers(0, 1 << 32), st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([512, 4096])
)


class OffsetMachine(RuleBasedStateMachine):
    """A broker's offsets under sends, commits, saves, deletions and power cuts."""

    desk: Desk

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.open()
        self.desk.make_topic(TOPIC)

    def open(self) -> None:
        self.disk = PowerDisk(Path(self.folder.name))
        self.flusher = SteppedFlusher()
        self.desk = Desk(
            Path(self.folder.name),
            options=StoreOptions(segment_size=16_384),
            disk=self.disk,
            flusher=self.flusher,
        )

    @rule(
        queue_id=st.sampled_from(QUEUES),
        count=st.integers(1, 4),
        size=st.sampled_from([1, 700, 3000]),
    )
    def send(self, queue_id: int, count: int, size: int) -> None:
        for _ in range(count):
            self.desk.store_message(TOPIC, queue_id, b"x" * size)
        self.desk.state.store.write()

    @rule(group=st.sampled_from(GROUPS), queue_id=st.sampled_from(QUEUES), written=st.booleans())
    def consume(self, group: str, queue_id: int, written: bool) -> None:
        """A group reads everything, and commits; perhaps together with one more message."""
        if not written:
            self.desk.store_message(TOPIC, queue_id)
        queue = self.desk.state.store.queue(TOPIC, queue_id)
        end = 0 if queue is None else queue.next_offset
        self.desk.state.offsets.commit(group, TOPIC, queue_id, end)

    @rule(group=st.sampled_from(GROUPS))
    def reset_to_the_end(self, group: str) -> None:
        for queue_id in QUEUES:
            queue = self.desk.state.store.queue(TOPIC, queue_id)
            if queue is not None:
                ext = {"group": group, "topic": TOPIC, "queueId": str(queue_id)}
                ext |= {"offset": str(queue.next_offset), "timestamp": "-1", "isForce": "true"}
                self.desk.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, ext)
                self.desk.state.offsets.take_reset(group, TOPIC, queue_id)

    @rule()
    def clone(self) -> None:
        ext = {"srcGroup": "g", "destGroup": "h", "topic": TOPIC, "offline": "true"}
        self.desk.ask(Code.CLONE_GROUP_OFFSET, ext)

    @rule(jobs=st.integers(0, 5))
    def save(self, jobs: int) -> None:
        """Offsets are submitted; the flusher does some of the jobs that wait at this moment."""
        submit_offsets(self.desk.state)
        self.flush(jobs)

    @rule(jobs=st.integers(1, 5))
    def flush(self, jobs: int) -> None:
        for _ in range(jobs):
            self.flusher.step()

    @rule()
    def sync(self) -> None:
        self.desk.state.store.request_sync(lambda error: None)

    @rule()
    def checkpoint(self) -> None:
        self.desk.state.store.checkpoint()

    @rule(
        group=st.sampled_from(GROUPS),
        queue_id=st.sampled_from(QUEUES),
        jobs=st.integers(0, 5),
        cut=CUTS,
    )
    def lose_power_in_a_save(self, group: str, queue_id: int, jobs: int, cut: Cut) -> None:
        """The moment that matters: a new message is committed, and its offset is on the way."""
        self.consume(group, queue_id, written=False)
        self.save(jobs)
        self.lose_power(cut)

    @rule(cut=CUTS)
    def lose_power(self, cut: Cut) -> None:
        seed, chance, unit = cut
        abandon(self.desk.state.store)
        luck = random.Random(seed)
        self.disk.cut_power(unit, lambda: luck.random() < chance)
        self.open()
        ends = self.desk.state.store.queues.ends()
        for topic, _, queue_id, offset in self.desk.state.store.metadata.consumer_offsets():
            assert offset <= ends.get((topic, queue_id), 0), "saved before the log was synced"
        for group in GROUPS:
            self.check_that_new_messages_come(group)

    def check_that_new_messages_come(self, group: str) -> None:
        store = self.desk.state.store
        for queue_id in QUEUES:
            self.desk.store_message(TOPIC, queue_id, b"new for " + group.encode())
        store.write()
        answer = self.desk.ask(Code.GET_CONSUME_STATS, {"consumerGroup": group, "topic": TOPIC})
        for queue, progress in decode_body(answer.body, ConsumeStatsBody).offset_table.items():
            if queue.queue_id not in QUEUES:
                continue
            start = max(progress.consumer_offset, 0)
            found = store.read(store.queue(TOPIC, queue.queue_id), start, 1000, 1 << 24)
            bodies = [RecordView(bytes(piece), 0).stored_body for piece in found.pieces]
            assert bodies[-1] == b"new for " + group.encode()
            assert progress.broker_offset - start >= len(bodies) >= 1

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            abandon(self.desk.state.store)
            self.folder.cleanup()


TestOffsetMachine = OffsetMachine.TestCase
TestOffsetMachine.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_offsets_are_saved_only_after_the_log_is_synced(tmp_path: Path) -> None:
    flusher = SteppedFlusher()
    desk = Desk(tmp_path, disk=PowerDisk(tmp_path), flusher=flusher)
    desk.store_message(TOPIC, 0)
    desk.state.offsets.commit("g", TOPIC, 0, 1)
    outcomes: list[Exception | None] = []
    assert submit_offsets(desk.state, outcomes.append)
    assert desk.state.store.synced == 0
    flusher.step()
    assert desk.state.store.synced == desk.state.store.log.tail
    assert desk.state.store.metadata.consumer_offsets() == []
    flusher.step()
    assert desk.state.store.metadata.consumer_offsets() == [(TOPIC, "g", 0, 1)]
    assert outcomes == [None]
    assert not flusher.step()
    assert not submit_offsets(desk.state)
    abandon(desk.state.store)


def test_offsets_beyond_the_log_are_lowered_with_one_warning_for_a_group_and_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path)
    for queue_id in (0, 1, 2):
        desk.store_message(TOPIC, queue_id)
    rows = [(TOPIC, "g", 0, 51), (TOPIC, "g", 1, 4), (TOPIC, "g", 2, 1), ("none", "h", 0, 7)]
    desk.state.store.metadata.save_consumer_offsets(rows)
    desk.close()

    with caplog.at_level(logging.WARNING, "pocketmq.broker"):
        again = Desk(tmp_path)

    assert again.state.offsets.committed == {
        (TOPIC, "g"): {0: 1, 1: 1, 2: 1},
        ("none", "h"): {0: 0},
    }
    first, second = [record.getMessage() for record in caplog.records]
    assert "group=g topic=T queues=0,1 offsets_beyond=53" in first
    assert "group=h topic=none queues=0 offsets_beyond=7" in second
    submit_offsets(again.state)
    again.close()

    caplog.clear()
    with caplog.at_level(logging.WARNING, "pocketmq.broker"):
        Desk(tmp_path).close()
    assert not caplog.records
