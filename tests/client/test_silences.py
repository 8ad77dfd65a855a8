"""Mistakes that are none for certain: one warning each, where there was silence before."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq import aio, errors
from pocketmq.client import checks
from pocketmq.client.producer.transactions import ReturnedStates
from pocketmq.embedded.aio import Cluster
from pocketmq.model import TransactionState
from tests.loops import leap, leaping, until

COMMIT, UNKNOWN = TransactionState.COMMIT, TransactionState.UNKNOWN


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "pocketmq.client")
    return caplog


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == level]


@asynccontextmanager
async def cluster(*topics: str, **settings: Any) -> AsyncIterator[Cluster]:
    async with Cluster(config=settings) as running:
        for topic in topics:
            await running.create_topic(topic, queues=2)
        yield running


def handle(message: aio.ReceivedMessage) -> None:
    """Do nothing."""


# Consumers that receive nothing


@leaping
async def test_a_consumer_without_subscription_and_one_of_a_missing_topic_are_told_apart(
    told: pytest.LogCaptureFixture,
) -> None:
    async with cluster("orders", "ordres2", "parcels") as running:
        at = running.address
        idle = aio.PushConsumer(at, group="idle")
        typo = aio.PushConsumer(at, group="typo").subscribe("ordres", "*", handle)
        early = aio.PullConsumer(at, group="early").subscribe("zzz")
        fixed = aio.PushConsumer(at, group="fixed", strategy="STICKY")
        fixed.subscribe("parcel", "*", handle)
        fine = aio.PushConsumer(at, group="fine").subscribe("orders", "*", handle)
        by_hand = aio.PullConsumer(at, group="hand")
        by_hand.assign([aio.MessageQueue("orders", "broker-0", 0)])
        async with idle, typo, early, fixed, fine, by_hand:
            assert lines(told) == []
            await leap(1.0)
            await until(lambda: len(lines(told)) == 4, "four warnings")
            idle.subscribe("orders", "*", handle)
            await leap(1.0)
        once_created = "consuming it once it is created"
        assert sorted(line for line in lines(told) if "exist" in line or "without" in line) == [
            (
                "consumer without subscription: group=idle; it receives nothing until subscribe() is "
                "called"
            ),
            (
                f"topic does not exist: topic=ordres group=typo; {once_created}. "
                "Did you mean 'ordres2' or 'orders'?"
            ),
            (
                f"topic does not exist: topic=parcel group=fixed; {once_created}. "
                "Did you mean 'parcels'?"
            ),
            f"topic does not exist: topic=zzz group=early; {once_created}",
        ]


async def test_a_filter_on_a_missing_topic_waits_for_it_as_tags_do(
    told: pytest.LogCaptureFixture,
) -> None:
    """There is no broker yet that could check the expression."""
    got: list[bytes] = []
    async with cluster() as running:
        push = aio.PushConsumer(running.address, group="g", consume_from="first")
        push.subscribe("orders", aio.by_sql("price > 10"), lambda one: got.append(one.body))
        pull = aio.PullConsumer(running.address, group="h", consume_from="first")
        pull.subscribe("orders", aio.by_sql("price > 10"))
        async with push, pull, aio.Producer(running.address, group="p") as producer:
            await until(lambda: len(lines(told)) == 2, "both warned")
            await running.create_topic("orders", queues=1)
            for price in ("5", "50"):
                message = aio.Message("orders", price.encode(), properties={"price": price})
                await producer.send(message)
            await until(lambda: got == [b"50"], "the message")
            assert [each.body for each in await pull.poll(10.0)] == [b"50"]
        wanted = "topic does not exist: topic=orders group={}; consuming it once it is created"
        assert sorted(lines(told)) == [wanted.format("g"), wanted.format("h")]


@leaping
async def test_a_subscription_right_after_the_start_is_in_time(
    told: pytest.LogCaptureFixture,
) -> None:
    async with (
        cluster("orders") as running,
        aio.PushConsumer(running.address, group="g") as push,
        aio.PullConsumer(running.address, group="h") as pull,
    ):
        push.subscribe("orders", "*", handle)
        pull.subscribe("orders")
        await leap(2.0)
        await until(lambda: bool(pull.assignment() and push.assignment()["orders"]), "queues")
        push.unsubscribe("orders")  # on purpose
        await until(lambda: not push.assignment(), "no queues")
        for _ in range(3):
            await leap(1.0)
        assert lines(told) == []


async def test_both_members_are_told_that_their_subscriptions_differ() -> None:
    """Brokers keep one of the two, so only one member can find that out from a broker."""
    async with cluster("orders") as running:
        first = aio.PushConsumer(running.address, group="g").subscribe("orders", "paid", handle)
        second = aio.PushConsumer(running.address, group="g").subscribe("orders", "*", handle)
        async with first, second:
            await until(lambda: bool(first.warnings and second.warnings), "both warned")
            for one, wanted, other in ((first, "paid", "*"), (second, "*", "paid")):
                assert str(one.warnings[0]) == (
                    f"group g: another member subscribes to orders with {other!r}, this one with "
                    f"{wanted!r}; "
                    "brokers filter by the last subscription they received, so messages are lost. "
                    "Use the same subscriptions in all members, or another group"
                )


# Times in milliseconds


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: aio.Producer("a:1", group="ms-1", send_timeout=3000),
         ("send_timeout=3000 is in seconds (50 minutes): group=ms-1; if you meant 3000 ms, "
         "set send_timeout=3")),
        (lambda: aio.PullConsumer("a:1", group="ms-2", poll_timeout=5000),
         ("poll_timeout=5000 is in seconds (83 minutes): group=ms-2; if you meant 5000 ms, "
         "set poll_timeout=5")),
        (lambda: aio.PushConsumer("a:1", group="ms-3", heartbeat_interval=30_000),
         ("heartbeat_interval=30000 is in seconds (500 minutes): group=ms-3; if you meant "
         "30000 ms, set heartbeat_interval=30")),
    ],
)  # fmt: skip
def test_milliseconds_are_told_once(
    make: Callable[[], object], line: str, told: pytest.LogCaptureFixture
) -> None:
    make()
    make()
    assert lines(told) == [line]


def test_long_times_that_may_be_meant_are_not_told(told: pytest.LogCaptureFixture) -> None:
    aio.Producer("a:1", group="g", send_timeout=999.0, start_wait=3600.0)
    aio.PushConsumer("a:1", group="g", consume_timeout=7200.0, stop_wait=3600.0)
    aio.PopConsumer("a:1", group="g", invisible=7200.0)
    aio.PushConsumer("a:1", group="g", persist_interval=3600.0, persist_first_after=3600.0)
    assert lines(told) == []


def test_every_option_of_short_times_exists() -> None:
    kinds = (aio.ClientOptions, aio.ProducerOptions, aio.PushConsumerOptions,
             aio.PullConsumerOptions, aio.PopConsumerOptions)  # fmt: skip
    fields = {name for kind in kinds for name in kind.__struct_fields__}
    assert fields >= checks.LONGEST_USUAL.keys()


async def test_milliseconds_of_one_call_are_told_once(told: pytest.LogCaptureFixture) -> None:
    async with cluster("orders") as running:
        async with aio.Producer(running.address, group="ms-4") as producer:
            for _ in range(2):
                await producer.send(aio.Message("orders", b"x"), timeout=2000)
        first = aio.PullConsumer(running.address, group="ms-5", consume_from="first")
        async with first.subscribe("orders") as pull:
            assert await pull.poll(1000)
        popping = aio.PopConsumer(running.address, group="ms-6", consume_from="first")
        async with popping.subscribe("orders") as pop:
            assert await pop.receive(timeout=1500)
        assert [line for line in lines(told) if "in seconds" in line] == [
            (
                "timeout=2000 is in seconds (33 minutes): group=ms-4; if you meant 2000 ms, "
                "set timeout=2"
            ),
            (
                "timeout=1000 is in seconds (17 minutes): group=ms-5; if you meant 1000 ms, "
                "set timeout=1"
            ),
            (
                "timeout=1500 is in seconds (25 minutes): group=ms-6; if you meant 1500 ms, "
                "set timeout=1.5"
            ),
        ]


# Transactions

NO_STATE = "which is not a state; return TransactionState.COMMIT, ROLLBACK or UNKNOWN"


async def test_what_a_local_function_returns_is_a_state_or_told_once(
    told: pytest.LogCaptureFixture,
) -> None:
    async with cluster("orders") as running:
        message = aio.Message("orders", b"x")
        async with aio.Producer(
            running.address, group="shop", check=lambda half: UNKNOWN
        ) as producer:
            fine = await producer.send_in_transaction(message, lambda *_: COMMIT)
            assert (fine.state, fine.error) == (COMMIT, None)
            assert lines(told) == []
            wrong = await producer.send_in_transaction(message, lambda *_: True)  # type: ignore[arg-type]
            again = await producer.send_in_transaction(message, lambda *_: None)
            assert wrong.state is again.state is UNKNOWN
            assert isinstance(wrong.error, errors.InvalidInput)
            assert str(wrong.error) == f"local function of transaction returned True, {NO_STATE}"
            assert again.error is None
            assert lines(told) == [
                f"{wrong.error}: transaction={wrong.message_id}; the broker will check back"
            ]


@pytest.mark.parametrize(
    ("result", "shown"),
    [(False, "False"), (None, "None"), ("COMMIT", "'COMMIT'"), (4, "4"), (object(), "a object"),
     (TransactionState.PREPARED, "<TransactionState.PREPARED: 4>")],
)  # fmt: skip
def test_only_three_states_end_a_transaction(
    result: object, shown: str, told: pytest.LogCaptureFixture
) -> None:
    state, error = ReturnedStates("check function").read(result, "T1")
    assert state is None
    assert (error is None) is (result is None)
    text = f"check function returned {shown}, {NO_STATE}"
    assert lines(told) == [f"{text}: transaction=T1; the broker will check back"]


@pytest.mark.parametrize("state", [COMMIT, TransactionState.ROLLBACK, UNKNOWN, 8, 12])
def test_states_are_read_as_they_are(state: int, told: pytest.LogCaptureFixture) -> None:
    assert ReturnedStates("check function").read(state, "T1") == (state, None)
    assert lines(told) == []


async def test_a_producer_without_check_that_sends_transactions_is_told_once(
    told: pytest.LogCaptureFixture,
) -> None:
    async with cluster("orders") as running:
        async with aio.Producer(running.address, group="shop") as producer:
            for _ in range(2):
                await producer.send_in_transaction(aio.Message("orders", b"x"), lambda *_: COMMIT)
        assert lines(told) == [
            (
                "transactions without a check function: group=shop; if a commit or rollback "
                "is lost, the broker checks back and this producer cannot answer; pass `check` to it"
            )
        ]


# Retries and dead letters


async def test_a_retry_that_is_asked_for_is_no_warning_and_a_dead_letter_is_one(
    told: pytest.LogCaptureFixture,
) -> None:
    async with cluster("orders") as running:
        done = asyncio.Event()

        async def handler(message: aio.ReceivedMessage) -> aio.Consumed | aio.RetryLater | None:
            if message.body == b"hopeless":
                return aio.RetryLater(-1)
            if message.reconsume_times == 0:
                raise aio.RetryLater(1)
            done.set()
            return None

        consumer = aio.PushConsumer(running.address, group="g", consume_from="first")
        consumer.subscribe("orders", "*", handler)
        async with aio.Producer(running.address, group="shop") as producer, consumer:
            later = await producer.send(aio.Message("orders", b"later"))
            hopeless = await producer.send(aio.Message("orders", b"hopeless"))
            await done.wait()
            dead = (
                f"dead letter: group=g topic=orders id={hopeless.message_id} tries=1; "
                "moved to topic %DLQ%g"
            )
            await until(lambda: dead in lines(told), "a dead letter")
        assert lines(told) == [dead]
        asked = [line for line in lines(told, logging.INFO) if "retry" in line]
        assert sorted(asked) == sorted(
            f"handler requested retry: group=g topic=orders id={each.message_id}"
            for each in (later, hopeless)
        )


@pytest.mark.parametrize("orderly", [False, True])
async def test_the_last_try_of_a_failing_handler_is_a_dead_letter(
    told: pytest.LogCaptureFixture, *, orderly: bool
) -> None:
    def handler(message: aio.ReceivedMessage) -> None:
        raise OSError("no disk")

    async with cluster("orders") as running:
        consumer = aio.PushConsumer(
            running.address,
            group="g",
            consume_from="first",
            max_reconsume_times=0,
            orderly=orderly,
            suspend_queue=0.01,
        )
        consumer.subscribe("orders", "*", handler)
        async with aio.Producer(running.address, group="shop") as producer, consumer:
            sent = await producer.send(aio.Message("orders", b"x"))
            await until(lambda: any("dead" in line for line in lines(told)), "a dead letter")
        assert lines(told) == [
            (
                f"messages not handled: group=g topic=orders id={sent.message_id}: "
                "handler raised OSError: no disk"
            ),
            (
                f"dead letter: group=g topic=orders id={sent.message_id} tries=1; moved to topic "
                "%DLQ%g"
            ),
        ]
        (found,) = await running.messages("%DLQ%g")
        assert found.message_id == sent.message_id


# The wrong event loop

WRONG = (
    "was started on another event loop; start, use and close it inside one asyncio.run(), or use "
    "the blocking clients of pocketmq in threads"
)


@pytest.fixture
def address() -> Iterator[str]:
    import pocketmq

    with pocketmq.Cluster() as running:
        running.create_topic("orders", queues=1)
        yield running.address


Use = Callable[[Any], Any]
MESSAGE = aio.Message("orders", b"x")
USES: dict[str, tuple[type, str, dict[str, Use]]] = {
    "producer": (aio.Producer, "producer", {
        "start": lambda p: p.start(), "send": lambda p: p.send(MESSAGE),
        "flush": lambda p: p.flush(), "close": lambda p: p.close(),
        "submit": lambda p: p.submit(MESSAGE), "batch": lambda p: p.send_batch([MESSAGE]),
    }),
    "push": (aio.PushConsumer, "consumer", {
        "start": lambda c: c.start(), "close": lambda c: c.close(), "commit": lambda c: c.commit(),
        "subscribe": lambda c: c.subscribe("orders", "*", handle),
        "unsubscribe": lambda c: c.unsubscribe("orders"),
    }),
    "pull": (aio.PullConsumer, "consumer", {
        "start": lambda c: c.start(), "close": lambda c: c.close(), "commit": lambda c: c.commit(),
        "poll": lambda c: c.poll(), "next": lambda c: c.__anext__(),
        "subscribe": lambda c: c.subscribe("orders"), "queues": lambda c: c.queues("orders"),
    }),
    "pop": (aio.PopConsumer, "consumer", {
        "start": lambda c: c.start(), "close": lambda c: c.close(),
        "receive": lambda c: c.receive(), "subscribe": lambda c: c.subscribe("orders"),
    }),
}  # fmt: skip


@pytest.mark.parametrize("kind", USES)
def test_another_loop_is_one_error_and_no_log(
    kind: str, address: str, told: pytest.LogCaptureFixture
) -> None:
    make, name, uses = USES[kind]
    client = make(address, group="g")
    if name == "consumer":  # one without subscription is warned of after a second
        uses["subscribe"](client)

    async def other(use: Use) -> None:
        result = use(client)
        if asyncio.iscoroutine(result) or asyncio.isfuture(result):
            await result

    async def main() -> None:
        await client.start()
        for what, use in uses.items():
            with pytest.raises(errors.WrongLoop) as caught:
                await asyncio.to_thread(asyncio.run, other(use))
            assert str(caught.value) == f"{name} of group g {WRONG}", what
        await client.close()  # what was refused elsewhere has changed nothing here

    asyncio.run(main())
    assert lines(told) == lines(told, logging.ERROR) == []
    asyncio.run(client.close())  # a second close is harmless anywhere


def test_an_admin_on_another_loop_says_so(address: str) -> None:
    async def main() -> None:
        async with aio.Admin(address) as admin:
            for use in (admin.topics.names, admin.brokers.all, admin.close):
                with pytest.raises(errors.WrongLoop) as caught:
                    await asyncio.to_thread(_run, use)
                assert str(caught.value) == f"admin client {WRONG}"
            (broker,) = await admin.brokers.all()
            with pytest.raises(errors.WrongLoop):
                await asyncio.to_thread(_run, lambda: admin.brokers.producers(broker.address))

    asyncio.run(main())


def _run(use: Callable[[], Any]) -> None:
    asyncio.run(use())


def test_a_start_that_failed_may_be_tried_on_another_loop() -> None:
    producer = aio.Producer("127.0.0.1:1", group="g")
    for _ in range(2):
        with pytest.raises(errors.NameServersUnreachable):
            asyncio.run(producer.start())


def test_a_closed_client_is_closed_on_any_loop(address: str) -> None:
    producer = aio.Producer(address, group="g")

    async def once() -> None:
        async with producer:
            pass

    asyncio.run(once())
    for use in (producer.start, lambda: producer.send(MESSAGE)):
        with pytest.raises(errors.ClientClosed):
            asyncio.run(use())


# What is printed


async def test_what_is_printed_reads_as_in_python() -> None:
    async with cluster("orders") as running:
        async with aio.Producer(running.address, group="shop", compress_from=2000) as producer:
            receipt = await producer.send(aio.Message("orders", b"42 EUR", tag="paid"))
            await producer.send(aio.Message("orders", bytes(100)), queue=receipt.queue)
            await producer.send(aio.Message("orders", b"ab" * 2000), queue=receipt.queue)
        queue = f"MessageQueue(topic='orders', broker_name='broker-0', queue_id={receipt.queue.queue_id})"
        assert str(receipt.queue) == repr(receipt.queue) == f"{receipt.queue}" == queue
        assert str(COMMIT) == f"{COMMIT}" == "TransactionState.COMMIT"
        assert int(COMMIT) == 8
        short, long, packed = await running.messages("orders")
        assert repr(short) == (
            f"ReceivedMessage(topic='orders', broker_name='broker-0', "
            f"queue_id={receipt.queue.queue_id}, queue_offset=0, "
            f"message_id='{receipt.message_id}', tag='paid', body=b'42 EUR')"
        )
        assert repr(long).endswith(rf"body={bytes(64)!r}... <100 bytes>)")
        assert repr(packed).endswith(f"body={b'ab' * 32!r}... <{packed.body_size} bytes packed>)")
        assert str(short) == repr(short)
