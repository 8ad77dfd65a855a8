"""Brokers that were slow or failed are left alone for a while, and probed."""

import asyncio

import pytest

from pocketmq.balance.profile import V4
from pocketmq.errors import SendFailed
from pocketmq.model import Message
from pocketmq.protocol import RequestCode
from tests.client.producer.stage import refuses, silent, stage, stores
from tests.loops import leap, leaping, until

MESSAGE = Message("orders", b"42 EUR")
PROBE = int(RequestCode.GET_MAX_OFFSET)


async def test_nothing_is_remembered_unless_asked_for() -> None:
    async with stage({"broker-a": refuses(1), "broker-b": stores}) as on:
        for _ in range(4):
            await on.producer.send(MESSAGE)
        assert on.producer.sending.faults.health() == ()
        await on.producer.sending.faults.probe()


@leaping
async def test_a_broker_that_failed_is_left_alone_until_its_time_is_over() -> None:
    async with stage({"broker-a": refuses(1), "broker-b": stores}, avoid_slow_brokers=True) as on:
        await on.begin_with(0)
        for _ in range(8):
            await on.producer.send(MESSAGE)
        assert on.asked == {"broker-a": 1, "broker-b": 8}
        first, second = on.producer.sending.faults.health()
        assert (first.broker, first.available, first.reachable) == ("broker-a", False, False)
        assert (second.broker, second.available) == ("broker-b", True)
        on.brokers["broker-a"].say = stores
        await leap(31.0)  # a refusal counts as 10 s of latency, which earns 10 s
        for _ in range(8):
            await on.producer.send(MESSAGE)
        assert on.asked["broker-a"] > 1


async def test_4x_leaves_a_broker_alone_for_longer() -> None:
    says = {"broker-a": refuses(1), "broker-b": stores}
    async with stage(says, avoid_slow_brokers=True, profile=V4) as on:
        await on.begin_with(0)
        await on.producer.send(MESSAGE)
        bad = on.producer.sending.faults.health()[0]
        assert (bad.broker, 590 < bad.available_in <= 600) == ("broker-a", True)


@leaping
async def test_a_probe_brings_an_unreachable_broker_back() -> None:
    says = {"broker-a": silent, "broker-b": stores}
    async with stage(
        says, avoid_slow_brokers=True, probe_brokers=True, send_timeout_per_try=0.05
    ) as on:
        await on.begin_with(0)
        await on.producer.send(MESSAGE)
        faults = on.producer.sending.faults
        assert [each.reachable for each in faults.health()] == [False, True]
        on.brokers["broker-a"].script[PROBE] = lambda request: request.reply(1, "any answer")
        await leap(3.1)
        await until(lambda: faults.health()[0].reachable, "the broker to be reachable again")
        assert [each.reachable for each in faults.health()] == [True, True]
        (probe,) = on.brokers["broker-a"].asked_for(PROBE)
        assert probe.ext["topic"] == "orders"


async def test_a_broker_that_answers_no_probe_stays_unreachable() -> None:
    says = {"broker-a": silent, "broker-b": stores}
    async with stage(
        says, avoid_slow_brokers=True, probe_brokers=True, send_timeout_per_try=0.05
    ) as on:
        await on.begin_with(0)
        await on.producer.send(MESSAGE)
        on.brokers["broker-a"].script[PROBE] = lambda _: None
        await on.producer.sending.faults.probe()
        assert [each.reachable for each in on.producer.sending.faults.health()] == [False, True]


async def test_a_broker_without_an_address_is_forgotten_by_the_probes() -> None:
    async with stage({"broker-a": stores}, avoid_slow_brokers=True, probe_brokers=True) as on:
        await on.producer.send(MESSAGE)
        on.directory.routes.clear()
        on.producer.session.addresses.keep_only([])
        await on.producer.sending.faults.probe()
        assert on.producer.sending.faults.health() == ()


async def test_a_send_that_is_cancelled_blames_nobody() -> None:
    async with stage({"broker-a": silent}, avoid_slow_brokers=True) as on:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await on.producer.send(MESSAGE)
        (health,) = on.producer.sending.faults.health()
        assert (health.available, health.reachable) == (True, True)
        assert len(on.producer.sending.window) == 0


async def test_with_all_brokers_paused_one_is_asked_all_the_same() -> None:
    async with stage({"broker-a": refuses(1)}, avoid_slow_brokers=True) as on:
        for _ in range(2):
            with pytest.raises(SendFailed, match="after 3 tries"):
                await on.producer.send(MESSAGE)
        assert on.asked == {"broker-a": 6}
