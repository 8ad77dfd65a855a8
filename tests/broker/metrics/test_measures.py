"""What only metrics show: histograms and counters, in RocketMQ's steps and names."""

from typing import Any

import pytest

from pocketmq.broker.core.answers import answer_code
from pocketmq.broker.metrics.families import metrics_text
from pocketmq.broker.metrics.measures import Counts, Histogram
from pocketmq.broker.timers.wheel import TimerWheel
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from tests.broker.metrics.test_metrics import value
from tests.broker.pop.counter import create, got, pop_fields, send, serving
from tests.broker.running import client, position, pull_fields, running, send_fields
from tests.loops import leap, leaping, until


def shown(**settings: Any) -> Any:
    return running(metrics_exporter_type="PROM", metrics_prom_exporter_port=0, **settings)


def steps(text: str, name: str, **labels: str) -> dict[str, float | None]:
    """Return the cumulative counts of a histogram whose steps hold anything new."""
    bounds = [
        line.split('le="')[1].split('"')[0]
        for line in text.splitlines()
        if line.startswith(f"{name}_bucket")
    ]
    return {le: value(text, f"{name}_bucket", le=le, **labels) for le in dict.fromkeys(bounds)}


def test_a_value_on_a_bound_belongs_below_it() -> None:
    histogram = Histogram((1, 10))
    for each in (0.5, 1, 1.1, 10, 11):
        histogram.add(("a",), each)
    assert histogram.counts == {("a",): [2, 2, 1]}
    assert histogram.sums == {("a",): pytest.approx(23.6)}


def test_memory_ends_with_very_many_keys() -> None:
    histogram, counts = Histogram((1,)), Counts()
    for number in range(20_000):
        histogram.add((number,), 1)
        counts.add((number,))
    assert len(histogram.counts) == len(counts.by_key) == 10_000
    counts.add((0,))
    assert counts.by_key[0,] == 2


@pytest.mark.parametrize("serialize", [0, 1])
@pytest.mark.parametrize("code", [0, 19, 210])
def test_the_code_of_an_answer_is_found_in_its_frame(serialize: int, code: int) -> None:
    answer = Command.request(11, 5, serialize=serialize).reply(code, "x", {"a": "b"}, b"body")
    assert answer_code(answer) == answer_code(answer.encode()) == code


async def test_a_broker_that_shows_nothing_measures_nothing() -> None:
    async with running() as (broker, address), client(address) as peer:
        assert (await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x")).code == 0
        assert broker.state.measures is None
        assert "_bucket" not in metrics_text(broker.state)


@leaping
async def test_every_answer_is_counted_with_the_time_to_it() -> None:
    async with shown() as (broker, address), client(address) as peer:
        await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x")
        await peer.ask(9999)
        held = peer.post(Code.PULL_MESSAGE, pull_fields("T", 1, suspendTimeoutMillis="9000"))
        await until(lambda: len(broker.state.waiting) == 1, "the pull to wait")
        await leap(1.5)
        await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), b"x")
        assert (await peer.answer(held)).code == 0
        text = metrics_text(broker.state)
        name = "rocketmq_rpc_latency_milliseconds"
        assert f"# TYPE {name} histogram\n" in text
        fields = {"protocol_type": "remoting", "is_long_polling": "false"}
        send = fields | {"request_code": "send_message_v2", "response_code": "success"}
        assert value(text, f"{name}_count", **send) == 2
        assert value(text, f"{name}_bucket", le="+Inf", **send) == 2
        unknown = {"request_code": "9999", "response_code": "request_code_not_supported"}
        assert value(text, f"{name}_count", **unknown) == 1
        pull = {"request_code": "pull_message", "response_code": "success"}
        waited = pull | {"is_long_polling": "true"}
        found = steps(text, name, **waited)
        assert (found["1000.0"], found["2000.0"], found["+Inf"]) == (0, 1, 1)
        assert 1500 <= (value(text, f"{name}_sum", **waited) or 0) < 2000


@leaping
async def test_pops_are_counted_and_so_are_those_that_wait_and_come_back() -> None:
    async with shown() as (broker, address), client(address) as peer:
        await create(peer, "T")
        await send(peer, "T", "a")
        pop = pop_fields("T", invisibleTime=1000)
        assert len(got(await peer.ask(Code.POP_MESSAGE, pop), "T")) == 1
        held = peer.post(Code.POP_MESSAGE, pop | {"pollTime": "9000"})
        pops = serving(broker)
        await until(lambda: len(pops.waiting) == 1, "the pop to wait")
        await leap(2.5)
        assert len(got(await peer.answer(held), "T")) == 1
        text = metrics_text(broker.state)
        name = "rocketmq_rpc_latency_milliseconds"
        call = {"request_code": "pop_message", "response_code": "success"}
        assert value(text, f"{name}_count", **call, is_long_polling="false") == 1
        waited = call | {"is_long_polling": "true"}
        assert value(text, f"{name}_count", **waited) == 1
        assert 2500 <= (value(text, f"{name}_sum", **waited) or 0) < 9000
        revived = {"topic": "T", "consumer_group": "G"}
        assert value(text, "rocketmq_pop_revive_retry_messages_total", **revived) == 1


async def test_sizes_are_counted_by_topic() -> None:
    async with shown() as (broker, address), client(address) as peer:
        for size in (10, 10, 2000, 100_000):
            await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), bytes(size))
        text = metrics_text(broker.state)
        assert steps(text, "rocketmq_message_size", topic="T", message_type="normal") == {
            "1024.0": 2,
            "4096.0": 3,
            "524288.0": 4,
            "1048576.0": 4,
            "2097152.0": 4,
            "4194304.0": 4,
            "+Inf": 4,
        }
        assert value(text, "rocketmq_message_size_sum") == broker.state.store.log.tail


async def test_transactions_are_counted_by_how_they_ended() -> None:
    async with shown() as (broker, address), client(address) as peer:
        for number, fate in enumerate((8, 8, 12)):
            properties = f"UNIQ_KEY\1K{number}\2TRAN_MSG\1true\2PGROUP\1shop\2"
            fields = send_fields("T", properties, f="4")
            stored = await peer.ask(Code.SEND_MESSAGE_V2, fields, b"x")
            assert stored.code == 0
            end = {"producerGroup": "shop", "fromTransactionCheck": "true", "msgId": "K"}
            end |= {"tranStateTableOffset": stored.ext["queueOffset"]}
            end |= {"commitLogOffset": str(position(stored)), "commitOrRollback": str(fate)}
            assert (await peer.ask(Code.END_TRANSACTION, end)).code == 0
        text = metrics_text(broker.state)
        assert value(text, "rocketmq_commit_messages_total", topic="T") == 2
        assert value(text, "rocketmq_rollback_messages_total", topic="T") == 1
        finished = "rocketmq_finish_message_latency_milliseconds"
        assert value(text, f"{finished}_count", topic="T") == 2


@leaping
async def test_timed_messages_are_counted_in_and_out() -> None:
    async with shown() as (broker, address), client(address) as peer:
        for seconds in (2, 100, 4000):
            properties = f"UNIQ_KEY\1K{seconds}\2TIMER_DELAY_SEC\1{seconds}\2"
            born = {"g": str(broker.state.clock.now_ms())}
            answer = await peer.ask(
                Code.SEND_MESSAGE_V2, send_fields("T", properties, **born), b"x"
            )
            assert answer.code == 0
        await leap(2.1)
        await until(lambda: broker.state.timed.wheel.count == 2, "the first to be delivered")
        text = metrics_text(broker.state)
        assert value(text, "rocketmq_timer_enqueue_total", topic="T") == 3
        assert value(text, "rocketmq_timer_dequeue_total", topic="T") == 1
        delay = steps(text, "rocketmq_delay_message_latency_seconds", topic="T")
        assert (delay["60.0"], delay["600.0"], delay["43200.0"]) == (1, 2, 3)
        ahead = {
            bound: value(text, "rocketmq_timer_message_snapshot", timer_bound_s=bound)
            for bound in ("5", "60", "300", "900", "3600", "14400", "28800", "86400")
        }
        assert [bound for bound, count in ahead.items() if count] in (
            ["300", "14400"],
            ["60", "14400"],  # counted where its minute begins
        )
        assert value(text, "rocketmq_timer_dequeue_lag") == 0
        assert value(text, "rocketmq_timer_enqueue_latency_milliseconds") == 0


def test_what_is_due_and_what_is_ahead_is_counted() -> None:
    wheel, now_ms = TimerWheel(), 1_700_000_000_000
    wheel.add((now_ms + each * 1000, number) for number, each in enumerate((-5, -4, 2, 90, 7000)))
    assert wheel.due(now_ms) == 2
    assert wheel.due(now_ms + 1999) == 2
    assert wheel.due(now_ms + 2000) == 3
    assert wheel.due(now_ms + 8_000_000) == 5
    # The minute has 40 s to go: what is due in it counts as near, 90 s as its own minute's 40.
    assert wheel.ahead(now_ms, (5, 60, 300, 86_400)) == [3, 1, 0, 1]
    assert wheel.ahead(now_ms, (5, 60, 300)) == [3, 1, 0]


async def test_the_time_to_make_topics_and_groups_is_counted() -> None:
    async with shown() as (broker, address), client(address) as peer:
        topic = {"topic": "New", "defaultTopic": "TBW102", "readQueueNums": "1"}
        topic |= {"writeQueueNums": "1", "perm": "6", "topicFilterType": "SINGLE_TAG"}
        assert (await peer.ask(Code.UPDATE_AND_CREATE_TOPIC, topic)).code == 0
        assert (await peer.ask(Code.UPDATE_AND_CREATE_TOPIC, topic | {"topic": "a b"})).code == 29
        body = b'{"groupName":"G"}'
        assert (await peer.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)).code == 0
        text = metrics_text(broker.state)
        name = "rocketmq_topic_create_execution_time_milliseconds_count"
        assert value(text, name, invocation_status="success") == 1
        assert value(text, name, invocation_status="failure") == 1
        name = "rocketmq_consumer_group_create_execution_time_milliseconds_count"
        assert value(text, name, invocation_status="success") == 1
