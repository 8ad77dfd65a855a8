"""Apache's own Python client, unmodified and in a process of its own, on an embedded cluster."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from tests.proxy.peers import PATIENCE, Served, serving

pytest.importorskip("rocketmq")


async def run(story: str, served: Served, group: str = "g", topics: tuple[str, ...] = ()) -> None:
    """Run a story of `official_client`, whose push consumer receives from topics."""
    words = ("-m", "tests.proxy.official_client", story, served.proxy.address)
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        async with asyncio.timeout(3 * PATIENCE):
            if topics and await child.stdout.readline() == b"polls\n":
                for topic in topics:
                    await served.polled(topic, group)
                child.stdin.write(b"\n")
            _, complaint = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()
    assert child.returncode == 0, complaint.decode()


async def test_a_simple_consumer_receives_what_a_producer_sends() -> None:
    async with serving() as served:
        await run("simple", served)


async def test_a_push_consumer_gets_delayed_and_transactional_messages() -> None:
    async with serving(transactionCheckInterval=500, transactionTimeOut=500) as served:
        await run("push", served, "g", ("normal", "delay", "tx"))


async def test_a_message_group_keeps_its_order_through_retries_and_dead_letters() -> None:
    async with serving() as served:
        await served.group("ordered", consume_message_orderly=True, retry_max_times=1)
        await run("ordered", served, "ordered", ("fifo",))
        dead = await served.admin.messages.dead_letters("ordered")
        assert [each.body for each in dead.messages] == [b"0"]
