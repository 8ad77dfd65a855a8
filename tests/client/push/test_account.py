"""What a consumer tells operators: running info, rates, messages handled on demand."""

import asyncio
import threading
from typing import Any

import pytest

from pocketmq.client.push.handlers import Consumed, TopicHandler
from pocketmq.client.push.running_info import CounterWindow, HandlingStats, stacks
from pocketmq.errors import SystemFailure
from pocketmq.model import ConsumeResult
from pocketmq.protocol import ReceivedMessage, decode_body, encode_body
from pocketmq.protocol.requests.client_calls import ConsumeStatus, RunningInfo
from tests.client.push.stands import GROUP, QUEUE, messages, stand
from tests.loops import leap, leaping, until


def test_rates_are_those_between_seven_readings() -> None:
    """Java: every ten seconds, the first counts from ten seconds before."""
    window = CounterWindow(10.0)
    assert (window.total, window.rate, window.mean) == (0, 0.0, 0.0)
    window.read(100.0, 50, 5)
    assert (window.total, window.rate, window.mean) == (50, 5.0, 10.0)
    for step in range(1, 7):
        window.read(100.0 + 10 * step, 50 + 10 * step, 5)
    assert (window.total, window.rate, window.mean) == (60, 1.0, 0.0)  # the first two are gone


def test_the_hour_says_how_long_handlers_take_if_the_minute_does_not() -> None:
    stats = HandlingStats()
    assert stats.status("orders") == ConsumeStatus()
    topic = stats.of("orders")
    topic.consume_rt.add(30.0, 3)
    topic.failed.add(4)
    topic.pulled.add(32)
    topic.pull_rt.add(8.0)
    stats.read_hour(600.0)
    assert stats.status("orders") == ConsumeStatus(consume_rt=10.0, consume_failed_msgs=4)
    stats.read_minute(600.0)
    assert stats.status("orders") == ConsumeStatus(
        consume_rt=10.0,
        consume_failed_msgs=4,
        consume_failed_tps=0.4,
        pull_rt=8.0,
        pull_tps=3.2,
    )


@leaping
async def test_running_info_has_what_javas_tools_read() -> None:
    release = asyncio.Event()

    async def handler(message: ReceivedMessage) -> Consumed | None:
        if message.queue_offset == 9:
            await release.wait()
        return Consumed.RETRY if message.queue_offset == 3 else None

    async with stand(handler, threads=7) as (one, _):
        held = one.hold()
        one.work.pulled(held, 10, 0.5)
        one.arrive(held, messages(10))
        await until(lambda: held.process.count == 1, "all but one to be settled")
        await leap(10.0)
        info = await one.work.running_info(with_stacks=False)
        now_ms = one.session.clock.now_ms()
        release.set()
        sent = decode_body(encode_body(info), RunningInfo)
    assert sent.properties["PROP_CONSUMEORDERLY"] == "false"
    assert sent.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert sent.properties["PROP_THREADPOOL_CORE_SIZE"] == "7"
    assert sent.properties["PROP_CONSUMER_START_TIMESTAMP"] == str(one.started_at_ms)
    assert sent.properties["PROP_NAMESERVER_ADDR"].endswith(";")
    assert (sent.properties["consumerGroup"], sent.properties["consumeTimeout"]) == (GROUP, "15")
    assert [found.topic for found in sent.subscription_set] == ["orders"]
    queue = sent.mq_table[QUEUE]
    assert (queue.commit_offset, queue.cached_msg_count, queue.cached_msg_min_offset) == (9, 1, 9)
    assert abs(now_ms - queue.last_pull_timestamp - 10_000) < 5_000
    status = sent.status_table["orders"]
    assert (status.pull_rt, status.pull_tps) == (500.0, 1.0)
    assert (status.consume_ok_tps, status.consume_failed_tps) == (0.8, 0.1)
    assert sent.jstack is None


def test_stacks_show_every_thread_the_innermost_step_first() -> None:
    begun, end = threading.Event(), threading.Event()

    def stuck_here() -> None:
        begun.set()
        end.wait(10)

    thread = threading.Thread(target=stuck_here, name="ConsumeMessageThread_7")
    thread.start()
    begun.wait(10)
    try:
        text = stacks()
    finally:
        end.set()
        thread.join()
    assert f"{threading.main_thread().name:<40}TID: " in text
    (block,) = [part for part in text.split("\n\n") if part.startswith("ConsumeMessageThread_7")]
    lines = block.strip().splitlines()
    assert lines[0] == f"{'ConsumeMessageThread_7':<40}TID: {thread.native_id} STATE: RUNNABLE"
    steps = [line[40:].partition("(")[0] for line in lines[1:]]
    assert steps.index("wait") < steps.index("stuck_here") < steps.index("run")


async def test_stacks_show_what_a_coroutine_handler_waits_for() -> None:
    release = asyncio.Event()

    async def asks_database() -> None:
        await release.wait()

    async def handler(message: ReceivedMessage) -> None:
        await asks_database()

    async with stand(handler) as (one, _):
        one.arrive(one.hold(), messages(1))
        await until(lambda: bool(list(one.work.under_way())), "the call")
        info = await one.work.running_info(with_stacks=True)
        release.set()
    assert info.jstack is not None
    name = f"handlers of {GROUP}"
    (block,) = [part for part in info.jstack.split("\n\n") if part.startswith(name)]
    lines = block.strip().splitlines()
    assert lines[0].endswith("STATE: WAITING")
    steps = [line[40:].partition("(")[0] for line in lines[1:]]
    assert steps[:3] == ["wait", "asks_database", "handler"]


def done(message: ReceivedMessage) -> None: ...


def later(message: ReceivedMessage) -> Consumed:
    return Consumed.RETRY


def fails(message: ReceivedMessage) -> None:
    raise ValueError("bad")


async def done_async(message: ReceivedMessage) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize(
    ("handler", "result", "remark"),
    [
        (done, ConsumeResult.CR_SUCCESS, None),
        (done_async, ConsumeResult.CR_SUCCESS, None),
        (later, ConsumeResult.CR_LATER, "handler returned RETRY"),
        (fails, ConsumeResult.CR_THROW_EXCEPTION, "handler raised ValueError: bad"),
    ],
)
async def test_a_message_handled_on_demand_moves_nothing(
    handler: Any, result: ConsumeResult, remark: str | None, orderly: bool
) -> None:
    async with stand(handler, orderly=orderly) as (one, taker):
        answer = await one.work.consume_directly(messages(1)[0], "broker-a")
        assert (answer.order, answer.auto_commit) == (orderly, True)
        assert (answer.consume_result, answer.remark) == (result, remark)
        assert answer.spent_time_mills >= 0
        assert (one.noted, taker.requests) == ([], [])


async def test_a_retried_message_on_demand_goes_to_its_own_topic() -> None:
    seen: list[str] = []
    async with stand() as (one, _):
        one.handlers["refunds"] = TopicHandler(
            "refunds", lambda given: seen.append(given[0].topic), True
        )
        (message,) = messages(1, RETRY_TOPIC="refunds")
        retried = message.with_topic(f"%RETRY%{GROUP}")
        answer = await one.work.consume_directly(retried, None)
    assert (answer.consume_result, seen) == (ConsumeResult.CR_SUCCESS, ["refunds"])


async def test_on_demand_without_a_handler_is_refused() -> None:
    async with stand() as (one, _):
        with pytest.raises(SystemFailure, match="no handler for topic orders"):
            await one.work.consume_directly(messages(1)[0], None)


async def test_who_asked_is_answered_when_the_consumer_stops() -> None:
    release = threading.Event()
    async with stand(lambda message: release.wait(10) and None) as (one, _):
        asking = asyncio.create_task(one.work.consume_directly(messages(1)[0], None))
        await until(lambda: bool(list(one.work.under_way())), "the call")
        await one.work.stop(0.01)
        answer = await asking
        release.set()
    assert (answer.consume_result, answer.remark) == (
        ConsumeResult.CR_LATER,
        "handler was cancelled",
    )
