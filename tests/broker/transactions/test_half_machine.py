"""However transactions end, whenever the broker dies: each message is seen once, or not at all."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pocketmq.broker.transactions.half_states import COMMITTED, DISCARDED, MOST_CHECKS, ROLLED_BACK
from pocketmq.errors import StoreFull
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC
from pocketmq.protocol import RecordView
from tests.broker.delay.test_delay_machine import Fault, FaultyDisk
from tests.broker.halves import Transacting

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

SEGMENT = 8192
ENDS = st.sampled_from([COMMITTED, ROLLED_BACK, DISCARDED])


class TransactionMachine(RuleBasedStateMachine):
    """A broker's transactions under sends, ends, full disks, torn writes, kills and restarts."""

    broker: Transacting

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.fault = Fault()
        self.halves: list[RecordView] = []
        self.ended: dict[int, int] = {}  # by offset: what a producer was promised
        self.open()

    def open(self) -> None:
        path = Path(self.folder.name)
        disk = FaultyDisk(path, self.fault)
        self.broker = Transacting(path, disk=disk, segment_size=SEGMENT)

    @rule(queue_id=st.integers(0, 1))
    def send(self, queue_id: int) -> None:
        self.halves.append(self.broker.send(str(len(self.halves)), queue_id))

    @rule(data=st.data(), state=ENDS, written=st.booleans())
    @precondition(lambda self: self.halves)
    def end(self, data: st.DataObject, state: int, written: bool) -> None:
        half = data.draw(st.sampled_from(self.halves))
        known = self.broker.halves.state(half.queue_offset)
        assert known is not None
        if known > MOST_CHECKS:
            return
        self.broker.end(half, state)
        if written:
            self.broker.store.write()
            self.note()

    def note(self) -> None:
        """Whatever has been written was promised."""
        for half in self.halves:
            state = self.broker.halves.state(half.queue_offset)
            if state is not None and state > MOST_CHECKS:
                assert self.ended.setdefault(half.queue_offset, state) == state

    @rule(data=st.data(), state=ENDS, after=st.integers(0, 1))
    @precondition(lambda self: self.halves)
    def end_on_a_disk_that_refuses(self, data: st.DataObject, state: int, after: int) -> None:
        self.broker.store.write()
        self.note()
        half = data.draw(st.sampled_from(self.halves))
        offset = half.queue_offset
        before = self.broker.halves.state(offset)
        assert before is not None
        if before > MOST_CHECKS:
            return
        self.fault.after = after
        try:
            self.broker.end(half, state)
            self.broker.store.write()
        except StoreFull:
            assert self.broker.halves.state(offset) == before
        self.fault.after = None
        self.note()

    @rule(data=st.data())
    @precondition(lambda self: self.halves)
    def check(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(self.halves)).queue_offset
        checks = self.broker.halves.state(offset)
        if checks is not None and checks <= MOST_CHECKS:
            self.broker.halves.checked(offset, checks + 1)

    @rule()
    def save(self) -> None:
        self.broker.save()
        self.note()

    @rule()
    def checkpoint(self) -> None:
        self.broker.store.checkpoint()
        self.note()

    @rule()
    def kill(self) -> None:
        self.broker.kill()
        self.open()
        self.note()

    @rule(data=st.data(), state=ENDS)
    @precondition(lambda self: self.halves)
    def tear_the_mark_off(self, data: st.DataObject, state: int) -> None:
        """The last write of a killed broker reaches the file in part: without its end."""
        self.broker.store.write()
        self.note()
        half = data.draw(st.sampled_from(self.halves))
        known = self.broker.halves.state(half.queue_offset)
        if known is None or known > MOST_CHECKS:
            return
        self.broker.end(half, state)
        log = self.broker.store.log
        data_pending = log.pending[-1]
        cut = data.draw(st.integers(0, len(data_pending) - 1))
        segment = log.segments.at(log.written)
        assert segment is not None
        segment.file.write(log.written - segment.start, data_pending[:cut])
        log.pending.clear()
        self.broker.kill()
        self.open()
        self.note()

    @rule()
    def restart(self) -> None:
        self.broker.save()
        self.note()
        self.broker.store.close()
        self.open()

    @precondition(lambda self: hasattr(self, "broker"))
    @invariant()
    def what_ended_is_seen_once_and_the_rest_is_open(self) -> None:
        self.broker.store.write()
        self.note()
        seen = sorted(self.broker.keys("T", 0) + self.broker.keys("T", 1), key=int)
        committed = [n for n, state in self.ended.items() if state == COMMITTED]
        assert seen == [str(n) for n in sorted(committed)]
        discarded = [n for n, state in self.ended.items() if state == DISCARDED]
        found = self.broker.keys(DISCARDED_HALF_TOPIC)
        assert sorted(map(int, found)) == sorted(discarded)
        states = self.broker.halves.states
        still_open = {offset for offset, _ in states.open_from(0, len(self.halves))}
        assert still_open == set(range(len(self.halves))) - set(self.ended)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.store.close()
            self.folder.cleanup()


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def lose(broker: Transacting, topic: str) -> None:
    """Cut the power: the last message of a topic is lost, what lies behind it in the log is not."""
    queue = broker.store.queue(topic, 0)
    assert queue is not None
    ((position,), (size,)) = queue.entries(queue.next_offset - 1, 1)
    segment = broker.store.log.segments.at(position)
    assert segment is not None
    segment.file.write(position - segment.start, bytes(size))
    broker.kill()


@pytest.mark.damaged_store
def test_a_transaction_whose_committed_message_was_lost_is_open_again(tmp_path: Path) -> None:
    broker = Transacting(tmp_path)
    kept, lost = broker.send("kept"), broker.send("lost")
    broker.save()
    broker.end(kept, COMMITTED)
    broker.end(lost, COMMITTED)
    broker.store.write()
    lose(broker, "T")
    again = Transacting(tmp_path)
    assert again.halves.state(kept.queue_offset) == COMMITTED
    assert again.opened == 1
    half = again.halves.at(lost.commit_log_offset)
    assert half is not None
    again.end(half, COMMITTED)
    assert again.keys() == ["kept", "lost"]
    again.store.close()


@pytest.mark.damaged_store
def test_the_mark_of_a_lost_half_message_ends_no_other(tmp_path: Path) -> None:
    """Not even after a second kill, when another half message has its offset."""
    broker = Transacting(tmp_path)
    broker.send("first")
    broker.end(broker.send("lost"), ROLLED_BACK)
    broker.store.write()
    lose(broker, HALF_TOPIC)
    broker = Transacting(tmp_path)
    assert broker.opened == 1
    broker.send("other")
    broker.kill()
    broker = Transacting(tmp_path)
    assert broker.opened == 2
    broker.store.close()
