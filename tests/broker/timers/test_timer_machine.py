"""Whatever is sent, whenever the broker dies: each timed message comes once, and not too early."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pocketmq.errors import StoreFull
from tests.broker.delay.test_delay_machine import Fault, FaultyDisk
from tests.broker.timed import START_MS, Timed, properties_of

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

SEGMENT = 8192
QUEUES = (0, 1)


class TimerMachine(RuleBasedStateMachine):
    """A broker's timed messages under sends, recalls, full disks, moves, kills and restarts."""

    broker: Timed

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.fault = Fault()
        self.sent: dict[str, int] = {}
        self.recalled: set[str] = set()
        self.open(START_MS)

    def open(self, now_ms: int) -> None:
        path = Path(self.folder.name)
        disk = FaultyDisk(path, self.fault)
        self.broker = Timed(path, now_ms, disk=disk, segment_size=SEGMENT)

    @rule(
        delay=st.sampled_from([1, 2, 500, 999, 1000, 1001, 3000, 70_000]), twins=st.integers(1, 3)
    )
    def send(self, delay: int, twins: int) -> None:
        for _ in range(twins):
            key = str(len(self.sent))
            due_ms = self.sent[key] = self.broker.now_ms + delay
            self.broker.send(key, due_ms, len(self.sent) % 2)

    @rule(data=st.data())
    @precondition(lambda self: self.sent)
    def recall(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([*self.sent]))
        if self.sent[key] > self.broker.now_ms and key not in self.found():
            self.broker.recall(key, self.sent[key])
            self.recalled.add(key)

    @rule(ms=st.sampled_from([1, 300, 999, 1000, 2500, 65_000]))
    def wait(self, ms: int) -> None:
        self.broker.now_ms += ms

    @rule(ms=st.sampled_from([1, 999, 3000, 64_000, 86_400_000]))
    def set_the_clock_back(self, ms: int) -> None:
        self.broker.now_ms -= ms

    @rule()
    def deliver_all(self) -> None:
        assert self.broker.deliver().error is None
        due = {key for key, due_ms in self.sent.items() if due_ms <= self.broker.now_ms}
        assert due - self.recalled <= self.found()

    def found(self) -> set[str]:
        return {key for queue_id in QUEUES for key in self.broker.keys(queue_id)}

    @rule(messages=st.integers(1, 4), size=st.sampled_from([1, 1 << 20]))
    def deliver(self, messages: int, size: int) -> None:
        assert self.broker.deliver(messages, size).error is None

    @rule(writes=st.integers(0, 1), messages=st.integers(1, 40))
    def deliver_to_a_disk_that_refuses(self, writes: int, messages: int) -> None:
        self.fault.after = writes
        error = self.broker.deliver(messages).error
        assert error is None or isinstance(error, StoreFull)
        self.fault.after = None

    @rule()
    def save(self) -> None:
        self.broker.save()

    @rule()
    def checkpoint(self) -> None:
        self.broker.store.checkpoint()

    @rule(part=st.sampled_from([0.3, 0.7, 1.0]), dies=st.booleans())
    def move(self, part: float, dies: bool) -> None:
        """Files are about to go; the broker may die before they do."""
        tail = self.broker.store.log.tail
        self.broker.timers.move_before(int(tail * part), self.broker.now_ms)
        if dies:
            self.kill(0)

    @rule(ms=st.sampled_from([0, 700, 5000]))
    def kill(self, ms: int) -> None:
        self.broker.kill()
        self.open(self.broker.now_ms + ms)

    @rule(messages=st.integers(1, 6), data=st.data())
    def tear_a_delivery(self, messages: int, data: st.DataObject) -> None:
        """The last write of a killed broker reaches the file in part: without its end."""
        log = self.broker.store.log
        before = log.written
        self.broker.deliver(messages)
        segment = log.segments.at(before)
        if segment is not None and before < log.written <= segment.end:
            cut = data.draw(st.integers(before, log.written - 1))
            segment.file.write(cut - segment.start, bytes(log.written - cut))
        self.kill(0)

    @rule(ms=st.sampled_from([0, 700, 5000]))
    def restart(self, ms: int) -> None:
        self.broker.save()
        self.broker.store.close()
        self.open(self.broker.now_ms + ms)

    @precondition(lambda self: hasattr(self, "broker"))
    @invariant()
    def nothing_is_early_or_twice(self) -> None:
        for queue_id in QUEUES:
            keys = self.broker.keys(queue_id)
            assert len(set(keys)) == len(keys)
            for record in self.broker.records(queue_id):
                properties = properties_of(record)
                key = properties["UNIQ_KEY"]
                assert record.store_timestamp_ms >= self.sent[key]
                assert properties["TIMER_OUT_MS"] == str(self.sent[key])
                assert key not in self.recalled

    def teardown(self) -> None:
        if not hasattr(self, "broker"):
            return
        self.broker.now_ms = max([self.broker.now_ms, *self.sent.values()])
        assert self.broker.deliver().error is None
        self.nothing_is_early_or_twice()
        found = self.found()
        count = self.broker.timers.wheel.count
        self.broker.store.close()
        self.folder.cleanup()
        assert found == set(self.sent) - self.recalled
        assert count == 0


TestTimerMachine = TimerMachine.TestCase
TestTimerMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_after_the_clock_ran_ahead_messages_are_due_when_they_say(tmp_path: Path) -> None:
    """Also over restarts, clean or not."""
    broker = Timed(tmp_path)
    broker.send("during", START_MS + 86_000_000)
    broker.send("far", START_MS + 2 * 86_400_000)
    broker.now_ms += 86_400_000
    broker.deliver()
    broker.save()
    broker.now_ms = START_MS + 2000
    broker.send("a", broker.now_ms + 2000)
    broker.kill()
    broker = Timed(tmp_path, START_MS + 3000)
    broker.send("b", broker.now_ms + 500)
    broker.save()
    broker.store.close()
    broker = Timed(tmp_path, START_MS + 3499)
    assert not broker.deliver().by_queue
    broker.now_ms = START_MS + 3500
    broker.deliver()
    assert broker.keys() == ["during", "b"]
    broker.kill()
    broker = Timed(tmp_path, START_MS + 4000)
    broker.deliver()
    assert broker.keys() == ["during", "b", "a"]
    broker.now_ms = START_MS + 2 * 86_400_000
    broker.deliver()
    assert broker.keys() == ["during", "b", "a", "far"]
    assert broker.timers.wheel.count == 0
    assert not broker.timers.progress.older, "the older mark is behind the new one"
    broker.store.close()
