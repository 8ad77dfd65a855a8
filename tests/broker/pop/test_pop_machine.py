"""Whenever a broker dies: nothing popped is lost, and what was acknowledged does not come again."""

import random
import tempfile
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pocketmq.broker.pop.changes import VisibilityChanged
from pocketmq.broker.pop.in_flight import Taken
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.recovery import recover, snapshot
from pocketmq.broker.pop.redelivery import KIND, revive
from pocketmq.broker.pulling.selection import EVERYTHING
from pocketmq.broker.saving import save_changes, submit_offsets
from pocketmq.net import Connection
from pocketmq.protocol import RecordView
from pocketmq.protocol.handles import PopQueue, TopicMark, read_message_offsets
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import Record
from pocketmq.protocol.requests.pop import PopRequest
from pocketmq.store import StoreOptions
from tests.broker.tables import Desk
from tests.broker.wire import Wire
from tests.store.faults import PowerDisk, abandon

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

TOPIC, GROUP = "T", "G"
QUEUES = range(2)


class Out:
    """A message a member has."""

    def __init__(self, body: bytes, place: PopQueue, offset: int, pop_time_ms: int) -> None:
        self.body = body
        self.topic = place.mark.real_topic(TOPIC, GROUP)
        self.queue_id = place.queue_id
        self.offset = offset
        self.pop_time_ms = pop_time_ms


class PopMachine(RuleBasedStateMachine):
    """A broker's pops under sends, acks, passing time, kills, torn writes and restarts."""

    desk: Desk

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.now = 1_700_000_000.0
        self.sent: list[bytes] = []
        self.out: list[Out] = []
        self.doing: list[bytes] = []  # acknowledged, but not written yet
        self.done: set[bytes] = set()  # acknowledged for good
        self.perhaps: set[bytes] = set()  # acknowledged, and nobody was told whether it counts
        self.safe_sent = 0  # how many messages were sent ...
        self.safe_done: set[bytes] = set()  # ... and which acknowledged, before the last sync
        self.open()
        state = self.desk.state
        state.topics.create_for_group(TOPIC, len(QUEUES), now_ms=1)
        state.groups.find(GROUP, auto_create=True, now_ms=1)
        save_changes(state)

    def open(self) -> None:
        options = StoreOptions(segment_size=32_768)
        self.disk = PowerDisk(Path(self.folder.name))
        self.desk = Desk(Path(self.folder.name), options=options, disk=self.disk)
        self.tick(0)
        self.pops = Pops(self.desk.state)
        document = dict(self.desk.state.store.metadata.documents(KIND)).get(KIND)
        store, now_ms = self.desk.state.store, self.desk.clock.now_ms()
        recover(self.pops.table.all_in_flight, self.pops.journal, store, document, now_ms)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.desk.clock.time = self.now
        self.desk.state.batch.now_ms = self.desk.clock.now_ms()

    def write(self) -> None:
        """End a turn: from here on acknowledgements are promised."""
        self.pops.seal()
        self.desk.state.store.write()
        self.done.update(self.doing)
        self.doing.clear()

    @rule(queue_id=st.sampled_from(QUEUES), count=st.integers(1, 4))
    def send(self, queue_id: int, count: int) -> None:
        store = self.desk.state.store
        for _ in range(count):
            body = b"%d" % len(self.sent)
            self.sent.append(body)
            record = Record(topic=TOPIC.encode(), body=body, queue_id=queue_id)
            store.append(store.make_queue(TOPIC, queue_id), [record], [0], 1)
        self.write()

    @rule(most=st.integers(1, 8), invisible=st.integers(1, 20), written=st.booleans())
    def pop(self, most: int, invisible: int, written: bool) -> None:
        self.tick(0.001)
        self.take(most, invisible * 1000)
        if written:
            self.write()

    def take(self, most: int, invisible_ms: int) -> int:
        header = PopRequest(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=most,
            invisible_time=invisible_ms,
            poll_time=0,
            born_time=0,
            init_mode=0,
        )
        source = self.pops.sources.find(cast("Connection", Wire()), header)
        batch = self.pops.take(source, header, EVERYTHING)
        places = read_message_offsets(";".join(batch.places))
        where = [(queue, offset) for queue, offsets in places.items() for offset in offsets]
        data = b"".join(batch.pieces)  # a piece may be several records side by side
        records = [RecordView(data, found[0]) for found in scan_records(data)]
        assert len(where) == len(records) == batch.count <= most
        for record, (queue, offset) in zip(records, where, strict=True):
            body = record.stored_body
            assert body not in self.done, "acknowledged, and here again"
            self.out.append(Out(body, queue, offset, self.desk.state.batch.now_ms))
        return batch.count

    @rule(data=st.data(), written=st.booleans())
    @precondition(lambda self: self.out)
    def ack(self, data: st.DataObject, written: bool) -> None:
        out = data.draw(st.sampled_from(self.out))
        self.acknowledge(out)
        if written:
            self.write()

    def acknowledge(self, out: Out) -> None:
        self.out.remove(out)
        table = self.pops.table
        if table.settle(out.topic, GROUP, out.queue_id, out.pop_time_ms, [out.offset]):
            self.doing.append(out.body)

    @rule(data=st.data(), seconds=st.integers(0, 30))
    @precondition(lambda self: self.out)
    def hide(self, data: st.DataObject, seconds: int) -> None:
        self.tick(0.001)
        out = data.draw(st.sampled_from(self.out))
        now_ms = self.desk.clock.now_ms()
        until_ms = now_ms + seconds * 1000
        times = out.pop_time_ms, now_ms, until_ms
        if self.pops.table.change(
            VisibilityChanged(out.topic, GROUP, out.queue_id, out.offset, *times)
        ):
            out.pop_time_ms = now_ms
            self.write()

    @rule(seconds=st.integers(1, 15), written=st.booleans())
    def wait(self, seconds: int, written: bool) -> None:
        self.tick(seconds)
        self.bring_back()
        if written:
            self.write()

    def bring_back(self) -> None:
        now_ms = self.desk.clock.now_ms()
        while due := self.pops.table.deadlines.take_due(now_ms):
            for taken in due:
                assert isinstance(taken, Taken)
                revive(self.desk.state, self.pops, taken, 1000)

    @rule()
    def sync(self) -> None:
        self.write()
        self.desk.state.store.request_sync(lambda error: None)
        self.is_safe()

    def is_safe(self) -> None:
        self.safe_sent, self.safe_done = len(self.sent), set(self.done)

    @rule()
    def save(self) -> None:
        submit_offsets(self.desk.state)
        self.sync()
        document = snapshot(self.pops.table.all_in_flight, self.pops.journal)()
        self.desk.state.store.metadata.save_documents(KIND, {KIND: document})

    @rule()
    def save_offsets_alone(self) -> None:
        submit_offsets(self.desk.state)

    @rule()
    def kill(self) -> None:
        self.desk.state.store._release()
        self.perhaps.update(self.doing)
        self.doing.clear()
        self.is_safe()
        self.open()

    @rule(
        seed=st.integers(0, 1 << 32),
        chance=st.sampled_from([0.0, 0.5, 0.9]),
        unit=st.sampled_from([64, 512, 4096]),
    )
    def lose_power(self, seed: int, chance: float, unit: int) -> None:
        """Of what was not synced any part may survive: nothing was promised of it."""
        abandon(self.desk.state.store)
        luck = random.Random(seed)
        self.disk.cut_power(unit, lambda: luck.random() < chance)
        self.perhaps.update(self.doing, self.sent[self.safe_sent :], self.done - self.safe_done)
        self.doing.clear()
        self.done = self.safe_done & self.done
        self.out.clear()
        self.open()
        self.is_safe()

    @rule(data=st.data())
    def tear(self, data: st.DataObject) -> None:
        """The last write of a killed broker reaches the file in part."""
        self.pops.seal()
        size = sum(map(len, self.desk.state.store.log.pending))
        self.tear_at(data.draw(st.integers(0, size - 1)) if size else 0)

    def tear_at(self, cut: int) -> None:
        self.pops.seal()
        log = self.desk.state.store.log
        if log.pending:
            pending = b"".join(log.pending)
            segment = log.segments.at(log.written)
            assert segment is not None
            segment.file.write(log.written - segment.start, pending[:cut])
            log.pending.clear()
        self.kill()

    @rule()
    def restart(self) -> None:
        self.save()
        self.desk.state.store.close()
        self.open()

    def teardown(self) -> None:
        if not hasattr(self, "desk"):
            return
        self.kill()
        for _ in range(40):  # in the end everything is there that was not acknowledged
            self.tick(60)
            self.bring_back()
            while self.take(32, 1000):
                self.tick(0.001)
                for out in list(self.out):
                    self.acknowledge(out)
                self.write()
        assert self.done | self.perhaps >= set(self.sent)
        committed = self.desk.state.offsets
        for queue_id in QUEUES:
            queue = self.desk.state.store.queue(TOPIC, queue_id)
            if queue is not None:
                assert committed.query(GROUP, TOPIC, queue_id) == queue.next_offset
        assert TopicMark.of(TOPIC) is TopicMark.NORMAL
        self.desk.state.store.close()
        self.folder.cleanup()


TestPopMachine = PopMachine.TestCase
TestPopMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_a_kill_while_messages_are_brought_back_brings_none_of_them_twice() -> None:
    machine = PopMachine()
    machine.start()
    machine.send(queue_id=0, count=3)
    machine.pop(most=8, invisible=4, written=True)
    machine.wait(seconds=14, written=False)
    machine.kill()
    machine.out.clear()  # who had them is gone, too
    machine.pop(most=8, invisible=20, written=False)
    for out in list(machine.out):
        machine.acknowledge(out)
    machine.write()
    machine.teardown()


def test_a_torn_write_while_messages_are_brought_back_brings_none_of_them_twice() -> None:
    """The machine seldom gets here: the copy is written, the note behind it is not."""
    machine = PopMachine()
    machine.start()
    machine.send(queue_id=0, count=1)
    machine.pop(most=1, invisible=1, written=True)
    machine.wait(seconds=2, written=False)
    (copy,) = machine.desk.state.store.log.pending
    machine.tear_at(len(copy))
    machine.pop(most=8, invisible=20, written=False)
    for out in list(machine.out):
        machine.acknowledge(out)
    machine.write()
    try:
        machine.teardown()
    except AssertionError:
        machine.desk.state.store.close()
        machine.folder.cleanup()
        raise


def lose(machine: PopMachine, topic: str, queue_id: int, count: int) -> None:
    """Cut the power: the last messages of a queue are lost, what lies behind them in the log is not."""
    store = machine.desk.state.store
    queue = store.queue(topic, queue_id)
    assert queue is not None
    for position, size in zip(*queue.entries(queue.next_offset - count, count), strict=True):
        segment = store.log.segments.at(position)
        assert segment is not None
        segment.file.write(position - segment.start, bytes(size))
    machine.kill()


def test_messages_in_the_place_of_lost_ones_are_popped() -> None:
    """The journal says that messages with their offsets were popped and acknowledged."""
    machine = PopMachine()
    machine.start()
    machine.send(queue_id=0, count=1)
    machine.sync()
    machine.send(queue_id=0, count=2)
    machine.pop(most=8, invisible=20, written=True)
    for out in list(machine.out):
        machine.acknowledge(out)
    machine.write()
    lose(machine, TOPIC, 0, 2)
    for _ in range(2):  # what recovery found once it finds again
        machine.send(queue_id=0, count=1)
        machine.kill()
    machine.pop(most=8, invisible=20, written=True)
    assert [out.body for out in machine.out] == [b"3", b"4"]
    machine.teardown()


def test_a_message_whose_copy_was_lost_comes_back() -> None:
    machine = PopMachine()
    machine.start()
    machine.send(queue_id=0, count=1)
    machine.pop(most=1, invisible=1, written=True)
    machine.wait(seconds=2, written=True)
    machine.out.clear()
    lose(machine, TopicMark.RETRY.real_topic(TOPIC, GROUP), 0, 1)
    machine.wait(seconds=2, written=True)
    machine.pop(most=1, invisible=1, written=True)
    assert [out.body for out in machine.out] == [b"0"]
    machine.teardown()
