"""Requests that waited too long for their turn, and those that would make others wait."""

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.serving.overload import busy_answer, longest_wait
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.command import ONEWAY_FLAG
from tests.broker.running import Client, client, pull_fields, running, send_fields
from tests.loops import LeapingLoop, leaping, until

SLOW = 9998
FIRST = 8
"""Requests of a connection's first batch."""


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        (Code.SEND_MESSAGE, 3.0),
        (Code.SEND_MESSAGE_V2, 3.0),
        (Code.SEND_BATCH_MESSAGE, 3.0),
        (Code.CONSUMER_SEND_MSG_BACK, 3.0),
        (Code.RECALL_MESSAGE, 3.0),
        (Code.PULL_MESSAGE, 5.0),
        (Code.POP_MESSAGE, 5.0),
        (Code.LITE_PULL_MESSAGE, 5.0),
        (Code.HEART_BEAT, 31.0),
        (Code.END_TRANSACTION, 3.0),
        (Code.ACK_MESSAGE, 3.0),
        (Code.BATCH_ACK_MESSAGE, 3.0),
        (Code.CHANGE_MESSAGE_INVISIBLETIME, 3.0),
        (Code.UPDATE_AND_CREATE_TOPIC, 5.0),
        (Code.LOCK_BATCH_MQ, 5.0),
        (9999, 5.0),
        (Code.UPDATE_CONSUMER_OFFSET, None),
        (Code.SEND_REPLY_MESSAGE_V2, None),
        (Code.UNREGISTER_CLIENT, None),
    ],
)
def test_each_request_may_wait_as_long_as_its_queue_in_java(
    code: int, seconds: float | None
) -> None:
    assert longest_wait(BrokerConfig(), code) == seconds
    assert longest_wait(BrokerConfig(broker_fast_failure_enable=False), code) is None


def test_the_answer_says_how_long_it_waited_and_how_many_still_do() -> None:
    config = BrokerConfig(wait_time_mills_in_send_queue=200)
    request = Command.request(Code.SEND_MESSAGE_V2, 77)
    assert busy_answer(config, request, 0.1999, 5) is None
    answer = busy_answer(config, request, 0.2, 5)
    assert answer is not None
    assert (answer.code, answer.opaque) == (2, 77)
    assert answer.remark == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        "period in queue: 200ms, size of queue: 5"
    )


def make_slow(broker: Broker, seconds: float, served: list[int] | None = None) -> None:
    """Teach a broker a request that takes this long."""

    def slow(_: object, __: Connection, request: Command) -> Command:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeapingLoop)
        loop.ahead += seconds
        if served is not None:
            served.append(request.opaque)
        return request.reply(0)

    assert broker._parts is not None
    broker._parts.dispatcher._handlers[SLOW] = slow


async def codes(peer: Client, numbers: Sequence[int]) -> list[int]:
    return [(await peer.answer(number)).code for number in numbers]


SEND = (int(Code.SEND_MESSAGE_V2), send_fields("T"))
LOOK = (int(Code.GET_MAX_OFFSET), {"topic": "T", "queueId": "0"})
PULL = (int(Code.PULL_MESSAGE), pull_fields("T", sysFlag="4"))
HOLD = (SLOW, {"a": "b"})


@leaping
async def test_sends_that_waited_too_long_are_refused_and_not_stored() -> None:
    async with running() as (broker, address), client(address) as peer:
        make_slow(broker, 3.01)
        numbers = peer.post_all([HOLD, *[SEND] * 40])
        assert await codes(peer, numbers) == [0] * FIRST + [2] * (41 - FIRST)
        assert broker.state.traffic.messages_in == FIRST - 1
        assert broker.state.traffic.refused == 41 - FIRST
        assert (await peer.ask(*SEND, b"x")).code == 0


@leaping
async def test_what_may_wait_longer_is_served_though_sends_beside_it_are_refused() -> None:
    async with running() as (broker, address), client(address) as peer:
        await peer.ask(*SEND, b"x")
        make_slow(broker, 3.5)
        numbers = peer.post_all([HOLD, *[LOOK] * (FIRST - 1), PULL, SEND, LOOK, SEND])
        assert await codes(peer, numbers) == [0] * FIRST + [0, 2, 0, 2]
        make_slow(broker, 6.0)
        numbers = peer.post_all([HOLD, *[LOOK] * 80, PULL, SEND, LOOK, SEND])
        assert (await codes(peer, numbers))[-4:] == [2, 2, 2, 2]


@leaping
async def test_one_way_sends_that_waited_too_long_are_dropped_in_silence() -> None:
    async with running() as (broker, address), client(address) as peer:
        make_slow(broker, 3.5)
        peer.post_all([HOLD, *[SEND] * 40], flag=ONEWAY_FLAG)
        await peer.ask(*LOOK)
        assert broker.state.traffic.messages_in == FIRST - 1
        assert broker.state.traffic.refused == 41 - FIRST
        assert peer.unasked == []


@leaping
async def test_nothing_is_refused_for_waiting_if_the_setting_says_so() -> None:
    async with running() as (broker, address), client(address) as peer:
        change = b"brokerFastFailureEnable=false\n"
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, change)).code == 0
        make_slow(broker, 10.0)
        assert await codes(peer, peer.post_all([HOLD, *[SEND] * 40])) == [0] * 41


@leaping
async def test_costly_requests_of_one_client_come_in_ever_smaller_turns() -> None:
    """Between two of them another client has its turn, not only after all forty."""
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        served: list[int] = []
        make_slow(broker, 0.1, served)
        await other.ask(*LOOK)
        peer.post_all([HOLD] * 40)
        await until(lambda: served, "the first")
        seen = []
        while len(served) < 40:
            await other.ask(*LOOK)
            seen.append(len(served))
        # A batch of 8, then of 4, of 2, and one at a time: a few rounds of it between two answers.
        assert len(seen) >= 5
        assert max(late - early for early, late in pairwise(seen)) <= 6


# Bodies that take long to read


def locks(count: int) -> bytes:
    queues = [{"topic": "T", "brokerName": "b", "queueId": number} for number in range(count)]
    return json.dumps({"consumerGroup": "g", "clientId": "c", "mqSet": queues}).encode()


def heartbeat(count: int) -> bytes:
    topics = [{"topic": f"T{number}", "subString": "*"} for number in range(count)]
    group = {"groupName": "g", "subscriptionDataSet": topics}
    return json.dumps({"clientID": "c", "consumerDataSet": [group]}).encode()


@pytest.mark.parametrize(
    ("code", "body"),
    [(Code.LOCK_BATCH_MQ, locks(48_000)), (Code.HEART_BEAT, heartbeat(80_000))],
    ids=["locks", "heartbeat"],
)
async def test_a_body_all_would_wait_for_is_refused_unread(code: Code, body: bytes) -> None:
    async with running() as (broker, address), client(address) as peer:
        answer = await peer.ask(code, {}, body)
        assert (answer.code, answer.remark) == (
            29,
            f"a body of {len(body)} bytes is over maxRequestBodySize=2097152",
        )
        assert broker.state.consumers.groups == {}
        larger = b"maxRequestBodySize=16000000\n"
        assert (await peer.ask(Code.UPDATE_BROKER_CONFIG, {}, larger)).code == 0
        assert (await peer.ask(code, {}, body)).code == 0


async def test_messages_may_be_larger_than_other_bodies() -> None:
    async with running() as (_, address), client(address) as peer:
        body = bytes(3 * 1024 * 1024)
        assert (await peer.ask(Code.SEND_MESSAGE_V2, send_fields("T"), body)).code == 0
