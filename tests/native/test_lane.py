"""The lane does with a read exactly what the dispatcher does request by request.

Two brokers get the same reads, one with the lane and one without: log, index, answers, counters
and measures must be the same afterwards.
"""

import asyncio
import errno
from array import array
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import all_with_code, answered_by
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.broker.writing.log_writer import CommitLogWriter
from pocketmq.errors import StoreError
from pocketmq.model import TopicConfig
from pocketmq.net import Connection, Limits
from pocketmq.net.shared import Shared
from pocketmq.protocol import Command
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.appending import Run
from tests.broker.running import send_fields
from tests.native.halves import (
    HOST,
    Half,
    Still,
    both,
    delayed_request,
    entry,
    half_request,
    requests,
    send_request,
    split,
)

core = pytest.importorskip("pocketmq_core")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(requests(), min_size=1, max_size=12),
    st.lists(st.integers(1, 1500), max_size=3),
    st.booleans(),
    st.sampled_from([1 << 20, 64 << 10]),
)
def test_any_requests_have_the_same_outcome(
    frames: list[bytes], cuts: list[int], metrics: bool, segment: int
) -> None:
    warm = [send_request(queue) for queue in range(4)]
    warm += [delayed_request(level) for level in ("1", "9", "18")] + [half_request()]
    reads = [*warm, *split(b"".join(frames), cuts)]
    asyncio.run(
        both(reads, metrics=metrics, segment=segment, ordered=len(frames) <= 8 and not cuts)
    )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(requests(), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damaged_requests_have_the_same_outcome(
    frames: list[bytes], damage: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(frames))
    for at, value in damage:
        data[at % len(data)] = value
    asyncio.run(both([send_request(0), bytes(data)]))


async def test_plain_sends_take_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the comparisons above would prove nothing."""
    handed: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        handed.extend(request.code for request in requests)
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    half = Half(lane=True, metrics=False, segment=1 << 20)
    await half.read(b"".join(send_request(queue) for queue in range(4)))
    assert handed == [310] * 4  # the queues are not known yet
    await half.read(b"".join(send_request(number % 4, number) for number in range(64)))
    assert handed == [310] * 4
    assert half.state.traffic.messages_in == 68
    heartbeat = Command.request(34, 9, {}, b"{}").encode()
    await half.read(send_request(0) + heartbeat + send_request(1))
    assert handed == [310] * 4 + [34, 310]
    half.close()


async def test_a_batch_takes_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        handed.extend(request.code for request in requests)
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    fields = send_fields("T", "UNIQ_KEY\1K\2WAIT\1true\2", e="0", m="true")
    entries = b"".join(entry(b"body %d" % number, b"TAGS\1paid\2", 0) for number in range(10))
    batch = Command(320, 5, 0, ext_fields=fields, body=entries).encode()
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=False, segment=1 << 20)
        for _ in range(2):
            await half.read(send_request(0))
        handed.clear()
        await half.read(batch)  # alone in its read
        await half.read(send_request(0) + batch + batch + send_request(0))
        assert handed == ([] if lane else [320, 310, 320, 320, 310])
        assert half.state.traffic.messages_in == 2 + 10 + 22
        outcomes.append(half.outcome())
        half.close()
    assert outcomes[0] == outcomes[1]


async def test_delayed_messages_take_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        handed.extend(request.opaque for request in requests)
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    levels = ["3", "1", "18", "3", "19", "03"]
    frames = [delayed_request(level, number) for number, level in enumerate(levels)]
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=False, segment=1 << 20)
        await half.read(send_request(0, 9))
        for frame in frames[:3]:  # the queues of these levels are not there yet
            await half.read(frame)
        handed.clear()
        await half.read(frames[0])
        await half.read(b"".join(frames[:4]) + send_request(0, 9))
        for frame in frames[4:]:  # a level that there is not, one that is written in an odd way
            await half.read(frame)
        assert handed == ([4, 5] if lane else [0, 0, 1, 2, 3, 9, 4, 5])
        queue = half.state.store.queue("SCHEDULE_TOPIC_XXXX", 2)
        assert queue is not None
        assert queue.tags(0, 9) == [Still().now_ms() + 10_000] * 5
        assert half.delays._alarm.is_set
        outcomes.append(half.outcome())
        half.close()
    assert outcomes[0] == outcomes[1]


async def test_half_messages_take_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        handed.extend(request.opaque for request in requests)
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=True, segment=1 << 20)
        await half.read(send_request(0, 9))
        await half.read(half_request(9))  # the queue of half messages is not there yet
        handed.clear()
        await half.read(half_request(1))
        await half.read(half_request(2) + send_request(0, 3) + half_request(4, "KEYS\1k\2", "5"))
        await half.read(half_request(5, "CHECK_IMMUNITY_TIME_IN_SECONDS\0019\2"))
        await half.read(half_request(6, flag="0"))  # its flags do not say so
        await half.read(half_request(7, flag="12"))  # nor do these
        assert handed == ([5, 6, 7] if lane else [1, 2, 3, 4, 5, 6, 7])
        outcomes.append(half.outcome())
        half.state.apply(
            msgspec.structs.replace(half.state.config, reject_transaction_message=True)
        )
        half.wire.written.clear()
        await half.read(send_request(0, 9) + half_request(8))
        assert b"sending transaction message is forbidden" in half.wire.written
        half.close()
    assert outcomes[0] == outcomes[1]
    queue = next(each for each in outcomes[1]["queues"] if each[0] == "RMQ_SYS_TRANS_HALF_TOPIC")
    assert queue[2] == 7


async def test_a_frame_in_two_reads_does_not_end_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    await half.read(send_request(0))
    counts: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        counts.append(len(requests))
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    data = b"".join(send_request(0, number) for number in range(30))
    await half.read(data[:1000])
    await half.read(data[1000:])
    assert counts == []  # also the one that was cut
    assert half.state.traffic.messages_in == 31
    half.close()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queues each burst had that was written without a batch."""
    runs: list[int] = []
    write_alone = CommitLogWriter.write_alone

    def spy(self: CommitLogWriter, *args: Any) -> None:
        runs.append(len(args[1]))
        write_alone(self, *args)

    monkeypatch.setattr(CommitLogWriter, "write_alone", spy)
    return runs


class Full:
    """A file that takes nothing more."""

    def write(self, position: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, f"no space for {len(data)} bytes at {position}")


@pytest.mark.parametrize("flag", [0, 2], ids=["", "one way"])
async def test_a_burst_that_cannot_be_written_is_refused(alone: list[int], flag: int) -> None:
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=False, segment=1 << 20)
        for queue in (0, 1, 1):
            await half.read(send_request(queue))
        segment = half.state.store.log._current
        assert segment is not None
        segment.opened, sound = Full(), segment.opened  # type: ignore[assignment]
        await half.read(send_request(0, 7, flag=flag) + send_request(1, 8, flag=flag))
        segment.opened = sound
        await half.read(send_request(0, 9))
        outcomes.append(half.outcome())
        half.close()
    assert outcomes[0] == outcomes[1]
    assert outcomes[1]["answers"].count(b'"code":14,') == (0 if flag else 2)
    assert alone == [1, 2, 1]


async def test_pulls_that_wait_for_a_burst_are_woken(alone: list[int]) -> None:
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=False, segment=1 << 20)
        await half.read(send_request(0) + send_request(1))
        await half.read(send_request(0))
        woken: list[dict[int, int]] = []
        half.state.writer.arrived.append(
            lambda arrivals, woken=woken: woken.append(  # type: ignore[misc]
                {queue.queue_id: start for queue, start in arrivals.items()}
            )
        )
        queue = half.state.store.queue("T", 1)
        assert queue is not None
        queue.waiting = 1
        await half.read(send_request(0) + send_request(1) + send_request(1))
        outcomes.append(woken)
        half.close()
    assert outcomes == [[{1: 1}], [{1: 1}]]
    assert alone == [1, 2]


async def test_only_a_burst_that_is_all_there_is_leaves_without_a_batch(alone: list[int]) -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    state, first = half.state, half.connection
    for _ in range(2):
        await half.read(send_request(0))
    assert alone == [1]
    heartbeat = Command.request(34, 9, {}, b"{}").encode()
    await half.read(send_request(0) + heartbeat)
    assert alone == [1], "something follows it in the read"
    other = half.connection = Connection(half.dispatcher, Shared(Limits()), first._loop)
    other.connection_made(half.wire)
    await half.read(send_request(0))
    assert alone == [1], "it is from another client than the last"
    await half.read(send_request(0))
    assert alone == [1, 1]
    for name, value in (("messages", 1), ("notes", 1), ("failed", True), ("held", {other: []})):
        before = getattr(state.batch, name)
        setattr(state.batch, name, value)
        assert not state.writer.takes_alone(other)
        setattr(state.batch, name, before)
    assert state.writer.takes_alone(other)
    state.apply(BrokerConfig(flush_disk_type="SYNC_FLUSH"))
    assert not state.writer.takes_alone(other)
    other.connection_lost(None)
    half.connection = first
    half.close()


async def test_a_new_limit_is_kept_at_once() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    for _ in range(2):  # the second takes the lane
        await half.read(send_request(0))
    half.state.apply(BrokerConfig(max_message_size=3))
    half.wire.written.clear()
    await half.read(send_request(0))
    assert b'"code":13,' in half.wire.written
    half.close()


async def test_a_deleted_topic_is_not_written_to() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    for _ in range(2):  # the second takes the lane
        await half.read(send_request(0))
    half.state.topics.remove("T", 1)
    half.state.store.delete_topic("T")
    half.wire.written.clear()
    await half.read(send_request(0))
    queue = half.state.store.queue("T", 0)
    assert queue is None or queue.next_offset <= 1  # a new queue, not the one that was deleted
    assert half.wire.written
    half.close()


async def test_a_queue_that_a_topic_no_longer_has_is_refused() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    for _ in range(2):
        await half.read(send_request(3))
    less = TopicConfig(topic_name="T", read_queue_nums=1, write_queue_nums=1)
    half.state.topics.put("T", less, 1)
    half.wire.written.clear()
    await half.read(send_request(3))
    assert b"request queueId[3] is illegal" in half.wire.written
    half.close()


def test_answers_of_a_burst_come_apart() -> None:
    frames = [Command.request(310, number).reply(0).encode() for number in (4, 5, 6)]
    assert [each.opaque for each in answered_by(b"".join(frames))] == [4, 5, 6]
    late = all_with_code(b"".join(frames), 10)
    assert late == b"".join(Command.request(310, number).reply(10).encode() for number in (4, 5, 6))


def test_packed_records_are_appended_to_all_their_queues_or_to_none() -> None:
    store = MessageStore.open(None, StoreOptions(segment_size=1 << 20), store_host=HOST)
    first, gone = store.make_queue("T", 0), store.make_queue("U", 0)
    store.append(first, [Record(topic=b"T", body=b"x")], [0], 1)
    before = store.log.tail
    gone.forget()
    numbers = [1, 2]
    columns = (
        array("Q", numbers).tobytes(),
        array("q", numbers).tobytes(),
        array("I", numbers).tobytes(),
    )
    run: Run = (first, 1, 2, 9, *columns)
    with pytest.raises(StoreError):
        store.append_packed(b"z" * 9, [run, (gone, 0, 1, 9, 5, 5, 5)])
    assert (first.next_offset, gone.next_offset, store.log.tail) == (1, 0, before)
    store.append_packed(b"z" * 9, [run])
    assert (first.entries(1, 2), first.tags(1, 2)) == (([1, 2], [1, 2]), [1, 2])
    store.close()
