"""Mistakes in how a group is used are named once each."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.client.group.warnings import MembershipWatch, Mistake
from pocketmq.embedded.aio import Cluster
from pocketmq.model import ConsumerData, MessageModel, Subscription
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.requests import client_calls, groups, membership
from tests.client.group.groups import Member, cluster, member, queues_of, shared
from tests.client.push.test_steering import member_of
from tests.loops import leap, leaping, stopped_clock, until
from tests.net.peers import Recorder, dialling

AVG = Average()
CLUSTERING, BROADCASTING = MessageModel.CLUSTERING, MessageModel.BROADCASTING


def own(expression: str = "*") -> dict[str, Subscription]:
    return {"orders": Subscription(topic="orders", sub_string=expression)}


def seen(*ids: str, **topics: str) -> groups.ConsumerConnections:
    return groups.ConsumerConnections(
        connection_set=[
            groups.ClientConnection(client_id=each, client_addr=f"10.0.0.{number}:5000")
            for number, each in enumerate(ids)
        ],
        message_model=CLUSTERING,
        subscription_table={
            topic: Subscription(topic=topic, sub_string=text) for topic, text in topics.items()
        },
    )


def watch() -> MembershipWatch:
    watching = MembershipWatch("billing", CLUSTERING)
    watching.announced(own())
    return watching


def test_a_group_in_order_causes_no_warning() -> None:
    watching = watch()
    for _ in range(3):
        watching.look(seen("a", "b", orders="*"), own(), 1.0)
    retry = seen("a", orders="*")
    retry.subscription_table["%RETRY%billing"] = Subscription(topic="%RETRY%billing")
    watching.look(retry, own(), 1.0)
    assert watching.warnings == ()


def test_a_client_id_that_stays_doubled_is_named_with_its_places() -> None:
    watching = watch()
    watching.look(seen("a", "a", orders="*"), own(), 1.0)
    # One that has just connected anew is listed twice for a moment.
    assert not list(watching.warnings)
    watching.look(seen("a", "b", orders="*"), own(), 2.0)
    for when in (3.0, 4.0, 5.0):
        watching.look(seen("a", "a", orders="*"), own(), when)
    (warning,) = watching.warnings
    assert (warning.mistake, warning.subject, warning.seen) == (
        Mistake.DUPLICATE_CLIENT_ID, "a", 4.0,
    )  # fmt: skip
    assert str(warning) == (
        "group billing: 2 members have the client id a (connected from 10.0.0.0:5000, "
        "10.0.0.1:5000); each takes the same queues, and the queues of the others have no "
        "owner. Set a separate instance_name for each process"
    )


@pytest.mark.parametrize(
    ("topics", "subject", "text"),
    [
        (
            {"orders": "paid"},
            "orders",
            "another member subscribes to orders with 'paid', this one with '*'",
        ),
        (
            {"orders": "*", "refunds": "*"},
            "refunds",
            "another member subscribes to refunds, this one does not",
        ),
        ({}, "orders", "this member subscribes to orders, another member does not"),
    ],
    ids=["another expression", "another topic", "a topic less"],
)
def test_different_subscriptions_are_named(topics: dict[str, str], subject: str, text: str) -> None:
    watching = watch()
    for _ in range(2):
        watching.look(seen("a", "b", **topics), own(), 1.0)
    (warning,) = watching.warnings
    assert (warning.mistake, warning.subject) == (Mistake.DIFFERENT_SUBSCRIPTIONS, subject)
    assert text in str(warning)


def test_what_this_member_itself_said_before_is_no_difference() -> None:
    watching = watch()
    watching.announced(own("paid"))
    watching.look(seen("a", orders="*"), own("paid"), 1.0)
    assert watching.warnings == ()


def test_nothing_is_compared_before_a_broker_was_told() -> None:
    watching = MembershipWatch("billing", CLUSTERING)
    watching.look(seen("a", refunds="*"), own(), 1.0)
    assert watching.warnings == ()


Beat = Callable[[], Awaitable[None]]


@asynccontextmanager
async def stranger(
    running: Cluster,
    client_id: str,
    data: ConsumerData,
    answer: Callable[[Connection, list[Command]], None] = lambda *_: None,
) -> AsyncIterator[Beat]:
    """A client that has nothing but heartbeats, unless it answers what it is asked."""
    async with dialling(Recorder(answer)) as dialer:
        address = running.brokers["broker-0"].address
        body = encode_body(membership.Heartbeat(client_id=client_id, consumer_data_set=[data]))

        async def beat() -> None:
            request = Command.request(RequestCode.HEART_BEAT, 0, {}, body)
            assert (await dialer.request(address, request, 5.0)).code == 0

        yield beat


async def _warned(one: Member, mistake: Mistake, beat: Beat) -> None:
    async with asyncio.timeout(10.0):
        while mistake not in {warning.mistake for warning in one.consumer.warnings}:
            await beat()  # brokers keep what the last heartbeat said, and members have theirs
            member_of(one).request_rebalance()
            await asyncio.sleep(0.05)


async def test_a_live_group_with_one_client_id_twice_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        data = ConsumerData(group_name="billing", subscription_data_set=list(own().values()))
        async with stranger(running, one.client_id, data) as beat:
            with caplog.at_level(logging.WARNING, "pocketmq.client"):
                await _warned(one, Mistake.DUPLICATE_CLIENT_ID, beat)
        assert caplog.text.count("members have the client id 10.0.0.1@a") == 1


async def test_a_live_group_with_different_subscriptions_is_warned_of() -> None:
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        newer = Subscription(topic="orders", sub_string="paid", sub_version=2**62)
        data = ConsumerData(group_name="billing", subscription_data_set=[newer])
        async with stranger(running, "10.0.0.2@b", data) as beat:
            await _warned(one, Mistake.DIFFERENT_SUBSCRIPTIONS, beat)


class Older:
    """A member whose subscription a broker ignores, since another one is newer."""

    def __init__(self, *expressions: str) -> None:
        self.expressions = expressions
        self.asked = 0
        self.data = ConsumerData(
            group_name="billing",
            subscription_data_set=[
                Subscription(topic="orders", sub_string=expressions[0], sub_version=1)
            ],
        )

    def answer(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            if request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
                expression = self.expressions[min(self.asked, len(self.expressions) - 1)]
                self.asked += 1
                subscribed = [Subscription(topic="orders", sub_string=expression)]
                info = client_calls.RunningInfo(subscription_set=subscribed)
                connection.write(request.reply(0, body=encode_body(info)).encode())


@leaping
@pytest.mark.parametrize(
    ("expressions", "asked", "warned"),
    [(["paid"], 2, True), (["paid", "*"], 2, False), (["*"], 1, False)],
    ids=["differs", "is about to subscribe", "is the same"],
)
async def test_a_member_whose_subscription_the_broker_has_asks_the_others(
    expressions: list[str], asked: int, *, warned: bool
) -> None:
    older = Older(*expressions)
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        async with stranger(running, "10.0.0.2@b", older.data, older.answer) as beat:
            await beat()
            await until(lambda: older.asked >= 1, "the first question")
            with stopped_clock():
                await leap(0.9)
                assert not list(one.consumer.warnings)
                await leap(0.2)
            await until(lambda: older.asked >= asked, "all questions")
            member_of(one).request_rebalance()
            await until(lambda: bool(one.consumer.warnings) or not warned, "a warning")
            await leap(2.0)
        assert older.asked == asked
        assert [str(each).partition(";")[0] for each in one.consumer.warnings] == (
            ["group billing: another member subscribes to orders with 'paid', this one with '*'"]
            if warned
            else []
        )


async def test_a_live_group_with_both_models_is_warned_of() -> None:
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        data = ConsumerData(
            group_name="billing",
            message_model=BROADCASTING,
            subscription_data_set=list(own().values()),
        )
        async with stranger(running, "10.0.0.2@b", data) as beat:
            await _warned(one, Mistake.BOTH_MODELS, beat)


async def test_a_live_group_in_order_is_not_warned_of() -> None:
    async with cluster() as running, member(running.address, "a") as a:
        async with member(running.address, "b") as b:
            await shared([a, b], queues_of(1, 4), AVG)
            for one in (a, b):
                member_of(one).request_rebalance()
        await shared([a], queues_of(1, 4), AVG)
        assert a.consumer.warnings == b.consumer.warnings == ()
