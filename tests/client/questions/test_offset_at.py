"""The offset of a time is exact, whoever asks, also at brokers that return one near it."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.aio import Admin
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.asking import run_blocking
from pocketmq.client.questions.offsets import near_offset, offset_at
from pocketmq.protocol import RequestCode as Code
from tests.client.pull.readers import reader
from tests.client.questions.old_broker import QUEUE, OldBroker
from tests.client.servers import Directory, broker, route, serving

TIMES = [1000, 1000, 2000, 2000, 2000, 5000]
EXACT = {0: 3, 1000: 3, 1001: 5, 2000: 5, 2001: 8, 5000: 8, 5001: 9}
"""Offsets by time, in a queue whose first offset is 3."""


@given(
    st.lists(st.integers(0, 50), max_size=40).map(sorted),
    st.integers(0, 2**40),
    st.integers(-1, 51),
    st.integers(0, 2**40),
)
def test_a_search_finds_what_the_store_times_say(
    times: list[int], first: int, time_ms: int, near: int
) -> None:
    old = OldBroker(times, first, answer=near)
    found = run_blocking(offset_at(QUEUE, time_ms, "tools"), old.carry)
    assert found == first + bisect_left(times, time_ms)


@given(st.sets(st.integers(0, 9)), st.integers(0, 11))
def test_messages_that_cannot_be_read_are_passed_over(damaged: set[int], time_ms: int) -> None:
    old = OldBroker(range(10), damaged=damaged)
    found = run_blocking(offset_at(QUEUE, time_ms, "tools"), old.carry)
    readable = [offset for offset in range(10) if offset not in damaged]
    assert [at for at in readable if at < found] == [at for at in readable if at < time_ms]


def test_a_starting_consumer_takes_the_brokers_word_as_in_java() -> None:
    old = OldBroker(TIMES, 3, answer=4)
    assert run_blocking(near_offset(QUEUE, 5001), old.carry) == 4


@asynccontextmanager
async def old_cluster(old: OldBroker) -> AsyncIterator[str]:
    directory = Directory()
    async with serving(old) as (_, address), serving(directory) as (_, name_server):
        directory.routes["orders"] = route(broker("old", address), queues=1)
        yield name_server


async def test_a_pull_consumer_is_told_the_exact_offset() -> None:
    old = OldBroker(TIMES, 3, answer=4)
    async with (
        old_cluster(old) as address,
        reader(address).assign([QUEUE]) as consumer,
    ):
        found = {time: await consumer.offset_for_time(QUEUE, time / 1000) for time in EXACT}
    assert found == EXACT


async def test_an_admin_is_told_the_exact_offset() -> None:
    old = OldBroker(TIMES, 3, answer=4)
    async with old_cluster(old) as address, Admin(address) as admin:
        assert {time: await admin.offsets.at_time(QUEUE, time) for time in EXACT} == EXACT
        assert await admin.offsets.bounds(QUEUE) == (3, 9)


async def test_a_record_reader_is_told_the_exact_offset() -> None:
    old = OldBroker(TIMES, 3, answer=4)
    async with old_cluster(old) as address:
        with RecordReader(ClientOptions(name_servers=address), patience=60.0) as records:
            found = {
                time: await asyncio.to_thread(records.offset_at, QUEUE, time) for time in EXACT
            }
    assert found == EXACT


@pytest.mark.parametrize("code", [Code.GET_MIN_OFFSET, Code.GET_MAX_OFFSET, Code.PULL_MESSAGE])
async def test_admins_name_the_broker_they_mean(code: Code) -> None:
    """Java's MQAdminImpl sets `bname`, which brokers with static topics look at."""
    old = OldBroker(TIMES, 3, answer=4)
    async with old_cluster(old) as address, Admin(address) as admin:
        await admin.offsets.at_time(QUEUE, 2000)
    assert {request.ext.get("bname") for request in old.asked_for(code)} == {"old"}
