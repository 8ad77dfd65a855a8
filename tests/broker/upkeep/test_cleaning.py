"""Room for new messages: at the hour of the settings, and when an operator says so."""

import time
from pathlib import Path
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.upkeep.housekeeping import CLEAN_PERIOD
from tests.broker.running import (
    START,
    Client,
    LoopClock,
    client,
    flushed,
    running,
    send_fields,
)
from tests.loops import leap, leaping

SEND, CLEAN_QUEUES, CLEAN_TOPICS, DELETE_OLD = 310, 306, 316, 329
UPDATE_CONFIG, GET_CONFIG = 25, 26
SEGMENT = 4096
HOUR = 3600


async def fill(peer: Client, topic: str = "T") -> None:
    """Send more than one file of the log holds."""
    for _ in range(3):
        answer = await peer.ask(SEND, send_fields(topic), b"x" * 2000)
        assert answer.code == 0, answer.remark


async def deleted(broker: Broker, peer: Client) -> None:
    """Wait until a file is gone: a checkpoint on another thread comes before."""
    for _ in range(200):
        if broker.state.store.log.first > 0:
            return
        await leap(CLEAN_PERIOD)
        await flushed(broker)
        await peer.ask(GET_CONFIG)
    raise AssertionError("the oldest file is still there")


def small(data: Path, clock: LoopClock, **settings: Any) -> Any:
    return running(data, clock, mapped_file_size_commit_log=SEGMENT, **settings)


def hour_of(moment: float) -> int:
    return time.localtime(moment).tm_hour


def until(hour: int, now: float) -> float:
    """Return the seconds until it is that hour."""
    wait = 0.0
    while hour_of(now + wait) != hour:
        wait += HOUR / 4
    return wait


@leaping
async def test_old_messages_go_at_the_hour_of_the_settings(tmp_path: Path) -> None:
    clock = LoopClock()
    late = (hour_of(START) + 6) % 24
    settings = {"file_reserved_time": 1, "delete_when": f"{late:02d}"}
    async with small(tmp_path, clock, **settings) as (broker, address), client(address) as peer:
        await fill(peer)
        log = broker.state.store.log
        clock.forward(3 * HOUR)
        await leap(CLEAN_PERIOD)
        await leap(CLEAN_PERIOD)
        assert log.first == 0
        clock.forward(until(late, clock.now()))
        await deleted(broker, peer)
        assert broker.state.store.make_queue("T", 0).min_offset > 0


@leaping
async def test_old_messages_go_when_an_operator_asks(tmp_path: Path) -> None:
    clock = LoopClock()
    never = (hour_of(START) + 12) % 24
    settings = {"file_reserved_time": 1, "delete_when": f"{never:02d}"}
    async with small(tmp_path, clock, **settings) as (broker, address), client(address) as peer:
        await fill(peer)
        log = broker.state.store.log
        assert (await peer.ask(DELETE_OLD)).code == 0
        assert log.first == 0  # they are not old yet
        clock.forward(2 * HOUR)
        assert (await peer.ask(DELETE_OLD)).code == 0
        await deleted(broker, peer)
        assert (await peer.ask(CLEAN_QUEUES)).code == 0


@leaping
async def test_a_change_of_the_settings_counts_at_once(tmp_path: Path) -> None:
    clock = LoopClock()
    now, never = hour_of(START + 2 * HOUR), (hour_of(START) + 12) % 24
    settings = {"file_reserved_time": 48, "delete_when": f"{never:02d}"}
    async with small(tmp_path, clock, **settings) as (broker, address), client(address) as peer:
        await fill(peer)
        clock.forward(2 * HOUR)
        body = f"deleteWhen={now:02d};{(now + 1) % 24:02d}\nfileReservedTime=1\n".encode()
        assert (await peer.ask(UPDATE_CONFIG, {}, body)).code == 0
        await deleted(broker, peer)


async def test_queues_of_topics_that_are_gone_are_deleted() -> None:
    async with running() as (broker, address), client(address) as peer:
        state = broker.state
        await fill(peer, "T")
        await fill(peer, "U")
        state.topics.remove("U", 0)
        state.offsets.commit("G", "U", 0, 1)
        assert (await peer.ask(CLEAN_TOPICS)).code == 0
        assert state.store.queue("U", 0) is None
        assert state.offsets.query("G", "U", 0) is None
        assert state.store.make_queue("T", 0).next_offset == 3
