"""Pops, acks and ends of transactions straight from a read: the same as by the dispatcher.

Two brokers get the same reads, one with the lanes and one without: log, index, answers, counters,
offsets and what is in flight must be the same afterwards.
"""

import asyncio
import errno
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.model.names import REVIVE_TOPIC_PREFIX
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.protocol.frame import FRAME_LIMIT, encode_frame
from pocketmq.protocol.requests.pop import bits_of
from pocketmq.store.disk import StoredFile
from tests.broker.pop.counter import pop_fields
from tests.native.halves import Half, Still, half_request, send_request, split

NOW_MS = Still().now_ms()
WARM = [send_request(n % 4, n, b"%d" % n) for n in range(24)] + [half_request(n) for n in range(4)]


def pop_request(opaque: int = 1, flag: int = 0, **changes: Any) -> bytes:
    return Command(200050, opaque, flag, ext_fields=pop_fields("T", **changes)).encode()


def ack_request(queue: int, place: int, opaque: int = 1, flag: int = 0, **changes: Any) -> bytes:
    fields = {
        "consumerGroup": "G", "topic": "T", "queueId": str(queue), "offset": str(place),
        "extraInfo": f"{place} {NOW_MS} 10000 0 0 broker-a {queue} {place}",
    } | changes  # fmt: skip
    return Command(200051, opaque, flag, ext_fields=fields).encode()


def acks_request(queue: int, offsets: list[int], opaque: int = 1, **changes: Any) -> bytes:
    ack = {
        "b": bits_of(offsets, 0), "c": "G", "it": 10000, "pt": NOW_MS, "q": queue, "r": "0",
        "rq": 0, "so": 0, "t": "T",
    } | changes  # fmt: skip
    body = json.dumps({"acks": [ack], "brokerName": "broker-a"}).encode()
    return Command(200151, opaque, ext_fields={}, body=body).encode()


def end_request(place: tuple[int, int], opaque: int = 1, flag: int = 2, **changes: Any) -> bytes:
    fields = {
        "producerGroup": "PG", "tranStateTableOffset": str(place[0]),
        "commitLogOffset": str(place[1]), "commitOrRollback": "8",
        "fromTransactionCheck": "false", "msgId": "K", "transactionId": "K",
    } | changes  # fmt: skip
    return Command(37, opaque, flag, ext_fields=fields).encode()


def places() -> list[tuple[int, int]]:
    """Where the half messages of `WARM` lie: their offsets, and positions in the log."""

    async def read() -> list[tuple[int, int]]:
        half = Half(lane=False, metrics=False, segment=1 << 20)
        for data in WARM:
            await half.read(data)
        answers, _, _ = cut_commands(bytes(half.wire.written), 0, FRAME_LIMIT)
        half.close()
        return [
            (int(each.ext["queueOffset"]), int(each.ext["msgId"][-16:], 16))
            for each in answers[-4:]
        ]

    return asyncio.run(read())


HALVES = places()
JOURNAL = f"{REVIVE_TOPIC_PREFIX}DefaultCluster"
NUMBERS = st.sampled_from(["0", "1", "-1", "4", "32", "33", "x", "", "1.0", "9" * 19, "9" * 30])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request, most often a usual one."""
    flag = draw(st.sampled_from([0, 0, 0, 0, 2, 1]))
    opaque, changes = draw(st.integers(-5, 99)), dict[str, Any]()
    odd = draw(st.integers(0, 3)) == 0
    match draw(st.integers(0, 5)):
        case 0 | 1:
            names = ["queueId", "maxMsgNums", "invisibleTime", "pollTime", "bornTime", "initMode"]
            changes["maxMsgNums"] = draw(st.sampled_from(["1", "2", "3", "32"]))
            if odd:
                name = draw(st.sampled_from([*names, "order", "exp", "expType", "consumerGroup"]))
                values = NUMBERS | st.sampled_from(["true", "paid", "T", "SQL92", "TAG", "*"])
                changes[name] = draw(values)
            return pop_request(opaque, flag, **changes)
        case 2:
            if odd:
                names = ["consumerGroup", "topic", "queueId", "offset", "extraInfo"]
                changes[draw(st.sampled_from(names))] = draw(NUMBERS)
            place = draw(st.integers(0, 3)), draw(st.integers(0, 6))
            return ack_request(*place, opaque, flag, **changes)
        case 3:
            if odd:
                texts: st.SearchStrategy[Any] = st.sampled_from(
                    ["", "x", "0", 1, None, -1, 10**30, 1.5, [], "AQ=="]
                )
                changes[draw(st.sampled_from(["b", "c", "pt", "q", "r", "rq", "so", "t"]))] = draw(
                    texts
                )
            offsets = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
            return acks_request(draw(st.integers(0, 3)), offsets, opaque, **changes)
        case 4:
            half = draw(st.sampled_from(HALVES))
            changes["commitOrRollback"] = draw(st.sampled_from(["8", "8", "12", "0"]))
            if odd:
                names = ["producerGroup", "tranStateTableOffset", "commitLogOffset"]
                name = draw(st.sampled_from([*names, "fromTransactionCheck", "commitOrRollback"]))
                changes[name] = draw(NUMBERS | st.just("true"))
            return end_request(half, opaque, draw(st.sampled_from([0, 2, 2])), **changes)
        case _:
            return send_request(draw(st.integers(0, 3)), opaque)


def state_of(half: Half) -> dict[str, Any]:
    """Everything that can be told apart, of pops and transactions, too."""
    state, pops = half.state, half.state.pops
    found: dict[str, Any] = half.outcome()
    found["offsets"] = state.offsets.committed, state.offsets.pulled
    found["given"] = {
        pair: (flow.messages, flow.size, flow.times) for pair, flow in state.stats.given.items()
    }
    found["pops"] = state.traffic.pulls_found, state.traffic.messages_out
    if isinstance(pops, Pops):
        found["in flight"] = {
            pair: {queue: (each.next, sorted(each.held)) for queue, each in queues.items()}
            for pair, queues in pops.table.all_in_flight.by_group.items()
        }
        found["due"] = pops.table.deadlines.next_ms
    assert state.halves is not None
    found["halves"] = state.halves.states.copy()
    found["batch"] = state.batch.notes, state.batch.messages
    return found


def records_in(data: bytes) -> list[tuple[str, bytes, bytes]]:
    """Records as topic, body and all of their bytes but the position in the log."""
    found, at = [], 0
    while size := int.from_bytes(data[at : at + 4]):
        record = data[at : at + size]
        body_end = 88 + int.from_bytes(record[84:88])
        topic = record[body_end + 1 : body_end + 1 + record[body_end]].decode()
        found.append((topic, record[88:body_end], record[:28] + record[36:]))
        at += size
    return found


def one_by_one(entry: list[Any]) -> list[list[Any]]:
    """An entry of the pops' journal; of acks one for each message."""
    *which, acked, later = entry
    return [[*which, [each], later] for each in acked] if which[0] == "a" else [entry]


def anywhere(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without the order of answers, and without positions in the log.

    What was carried out together has one record of the pops' journal. A lane that takes sends out of
    the middle of a read makes two of it, and all that follows lies elsewhere.
    """
    records = [each for segment in outcome["log"] for each in records_in(segment + bytes(4))]
    answers, _, _ = cut_commands(outcome["answers"], 0, FRAME_LIMIT)
    return outcome | {
        "tail": None,
        "log": sorted(whole for topic, _, whole in records if topic != JOURNAL),
        "journal": [
            entry
            for topic, body, _ in records
            if topic == JOURNAL
            for each in msgspec.msgpack.decode(body)
            for entry in one_by_one(each)
        ],
        "queues": [
            (topic, queue_id, length, tags)
            for topic, queue_id, length, _, tags in outcome["queues"]
            if topic != JOURNAL
        ],
        "answers": sorted(map(said, answers)),
    }


def said(answer: Command) -> tuple[Any, ...]:
    """An answer without positions in the log."""
    fields = sorted((name, value) for name, value in answer.ext.items() if name != "msgId")
    records = [whole for _, _, whole in records_in(answer.body + bytes(4))]
    return answer.opaque, answer.code, answer.remark or "", fields, records


async def compare(reads: list[bytes], *, ordered: bool = True, **options: Any) -> dict[str, Any]:
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, **({"metrics": False, "segment": 1 << 20} | options))
        for data in [*WARM, *reads]:
            await half.read(data)
        outcomes.append(state_of(half))
        half.close()
    if not ordered:
        outcomes = [anywhere(outcome) for outcome in outcomes]
    for name, expected in outcomes[0].items():
        if outcomes[1][name] != expected:  # an assertion would compare a long log line by line
            pytest.fail(f"{name}: {outcomes[1][name]!r:.2000} and not {expected!r:.2000}")
    return outcomes[1]


@settings(max_examples=100, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=12), st.booleans())
def test_requests_one_at_a_time_have_the_same_outcome(frames: list[bytes], metrics: bool) -> None:
    asyncio.run(compare([pop_request(), *frames], metrics=metrics))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(requests(), min_size=1, max_size=12),
    st.lists(st.integers(1, 1500), max_size=3),
    st.sampled_from([1 << 20, 64 << 10]),
)
def test_requests_in_any_reads_have_the_same_outcome(
    frames: list[bytes], cuts: list[int], segment: int
) -> None:
    reads = [pop_request(), *split(b"".join(frames), cuts)]
    asyncio.run(compare(reads, ordered=False, segment=segment))


@settings(max_examples=60, deadline=None)
@given(requests(), st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=3))
def test_damaged_requests_have_the_same_outcome(
    frame: bytes, damage: list[tuple[int, int]]
) -> None:
    data = bytearray(frame)
    for at, byte in damage:
        data[8 + at % (len(data) - 8)] = byte
    asyncio.run(compare([pop_request(), pop_request(), bytes(data)]))


async def test_acks_of_what_was_popped_and_ends_have_the_same_outcome() -> None:
    pops = [pop_request(1, maxMsgNums="1"), pop_request(2, maxMsgNums="3")]
    acks = [ack_request(queue, place, place) for queue in range(4) for place in range(4)]
    ends = [
        end_request(half, n, commitOrRollback="8" if n else "12") for n, half in enumerate(HALVES)
    ]
    outcome = await compare([*pops, *acks, *ends])
    assert outcome["in flight"] == {}
    assert outcome["due"] is None
    assert len(outcome["halves"]) == len(HALVES)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of requests that came to the dispatcher."""
    numbers: list[int] = []
    received = Dispatcher.requests_received

    def spy(self: Dispatcher, connection: Connection, requests: list[Command]) -> None:
        numbers.extend(request.opaque for request in requests)
        received(self, connection, requests)

    monkeypatch.setattr(Dispatcher, "requests_received", spy)
    return numbers


async def test_usual_requests_do_not_come_to_the_dispatcher(handed: list[int]) -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    for data in WARM:
        await half.read(data)
    await half.read(pop_request(1, maxMsgNums=6))  # the first one of a broker
    handed.clear()
    await half.read(pop_request(2, maxMsgNums=1))
    await half.read(ack_request(0, 0, 3))
    await half.read(acks_request(1, [0, 1], 4))
    await half.read(end_request(HALVES[0], 5) + send_request(0, 6) + end_request(HALVES[1], 7, 0))
    assert handed == []
    await half.read(pop_request(8, exp="paid"))
    await half.read(pop_request(9) + pop_request(10))
    await half.read(end_request(HALVES[0], 11))
    assert handed == [8, 9, 10, 11]
    half.close()


class NoSpace:
    """A file that can be read and takes nothing more."""

    def __init__(self, sound: StoredFile) -> None:
        self.map, self.view = sound.map, sound.view

    def write(self, position: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, f"no space for {len(data)} bytes at {position}")


async def test_acks_that_cannot_be_written_are_refused_and_pops_answered() -> None:
    outcomes = []
    for lane in (False, True):
        half = Half(lane=lane, metrics=False, segment=1 << 20)
        for data in [*WARM, pop_request(1, maxMsgNums=6), pop_request(2, maxMsgNums=1)]:
            await half.read(data)
        half.wire.written.clear()
        segment = half.state.store.log._current
        assert segment is not None
        segment.opened, sound = NoSpace(segment.file), segment.opened  # type: ignore[assignment]
        await half.read(pop_request(3, maxMsgNums=1))
        for queue in range(4):
            await half.read(acks_request(queue, [0, 1, 2, 3, 4, 5], queue))
            await half.read(end_request(HALVES[queue], 10 + queue, 2 if queue else 0))
        segment.opened = sound
        await half.read(pop_request(4, maxMsgNums=1))
        outcomes.append(state_of(half))
        half.close()
    assert outcomes[0] == outcomes[1]
    answers, _, _ = cut_commands(outcomes[1]["answers"], 0, FRAME_LIMIT)
    codes = {each.opaque: each.code for each in answers}
    assert codes[3] == codes[4] == 0
    assert 14 in (codes[0], codes[1], codes[2], codes[3])
    assert codes[10] == 14


async def test_a_field_that_comes_twice_has_the_same_outcome() -> None:
    frame = pop_request(5)
    text = frame[8:].replace(b'"topic":"T"', b'"topic":"none","topic":"T"')
    twice = encode_frame(0, text.replace(b'{"code":200050,', b'{"code":200050,"code":11,'))
    await compare([pop_request(), encode_frame(0, text), twice])
