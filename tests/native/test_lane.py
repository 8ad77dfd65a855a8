"""The lane does with a read exactly what the dispatcher does request by request.

Two brokers get the same reads, one with the lane and one without: log, index, answers, counters
and measures must be the same afterwards.
"""

import asyncio
import json
import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.assembly import make_state
from pocketmq.broker.by_code import HANDLERS
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import all_with_code, answered_by
from pocketmq.broker.name_servers.routes import RouteCache
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.errors import StoreError
from pocketmq.model import TopicConfig
from pocketmq.net import Connection, Limits
from pocketmq.net.shared import Shared
from pocketmq.protocol import Command
from pocketmq.protocol.frame import encode_frame
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.appending import Run
from tests.access.attempts import send, sign
from tests.broker.running import client, running, send_fields

core = pytest.importorskip("pocketmq_core")

HOST = bytes([10, 0, 0, 1, 0, 0, 42, 159])
LONG = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums",
    "e": "queueId", "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties",
    "j": "reconsumeTimes", "k": "unitMode", "l": "maxReconsumeTimes", "m": "batch", "n": "bname",
}  # fmt: skip


class Still:
    """A clock that stands."""

    def now(self) -> float:
        return 1_700_000_000.5

    def now_ms(self) -> int:
        return 1_700_000_000_500


class Kept(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("10.0.0.1", 10911), "peername": ("10.0.0.7", 4711)})
        self.written = bytearray()
        self.ended = False

    def write(self, data: Any) -> None:
        self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.written += b"".join(list_of_data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.ended = True


class Half:
    """One broker without sockets."""

    def __init__(self, *, lane: bool, metrics: bool, segment: int) -> None:
        loop = asyncio.get_running_loop()
        exporter: dict[str, Any] = {"metrics_exporter_type": "PROM"} if metrics else {}
        config = BrokerConfig(max_message_size=600, **exporter)
        store = MessageStore.open(None, StoreOptions(segment_size=segment), store_host=HOST)
        state = make_state(config, store, Still(), "10.0.0.1:10911", HOST, RouteCache())
        state.unique_ids = UniqueIds(HOST[:4], 1, 2)
        for name, number in (("T", 4), ("Ü", 2)):
            topic = TopicConfig(topic_name=name, read_queue_nums=number, write_queue_nums=number)
            state.topics.put(name, topic, 0)
        self.state = state
        self.dispatcher = Dispatcher(state, HANDLERS, loop)
        shared = Shared(Limits())
        self.connection = Connection(self.dispatcher, shared, loop)
        self.wire = Kept()
        self.connection.connection_made(self.wire)
        assert self.connection.lane is not None
        if not lane:
            self.connection.lane = None

    async def read(self, data: bytes) -> None:
        self.connection.get_buffer(-1)[: len(data)] = data
        random.seed(7)  # a queue that the broker chooses
        self.connection.buffer_updated(len(data))
        for _ in range(40):  # a read with many requests takes several iterations
            await asyncio.sleep(0)

    def outcome(self) -> dict[str, Any]:
        """Everything that can be told apart."""
        state, log = self.state, self.state.store.log
        queues = [
            queue for topic in sorted(state.store.queues.topics())
            for queue in state.store.queues.of(topic)
        ]  # fmt: skip
        measures = state.measures
        return {
            "answers": bytes(self.wire.written),
            "ended": self.wire.ended,
            "log": [bytes(segment.view) for segment in log.segments],
            "tail": (log.tail, log.written, log.limit),
            "queues": [
                (q.topic, q.queue_id, q.next_offset, q.entries(0, 999), q.tags(0, 999))
                for q in queues
            ],
            "traffic": (
                state.traffic.messages_in, state.traffic.bytes_in, state.traffic.refused,
                state.traffic.times(),
            ),
            "stats": {
                topic: (flow.messages, flow.size, flow.times)
                for topic, flow in state.stats.stored.items()
            },
            "rpc": measures and {key: sum(row) for key, row in measures.rpc.counts.items()},
            "sizes": measures and (measures.size.counts, measures.size.sums),
        }  # fmt: skip

    def close(self) -> None:
        self.connection.connection_lost(None)
        self.state.store.close()


async def both(
    reads: list[bytes], *, metrics: bool = False, segment: int = 1 << 20, ordered: bool = True
) -> Half:
    """Give reads to both brokers and compare; return the one with the lane, closed.

    A refusal overtakes answers that wait for the end of a batch. Where batches differ (a frame is
    cut by the end of a read, or there are more than a first batch has) any order will do.
    """
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=metrics, segment=segment)
        try:
            for data in reads:
                await half.read(data)
            outcomes.append(half.outcome())
        finally:
            half.close()
    if not ordered:
        for outcome in outcomes:
            outcome["answers"] = sorted(apart(outcome["answers"]))
    for name, expected in outcomes[0].items():
        assert outcomes[1][name] == expected, name
    return half


def apart(frames: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(frames):
        end = at + 4 + int.from_bytes(frames[at : at + 4], "big")
        found.append(frames[at:end])
        at = end
    return found


_NAMES = st.sampled_from(
    ["UNIQ_KEY", "TAGS", "KEYS", "WAIT", "DELAY", "TRAN_MSG", "TRACE_ON", "POP_CK", "INNER_NUM",
     "XTAGS", "MODEL", "TIMER_DELAY_SEC", "MSG_REGION", "W", ""]
)  # fmt: skip
_SOME = st.sampled_from(["", "A1", "ab c", "é", "😀", "true", "false", "\0", "x" * 300, '"', "\\"])
_PROPERTIES = st.one_of(
    st.sampled_from(["UNIQ_KEY\1K1\2TAGS\1paid\2", "UNIQ_KEY\1K2\2TAGS\1é😀\2WAIT\1true\2"]),
    st.lists(st.tuples(_NAMES, _SOME), max_size=4).map(
        lambda pairs: "".join(f"{name}\1{value}\2" for name, value in pairs)
    ),
    st.lists(st.tuples(_NAMES, _SOME), max_size=3).map(
        lambda pairs: "UNIQ_KEY\1KEY\2" + "\2".join(f"{name}\1{value}" for name, value in pairs)
    ),
    st.text(max_size=9),
)
_ODD_NUMBERS = st.sampled_from(
    ["0", "1", "3", "-1", "4", "08", "+1", "-0", "1.0", "", "x", "99999999999"]
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request, most often a plain send; or one that differs from it in a detail."""
    fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1paid\2")
    fields["e"] = str(draw(st.integers(0, 3)))
    code, flag, kind, body = 310, 0, 0, draw(st.binary(min_size=1, max_size=9))
    for change in draw(st.lists(st.integers(0, 11), max_size=2)):
        match change:
            case 0:
                fields["i"] = draw(_PROPERTIES)
            case 1:
                fields[draw(st.sampled_from("defghjkl"))] = draw(_ODD_NUMBERS)
            case 2:
                fields["b"] = draw(st.sampled_from(["T", "Ü", "new", "%RETRY%g", "TBW102", "a b"]))
            case 3:
                fields.pop(draw(st.sampled_from("abcdefghijkm")), None)
            case 4:
                fields[draw(st.sampled_from("nmlz"))] = draw(_SOME)
            case 5:
                body = draw(st.sampled_from([b"", b"x" * 600, b"x" * 601]))
            case 6:
                flag = draw(st.sampled_from([2, 2, 1, 3, 4]))
            case 7:
                kind = 1
            case 8:
                code = draw(st.sampled_from([10, 10, 320, 325, 34, 999]))
            case 9:
                fields["f"] = draw(st.sampled_from(["1", "4", "8", "128", "32", "48", "256"]))
            case _:
                pass
    if code == 10:
        fields = {LONG.get(key, key): value for key, value in fields.items()}
    command = Command(
        code, draw(st.integers(-5, 9)), flag, ext_fields=fields, body=body, serialize=kind
    )
    if draw(st.integers(0, 9)):
        return command.encode()
    pairs = [*fields.items(), *draw(st.lists(st.sampled_from([*fields.items()]), max_size=1))]
    text = ",".join(
        f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in pairs
    )
    top = draw(
        st.sampled_from(['"code":310', '"code":310,"flag":2', '"code": 310', '"code":"310"'])
    )
    header = f'{{{top},"extFields":{{{text}}},"opaque":5,"version":1}}'
    return encode_frame(0, header.encode(), body)


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


def send_request(queue: int, opaque: int = 1, body: bytes = b"hello", flag: int = 0) -> bytes:
    fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1paid\2", e=str(queue))
    return Command(310, opaque, flag, ext_fields=fields, body=body).encode()


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return [part for part in [*parts, data[at:]] if part]


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
    assert counts == [1]  # the one that was cut
    assert half.state.traffic.messages_in == 31
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


async def test_a_gate_is_never_passed_by() -> None:
    """Not even to a queue that an authenticated send has made known."""
    access: dict[str, Any] = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": '{"username":"root","password":"root-secret"}',
    }
    async with running(**access) as (broker, address), client(address) as peer:
        code, fields, body = send("orders")
        signed = sign(fields, body, "root", "root-secret")
        assert (await peer.ask(code, signed, body)).code == 0
        for _ in range(2):
            assert (await peer.ask(code, fields, body)).code == 16
        assert broker.state.traffic.messages_in == 1


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
