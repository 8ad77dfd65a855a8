"""Two brokers that get the same reads, one with the lane for plain sends and one without."""

import asyncio
import json
import random
import struct
from typing import Any

import pytest
from hypothesis import strategies as st

from pocketmq.broker.access.opening import AccessControl
from pocketmq.broker.assembly import make_state
from pocketmq.broker.by_code import HANDLERS
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.delay.delays import Delays
from pocketmq.broker.name_servers.routes import RouteCache
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.broker.transactions.checks import TransactionChecks
from pocketmq.model import TopicConfig
from pocketmq.net import Connection, Limits
from pocketmq.net.shared import Shared
from pocketmq.protocol import Command
from pocketmq.protocol.frame import encode_frame
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.requests.access import Acl, Policy, PolicyEntry, User
from pocketmq.store import MessageStore, StoreOptions
from tests.broker.running import send_fields

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

    def __init__(
        self, *, lane: bool, metrics: bool, segment: int, access: dict[str, Any] | None = None
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        exporter: dict[str, Any] = {"metrics_exporter_type": "PROM"} if metrics else {}
        # How long a request has waited, and so whether it is refused, is the machine's doing here.
        config = BrokerConfig(
            max_message_size=600, broker_fast_failure_enable=False, **exporter, **(access or {})
        )
        store = MessageStore.open(None, StoreOptions(segment_size=segment), store_host=HOST)
        state = make_state(config, store, Still(), "10.0.0.1:10911", HOST, RouteCache())
        state.unique_ids = UniqueIds(HOST[:4], 1, 2)
        for name, number in (("T", 4), ("Ü", 2)):
            topic = TopicConfig(topic_name=name, read_queue_nums=number, write_queue_nums=number)
            state.topics.put(name, topic, 0)
        if access is not None:
            AccessControl(state, loop)
            state.users.create(User(username="clerk", password="clerk-secret"), 0)
            rule = PolicyEntry(resource="Topic:T", actions=["Pub"], decision="Allow")
            state.acls.merge("User:clerk", Acl(policies=[Policy(entries=[rule])]), 0)
        self.delays = Delays(state, loop)
        self.delays.start()
        self.checks = TransactionChecks(state, loop)
        self.checks.start()
        self.state = state
        self.dispatcher = Dispatcher(state, HANDLERS, loop)
        shared = Shared(Limits(slice=60))
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
        await asyncio.sleep(0)
        for _ in range(40):  # a read with many requests takes several iterations
            if not self._loop._ready:  # type: ignore[attr-defined] # nothing is left to be done
                return
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
            "alarm": self.delays._alarm.is_set,
            "rpc": measures and {key: sum(row) for key, row in measures.rpc.counts.items()},
            "sizes": measures and (measures.size.counts, measures.size.sums),
        }  # fmt: skip

    def close(self) -> None:
        self.connection.connection_lost(None)
        self.delays._alarm.stop()
        self.checks._alarm.stop()
        self.state.store.close()


async def both(
    reads: list[bytes],
    *,
    metrics: bool = False,
    segment: int = 1 << 20,
    ordered: bool = True,
    access: dict[str, Any] | None = None,
) -> Half:
    """Return reads to both brokers and compare; return the one with the lane, closed.

    A refusal overtakes answers that wait for the end of a batch. Where batches differ (a frame is
    cut by the end of a read, or there are more than a first batch has) any order will do.
    """
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=metrics, segment=segment, access=access)
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
     "_SYS_MSG_PRIORITY_", "__LITE_TOPIC",
     "XTAGS", "MODEL", "TIMER_DELAY_SEC", "MSG_REGION", "W", "", "DELAY", "REAL_TOPIC",
     "REAL_QID", "TRAN_MSG", "__transactionId__", "CHECK_IMMUNITY_TIME_IN_SECONDS",
     "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET", "PGROUP"]
)  # fmt: skip
_SOME = st.sampled_from(
    ["", "2", "A1", "ab c", "é", "😀", "true", "false", "\0", "x" * 300, '"', "\\"]
)
_LEVELS = st.sampled_from(["1", "9", "18", "19", "0", "-1", "03", "+3", "2147483648", "x", ""])
_PROPERTIES = st.one_of(
    st.tuples(_LEVELS, st.lists(st.tuples(_NAMES, _SOME), max_size=2)).map(
        lambda asked: (
            f"UNIQ_KEY\1K\2DELAY\1{asked[0]}\2"
            + "".join(f"{name}\1{value}\2" for name, value in asked[1])
        )
    ),
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


def entry(body: bytes, properties: bytes, flag: int) -> bytes:
    """Return an entry of a batch, as clients write it."""
    size = 22 + len(body) + len(properties)
    head = struct.pack(">iiiii", size, 0, 0, flag, len(body))
    return head + body + struct.pack(">h", len(properties)) + properties


_ENTRIES = st.builds(
    entry,
    st.binary(max_size=9) | st.just(b"x" * 200),
    st.sampled_from([b"", b"UNIQ_KEY\1A\2", b"TAGS\1paid\2UNIQ_KEY\1A\2", b"TAGS\1paid"])
    | st.sampled_from([b"DELAY\0013\2", b"KEYS\1k\2", b"ab\0", b"\xff\1v\2", b"k\1" + b"v" * 600]),
    st.sampled_from([0, 7, -1]),
)


_BATCHES = st.lists(_ENTRIES, min_size=1, max_size=4).map(b"".join)
_BATCHES |= st.tuples(_BATCHES, st.integers(0, 99)).map(lambda cut: cut[0][: cut[1]])


@st.composite
def requests(draw: st.DrawFn) -> bytes:  # noqa: C901 - a table of changes
    """A request, most often a plain send; or one that differs from it in a detail."""
    fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1paid\2")
    fields["e"] = str(draw(st.integers(0, 3)))
    code, flag, kind, body = 310, 0, 0, draw(st.binary(min_size=1, max_size=9))
    for change in draw(st.lists(st.integers(0, 13), max_size=2)):
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
            case 12:
                pairs = draw(st.lists(st.tuples(_NAMES, _SOME), max_size=2))
                texts = [f"{name}\1{value}\2" for name, value in pairs]
                texts += ["UNIQ_KEY\1K\2", "TRAN_MSG\1true\2"]
                fields["i"] = "".join(draw(st.permutations(texts)))
                fields["f"] = draw(st.sampled_from(["4", "4", "5", "0", "12"]))
            case 10 | 11:
                code, fields["m"], body = 320, "true", draw(_BATCHES)
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


def send_request(queue: int, opaque: int = 1, body: bytes = b"hello", flag: int = 0) -> bytes:
    fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1paid\2", e=str(queue))
    return Command(310, opaque, flag, ext_fields=fields, body=body).encode()


def delayed_request(level: str, opaque: int = 1) -> bytes:
    properties = f"UNIQ_KEY\1K{opaque}\2DELAY\1{level}\2TAGS\1a\2"
    fields = send_fields("T", properties, e="0")
    return Command(310, opaque, ext_fields=fields, body=b"later").encode()


def half_request(opaque: int = 1, properties: str = "", flag: str = "4") -> bytes:
    text = f"UNIQ_KEY\1K{opaque}\2TRAN_MSG\1true\2PGROUP\1PG\2{properties}"
    fields = send_fields("T", text, e="0", f=flag)
    return Command(310, opaque, ext_fields=fields, body=b"half").encode()


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return [part for part in [*parts, data[at:]] if part]
