"""Timed messages of a running broker, over real sockets, in leaps of time."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.timers.queue import KIND
from pocketmq.broker.timers.timers import Timers
from pocketmq.errors import BodyMalformed
from pocketmq.model.names import TIMER_TOPIC
from pocketmq.protocol import Command, RecordView, RequestCode
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.broker_admin import decode_timer_checkpoint
from pocketmq.store.directory import METADATA
from pocketmq.store.metadata import Metadata
from tests.broker.running import (
    START,
    Client,
    LoopClock,
    client,
    flushed,
    pull_fields,
    records,
    running,
    send_fields,
)
from tests.broker.timed import Timed
from tests.loops import leap, leaping, until

SEND = RequestCode.SEND_MESSAGE_V2
RECALL = RequestCode.RECALL_MESSAGE
START_MS = int(START * 1000)
TOO_FAR = (
    "timer message illegal, the delay time should not be bigger than the max delay 259200000ms; "
    "or if set del msg, the delay time should be bigger than the current time"
)


async def send(peer: Client, key: str, topic: str = "T", **properties: Any) -> Command:
    text = "".join(f"{name}\1{value}\2" for name, value in properties.items())
    return await peer.ask(SEND, send_fields(topic, f"UNIQ_KEY\1{key}\2{text}"), b"x")


def keys(broker: Broker, topic: str = "T") -> list[str]:
    """The unique keys of what has come to the first queue of a topic."""
    store = broker.state.store
    read = store.read(store.queue(topic, 0), 0, 100_000, 1 << 30)
    found = [RecordView(bytes(piece), 0) for piece in read.pieces]
    return [decode_properties(record.property_bytes)["UNIQ_KEY"] for record in found]


def feature(broker: Broker) -> Timers:
    assert broker._parts is not None
    (found,) = [each for each in broker._parts.state.features if isinstance(each, Timers)]
    return found


@leaping
async def test_a_timed_message_comes_at_its_moment_and_no_earlier() -> None:
    async with running() as (broker, address), client(address) as peer:
        assert not feature(broker)._alarm.is_set
        await send(peer, "seconds", TIMER_DELAY_SEC=3)
        await send(peer, "milliseconds", TIMER_DELAY_MS=1500)
        await send(peer, "moment", TIMER_DELIVER_MS=broker.state.clock.now_ms() + 2200)
        await send(peer, "days", TIMER_DELAY_SEC=3 * 24 * 3600)
        number = peer.post(RequestCode.PULL_MESSAGE, pull_fields("T"))
        await leap(1.4)
        assert keys(broker) == []
        await leap(0.2)
        (first,) = records(await peer.answer(number))
        properties = decode_properties(first.property_bytes)
        assert set(properties) == {
            "UNIQ_KEY", "TIMER_DELAY_MS", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS",
            "REAL_TOPIC", "REAL_QID", "CLUSTER", "MSG_REGION", "TRACE_ON",
        }  # fmt: skip
        assert first.store_timestamp_ms >= int(properties["TIMER_OUT_MS"])
        await leap(0.7)
        await until(lambda: keys(broker) == ["milliseconds", "moment"], "the second")
        await leap(0.8)
        await until(lambda: len(keys(broker)) == 3, "the third")
        for _ in range(5):
            await leap((3 * 24 * 3600 - 10) / 5)
        assert len(keys(broker)) == 3
        await leap(10)
        await until(lambda: keys(broker)[3:] == ["days"], "the last")
        await until(lambda: not feature(broker)._alarm.is_set, "nothing to wait for")


@leaping
async def test_what_is_due_already_does_not_wait() -> None:
    async with running() as (broker, address), client(address) as peer:
        for name, value in (
            ("TIMER_DELIVER_MS", 17),
            ("TIMER_DELAY_MS", 0),
            ("TIMER_DELAY_SEC", -9),
        ):
            wanted: dict[str, Any] = {name: value}
            answer = await send(peer, name, **wanted)
            assert (answer.code, "recallHandle" in (answer.ext or {})) == (0, False)
        assert keys(broker) == ["TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC"]


@leaping
async def test_what_cannot_wait_is_refused_in_javas_words() -> None:
    async with running() as (broker, address), client(address) as peer:
        for properties in (
            {"TIMER_DELAY_SEC": 3 * 24 * 3600 + 1},
            {"TIMER_DELAY_MS": 2**63 - 1},
            {"TIMER_DELIVER_MS": "soon"},
            {"TIMER_DELIVER_MS": 17, "TIMER_DEL_UNIQKEY": "T+K"},
        ):
            answer = await send(peer, "K", **properties)
            assert (answer.code, answer.remark) == (13, TOO_FAR)
        answer = await send(peer, "K", TIMER_TOPIC)
        assert answer.code == 16
        assert broker.state.store.queue(TIMER_TOPIC, 0) is None
    async with running(timer_wheel_enable=False) as (_, address), client(address) as peer:
        answer = await send(peer, "K", TIMER_DELAY_SEC=3)
        remark = "accurate timer message is not enabled, timerWheelEnable is false"
        assert (answer.code, answer.remark) == (1, remark)


@leaping
async def test_a_message_whose_time_came_is_not_delayed_again() -> None:
    """Consumers send what they got to another topic as it is."""
    async with running() as (broker, address), client(address) as peer:
        await send(peer, "K", "U", TIMER_DELAY_SEC=3, TIMER_OUT_MS=17)
        assert keys(broker, "U") == ["K"]


@leaping
async def test_a_message_can_be_taken_back() -> None:
    async with running() as (broker, address), client(address) as peer:
        gone = await send(peer, "gone", TIMER_DELAY_SEC=3)
        await send(peer, "kept", TIMER_DELIVER_MS=due_of(gone))
        answer = await peer.ask(RECALL, recall_fields(gone))
        assert (answer.code, (answer.ext or {})["msgId"]) == (0, "gone")
        await leap(3.1)
        await until(lambda: keys(broker) == ["kept"], "the other one")
        answer = await peer.ask(RECALL, recall_fields(gone))
        assert (answer.code, answer.remark) == (604, "recall failed, timestamp invalid")


def due_of(answer: Command) -> int:
    return RecallHandle.parse((answer.ext or {})["recallHandle"]).deliver_at_ms


def recall_fields(answer: Command, **changes: str) -> dict[str, str]:
    handle = (answer.ext or {})["recallHandle"]
    return {"producerGroup": "PG", "topic": "T", "recallHandle": handle} | changes


@leaping
async def test_a_wrong_handle_gets_javas_words() -> None:
    async with running() as (_, address), client(address) as peer:
        sent = await send(peer, "K", TIMER_DELAY_SEC=3)
        await send(peer, "K", "other")
        handle = RecallHandle.parse((sent.ext or {})["recallHandle"])
        other = RecallHandle(
            topic="T", broker_name="elsewhere", deliver_at_ms=handle.deliver_at_ms, message_id="K"
        )
        for changes, code, remark in (
            ({"topic": "missing"}, 17, "recall failed, the topic[missing] not exist"),
            ({"topic": "other"}, 604, "recall failed, topic not match"),
            ({"recallHandle": "nonsense"}, 604, "recall handle is invalid"),
            ({"recallHandle": str(other)}, 604, "recall failed, broker service not available"),
        ):
            answer = await peer.ask(RECALL, recall_fields(sent, **changes))
            assert (answer.code, answer.remark) == (code, remark)
    async with running(recall_message_enable=False) as (_, address), client(address) as peer:
        answer = await peer.ask(RECALL, recall_fields(sent))
        assert (answer.code, answer.remark) == (16, "recall failed, operation is forbidden")


@leaping
async def test_timed_messages_and_recalls_survive_a_restart(tmp_path: Path) -> None:
    clock = LoopClock()
    async with running(tmp_path, clock) as (broker, address), client(address) as peer:
        await send(peer, "early", TIMER_DELAY_SEC=1)
        gone = await send(peer, "gone", TIMER_DELAY_SEC=60)
        await send(peer, "kept", TIMER_DELIVER_MS=due_of(gone))
        assert (await peer.ask(RECALL, recall_fields(gone))).code == 0
        await leap(1.1)
        await until(lambda: keys(broker) == ["early"], "the first")
    async with running(tmp_path, clock) as (broker, address), client(address) as peer:
        await leap(50)
        await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": "T", "queueId": "0"})
        assert keys(broker) == ["early"]
    await leap(100)  # it is due while there is no broker
    async with running(tmp_path, clock) as (broker, address):
        await until(lambda: keys(broker) == ["early", "kept"], "the second")


@leaping
async def test_a_broker_that_was_killed_delivers_what_it_had_not(tmp_path: Path) -> None:
    """A copy of its files, taken while it runs, is what a kill leaves."""
    clock = LoopClock()
    async with running(tmp_path / "a", clock) as (broker, address), client(address) as peer:
        for number in range(20):
            await send(peer, str(number), TIMER_DELAY_MS=1000 + 100 * number)
        await leap(2.05)
        await until(lambda: len(keys(broker)) >= 10, "half of them")
        delivered = keys(broker)
        assert len(delivered) < 20
        shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=shutil.ignore_patterns("lock"))
    await leap(5)
    async with running(tmp_path / "b", clock) as (broker, _):
        await until(lambda: len(keys(broker)) == 20, "all of them")
        assert keys(broker) == [str(number) for number in range(20)]
        await leap(5)
        assert len(keys(broker)) == 20


@leaping
async def test_many_are_delivered_while_others_are_served() -> None:
    async with running() as (broker, address), client(address) as peer:
        fields = send_fields("T", "UNIQ_KEY\1K\2TIMER_DELAY_SEC\1002\2")
        numbers = [peer.post(SEND, fields, b"x") for _ in range(3000)]
        for number in numbers:
            assert (await peer.answer(number)).code == 0
        await leap(2.1)
        await until(lambda: keys(broker) == ["K"] * 3000, "all of them")


@leaping
async def test_what_still_waits_in_a_file_outlives_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "mapped_file_size_commit_log": 65_536,
        "file_reserved_bytes": 200_000,
    }
    clock = LoopClock()
    async with running(tmp_path, clock, **settings) as (broker, address), client(address) as peer:
        gone = await send(peer, "gone", TIMER_DELAY_SEC=3600)
        await send(peer, "kept", TIMER_DELIVER_MS=due_of(gone))
        assert (await peer.ask(RECALL, recall_fields(gone))).code == 0
        half = "UNIQ_KEY\1half\2TRAN_MSG\1true\2PGROUP\1shop\2"
        assert (await peer.ask(SEND, send_fields("T", half, f="4"), b"x")).code == 0
        for _ in range(40):
            await peer.ask(SEND, send_fields("filler"), bytes(16_000))
        for _ in range(2):  # a checkpoint comes first
            await leap(11)
            await flushed(broker)
        await until(lambda: broker.state.store.log.first > 0, "files to go")
        assert keys(broker, "TRANS_CHECK_MAX_TIME_TOPIC") == ["half"]
    async with running(tmp_path, clock, **settings) as (broker, _):
        await leap(3700)
        await until(lambda: keys(broker) == ["kept"], "the message")


def test_a_malformed_state_is_reported(tmp_path: Path) -> None:
    Timed(tmp_path).store.close()
    metadata = Metadata(tmp_path / METADATA)
    metadata.save_documents(KIND, {KIND: b"nonsense"})
    metadata.close()
    with pytest.raises(BodyMalformed):
        Timed(tmp_path)


CHECKPOINT, METRICS, RUNTIME, UPDATE_CONFIG = 60, 61, 28, 25


async def test_waiting_messages_are_counted_by_topic() -> None:
    later = "UNIQ_KEY\1K\2TIMER_DELAY_SEC\x01100\2"
    async with running() as (broker, address), client(address) as peer:
        for topic in ("T", "T", "U"):
            assert (await peer.ask(SEND, send_fields(topic, later), b"x")).code == 0
        told = json.loads((await peer.ask(METRICS)).body)["timingCount"]
        assert {topic: each["count"] for topic, each in told.items()} == {"T": 2, "U": 1}
        checkpoint = decode_timer_checkpoint((await peer.ask(CHECKPOINT)).body)
        assert checkpoint.last_timer_queue_offset == 3
        figures = json.loads((await peer.ask(RUNTIME)).body)["table"]
        assert (figures["timerCongestNum"], figures["timerOffsetBehind"]) == ("3", "0")
        assert broker.state.timed is not None


async def test_a_broker_without_timed_messages_says_so() -> None:
    async with running(timer_wheel_enable=False) as (_, address), client(address) as peer:
        assert (await peer.ask(CHECKPOINT)).remark == "The checkpoint is null"
        assert (await peer.ask(METRICS)).remark == "The timer message store is null"


async def test_delayed_messages_are_listed_by_level() -> None:
    async with running() as (_, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T", "UNIQ_KEY\1K\2DELAY\x013\2"), b"x")
        figures = json.loads((await peer.ask(RUNTIME)).body)["table"]
        assert figures.get("scheduleMessageOffset_3") in {None, "0,1"}
