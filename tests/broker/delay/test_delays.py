"""Delayed messages of a running broker, over real sockets, in leaps of time."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core import alarm, late_saving
from pocketmq.broker.delay.delays import Delays
from pocketmq.broker.delay.progress import DelayProgress
from pocketmq.broker.upkeep.housekeeping import Housekeeping
from pocketmq.errors import InvalidInput, StoreFull
from pocketmq.protocol import RecordView, RequestCode, decode_body
from pocketmq.protocol.requests.offsets import DelayOffsets
from pocketmq.store.directory import METADATA
from pocketmq.store.metadata import Metadata
from tests.broker.delayed import key_of
from tests.broker.running import (
    Client,
    LoopClock,
    client,
    position,
    pull_fields,
    records,
    running,
    send_fields,
)
from tests.loops import leap, leaping, until

SEND = RequestCode.SEND_MESSAGE_V2
PULL = RequestCode.PULL_MESSAGE
LEVELS = "1s 2s 5s 1m"


async def send(peer: Client, level: int, key: str) -> None:
    answer = await peer.ask(SEND, send_fields("T", f"UNIQ_KEY\1{key}\2DELAY\1{level}\2"), b"x")
    assert answer.code == 0, answer.remark


def keys(broker: Broker) -> list[str]:
    """The unique keys of what has come to the first queue of T."""
    store = broker.state.store
    read = store.read(store.queue("T", 0), 0, 100_000, 1 << 30)
    return [key_of(RecordView(piece, 0)) for piece in read.pieces]


def saved(data: Path) -> dict[str, bytes]:
    """The progress that a stopped broker has left."""
    metadata = Metadata(data / METADATA)
    try:
        return dict(metadata.documents(DelayProgress.kind))
    finally:
        metadata.close()


def feature(broker: Broker) -> Delays:
    assert broker._parts is not None
    (found,) = [each for each in broker._parts.state.features if isinstance(each, Delays)]
    return found


async def no_chores(broker: Broker) -> None:
    """Nothing but deliveries may wake a pull."""
    assert broker._parts is not None
    for each in broker._parts.state.features:
        if isinstance(each, Housekeeping):
            await each.stop()


@leaping
async def test_a_pull_that_waits_gets_a_delayed_message_when_it_is_due() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        await no_chores(broker)
        properties = "UNIQ_KEY\1K\2TAGS\1paid\2DELAY\0012\2"
        answer = await peer.ask(SEND, send_fields("T", properties, e="3", h="9"), b"hello")
        assert answer.code == 0
        assert (answer.ext or {})["queueId"] == "3"
        assert (answer.ext or {})["queueOffset"] == "0"
        shown = await peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(position(answer))})
        (waiting,) = records(shown)
        assert (waiting.topic_bytes, waiting.queue_id) == (b"SCHEDULE_TOPIC_XXXX", 1)
        fields = pull_fields("T", queue_id=3, subscription="paid")
        number = peer.post(PULL, fields)
        await leap(1.9)
        assert (await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": "T", "queueId": "3"})).ext == {
            "offset": "0"
        }
        await leap(0.2)
        found = await peer.answer(number)
        assert found.remark == "FOUND"
        (message,) = records(found)
        assert (message.topic_bytes, message.queue_id, message.flag) == (b"T", 3, 9)
        assert (message.stored_body, message.born_timestamp_ms) == (b"hello", 17)
        assert message.property_bytes == waiting.property_bytes


@leaping
async def test_a_message_that_is_due_earlier_sets_the_timer_again() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        await send(peer, 3, "late")
        await leap(1.5)
        await send(peer, 1, "soon")
        await leap(1.1)
        await until(lambda: keys(broker) == ["soon"], "the earlier message")
        await leap(2.5)
        await until(lambda: keys(broker) == ["soon", "late"], "the later message")


@leaping
async def test_without_delayed_messages_there_is_no_timer() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        assert not feature(broker)._alarm.is_set
        await peer.ask(SEND, send_fields("T"), b"x")
        assert not feature(broker)._alarm.is_set
        await send(peer, 1, "K")
        assert feature(broker)._alarm.is_set
        await leap(1.1)
        await until(lambda: keys(broker) == ["K", "K"], "the delayed message")
        assert not feature(broker)._alarm.is_set


@leaping
async def test_a_clock_that_is_set_forward_is_noticed_within_seconds() -> None:
    class Adjustable(LoopClock):
        ahead = 0.0

        def now(self) -> float:
            return super().now() + self.ahead

    clock = Adjustable()
    async with (
        running(clock=clock, message_delay_level=LEVELS) as (broker, address),
        client(address) as peer,
    ):
        await send(peer, 4, "K")
        clock.ahead = 3600.0
        await leap(alarm.LONGEST_SLEEP)
        await until(lambda: keys(broker) == ["K"], "the message")


@leaping
async def test_many_due_messages_are_delivered_in_pieces_between_which_clients_are_served() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        fields = send_fields("T", "UNIQ_KEY\1K\2DELAY\0011\2")
        numbers = [peer.post(SEND, fields, b"x") for _ in range(2000)]
        for number in numbers:
            assert (await peer.answer(number)).code == 0
        delivery = feature(broker)
        steps = []
        deliver = delivery._deliver

        def watched() -> bool:
            before = len(keys(broker))
            outcome = deliver()
            steps.append(len(keys(broker)) - before)
            return outcome

        delivery._deliver = watched  # type: ignore[method-assign]
        await leap(1.1)
        await until(lambda: len(keys(broker)) == 2000, "all messages")
        assert max(steps) == 256
        assert len(steps) == 8


@leaping
async def test_delivery_resumes_after_the_store_was_full() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        await send(peer, 1, "K")
        store = broker.state.store
        append = store.append

        def refuse(*_: object) -> None:
            raise StoreFull(1)

        store.append = refuse  # type: ignore[method-assign,assignment]
        await leap(1.1)
        store.append = append  # type: ignore[method-assign]
        assert keys(broker) == []
        await leap(alarm.RETRY_AFTER)
        await until(lambda: keys(broker) == ["K"], "the message")


@leaping
async def test_a_restart_forgets_and_repeats_nothing(tmp_path: Path) -> None:
    clock = LoopClock()
    async with (
        running(tmp_path, clock, message_delay_level=LEVELS) as (broker, address),
        client(address) as peer,
    ):
        for level in (1, 2, 4):  # the last one waits for longer than any disk takes to stop
            await send(peer, level, f"level {level}")
        await leap(1.1)
        await until(lambda: keys(broker) == ["level 1"], "the first message")
    assert saved(tmp_path)["1"].startswith(b'{"offset":1,')
    await leap(1.0)
    async with running(tmp_path, clock, message_delay_level=LEVELS) as (broker, _):
        await until(lambda: keys(broker) == ["level 1", "level 2"], "the second message")
        await leap(60.0)
        await until(lambda: keys(broker) == ["level 1", "level 2", "level 4"], "the third")


@leaping
async def test_a_broker_that_is_killed_repeats_nothing_whether_progress_was_saved_or_not(
    tmp_path: Path,
) -> None:
    """What is in the files at some moment is what a kill at that moment leaves."""
    clock = LoopClock()
    live = tmp_path / "live"
    small: dict[str, Any] = {"message_delay_level": LEVELS, "mapped_file_size_commit_log": 1 << 20}
    async with (
        running(live, clock, **small) as (broker, address),
        client(address) as peer,
    ):
        await send(peer, 1, "one")
        await send(peer, 3, "two")
        await leap(1.1)
        await until(lambda: keys(broker) == ["one"], "the first message")
        shutil.copytree(live, tmp_path / "unsaved")
        assert dict(broker.state.store.metadata.documents("delay_offset")) == {}
        await leap(late_saving.SAVE_AFTER)
        await until(
            lambda: "1" in dict(broker.state.store.metadata.documents("delay_offset")), "a save"
        )
        await until(lambda: keys(broker) == ["one", "two"], "the second message")
        shutil.copytree(live, tmp_path / "saved")
    for name in ("unsaved", "saved"):
        async with running(tmp_path / name, clock, **small) as (broker, _):
            await leap(10.0)
            await until(lambda: len(keys(broker)) >= 2, "both messages")
            await leap(10.0)
            assert keys(broker) == ["one", "two"]


@leaping
async def test_tools_see_how_far_each_level_is() -> None:
    async with running(message_delay_level=LEVELS) as (broker, address), client(address) as peer:
        await send(peer, 1, "a")
        await send(peer, 1, "b")
        await send(peer, 4, "c")
        await leap(1.1)
        await until(lambda: keys(broker) == ["a", "b"], "two messages")
        answer = await peer.ask(RequestCode.GET_ALL_DELAY_OFFSET)
        assert answer.code == 0
        assert b'"offsetTable":{1:2,4:0}' in answer.body
        assert decode_body(answer.body, DelayOffsets).offset_table == {1: 2, 4: 0}


@leaping
async def test_a_delayed_message_without_a_number_is_refused() -> None:
    async with running() as (_, address), client(address) as peer:
        answer = await peer.ask(SEND, send_fields("T", "DELAY\1soon\2"), b"x")
        assert answer.code == 1
        assert answer.remark == 'java.lang.NumberFormatException: For input string: "soon"'


async def test_a_broker_with_malformed_levels_does_not_start() -> None:
    with pytest.raises(InvalidInput, match="messageDelayLevel"):
        await Broker(BrokerConfig(listen_port=0, message_delay_level="1s soon")).start()
