"""What tools learn of messages that wait for their moment."""

import json

from pocketmq.protocol.requests.broker_admin import decode_timer_checkpoint
from tests.broker.running import client, running, send_fields

SEND, CHECKPOINT, METRICS, RUNTIME, UPDATE_CONFIG = 310, 60, 61, 28, 25


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
