"""The short way of plain sends: the same outcomes as on the ordinary path, and nothing left behind.

A send with `timeout` takes the ordinary path from its start, so that both can be compared.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import errors
from pocketmq.blocking.process_loop import loop_thread
from pocketmq.client.options import Credentials
from pocketmq.model import Message
from pocketmq.protocol import Command
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import Say, Stage, TestBroker, refuses, silent, stage, stores
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR", tag="paid")
LIMIT = 1.1
"""Seconds for a send in all of these tests."""
PATIENCE = 30.0
"""Seconds for one in a thread to a broker that answers: either may be without a processor."""

Send = Callable[..., Any]


def answers(code: int = 0, **fields: str) -> Say:
    def say(request: Command) -> Command:
        usual = {"msgId": "7F" * 16, "queueId": request.ext["e"], "queueOffset": "7"}
        return request.reply(code, ext=usual | fields)

    return say


def cut(broker: TestBroker) -> Say:
    def say(_: Command) -> None:
        for connection in broker.open:
            connection.abort()

    return say


SAYS: dict[str, Say | Callable[[TestBroker], Say]] = {
    "stored": stores,
    "another queue": answers(queueId="1"),
    "all fields": answers(
        transactionId="T", recallHandle="R", MSG_REGION="eu", TRACE_ON="false", more="x"
    ),
    "an empty region": answers(MSG_REGION=""),
    "of a batch": answers(batchUniqId="B"),
    "an offset past 64 bits": answers(queueOffset=str(2**70)),
    "a spaced number": answers(queueOffset="8.0"),
    "an id of any letters": answers(msgId='größe "7" \\ \x01'),
    "less safely": answers(10),
    "busy": refuses(2, "[REJECTREQUEST]system busy, start flow control for a while"),
    "refused for good": refuses(13, "too long"),
    "not understood": lambda request: request.reply(0),
    "another one's": lambda request: stores(request).reply(0),
    "nothing": silent,
}


async def ready(on: Stage) -> None:
    """Make connections to both brokers, and let the first queue be next."""
    await on.begin_with(0)
    for _ in range(4):
        await on.producer.send(MESSAGE)
    for each in on.brokers.values():
        each.batches.clear()


async def told(send: Send, on: Stage, **settings: Any) -> list[object]:
    """Return what came of a send, in words, and which broker got what under which ids."""
    try:
        receipt = send(MESSAGE, **settings)
        if asyncio.iscoroutine(receipt) or asyncio.isfuture(receipt):
            receipt = await receipt
        unique_id, words = receipt.message_id, repr(receipt)
    except errors.SendFailed as error:
        unique_id = ""
        words = f"{error!r} {error.last_error!r} {error.attempts} {error.outcome_unknown}"
        words += f" {error.__cause__!r} {error.__context__ is error.__cause__}"
    ids = set()
    for each in on.brokers.values():
        for request in each.sends:
            found = decode_properties(request.ext["i"].encode())
            assert found.pop("UNIQ_KEY") is not None
            assert found == {"WAIT": "true", "TAGS": "paid"}
            assert (request.body, request.ext["h"], request.ext["f"]) == (b"42 EUR", "0", "0")
            ids.add(decode_properties(request.ext["i"].encode())["UNIQ_KEY"])
    assert len(ids) == 1  # the id stays the same through all tries
    words = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", words.replace(unique_id or "?", "ID"))
    words = re.sub(r"\d+\.\d+( s)?", "T", words)
    return [
        words,
        on.asked,
        [request.ext["e"] for each in on.brokers.values() for request in each.sends],
    ]


def set_up(on: Stage, says: str, brokers: str) -> None:
    for name, each in on.brokers.items():
        if brokers in {name, "all"}:
            each.say = cut(each) if says == "cut" else SAYS[says]  # type: ignore[assignment]


@pytest.mark.parametrize("retry", [False, True], ids=["", "retry"])
@pytest.mark.parametrize("brokers", ["broker-a", "all"])
@pytest.mark.parametrize("says", [*SAYS, "cut"])
async def test_a_plain_send_ends_as_on_the_ordinary_path(
    says: str, brokers: str, retry: bool
) -> None:
    outcomes = []
    for settings in ({}, {"timeout": LIMIT}):
        async with stage(send_timeout=LIMIT, retry_when_not_stored_ok=retry) as on:
            await ready(on)
            set_up(on, says, brokers)
            outcomes.append(await told(on.producer.send, on, **settings))
            window = on.producer.sending.window
            assert (len(window), window.bytes, window.waiting) == (0, 0, 0)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("brokers", ["broker-a", "all"])
@pytest.mark.parametrize("says", [*SAYS, "cut"])
@pytest.mark.usefixtures("clients_loop")
async def test_so_does_one_of_a_blocking_producer(says: str, brokers: str) -> None:
    outcomes, limit = [], limit_in_threads(says)
    for settings in ({}, {"timeout": limit}):
        async with stage() as on:
            address = on.producer.client_options.name_servers
            with await asyncio.to_thread(blocking, address, limit) as producer:
                await on.begin_with(0)
                for _ in range(4):
                    await asyncio.to_thread(producer.send, MESSAGE, timeout=PATIENCE)
                find = producer._parts.sending._on_loop.publishing.ready  # type: ignore[union-attr]
                publication = find("orders")
                assert publication is not None
                publication.robin.index = -1 & 0x7FFF_FFFF
                for each in on.brokers.values():
                    each.batches.clear()
                set_up(on, says, brokers)

                def send(message: Message, **given: Any) -> asyncio.Future[Any]:
                    work = asyncio.to_thread(producer.send, message, **given)
                    return asyncio.ensure_future(work)

                outcomes.append(await told(send, on, **settings))
                await asyncio.to_thread(producer.close)
    assert outcomes[0] == outcomes[1]


@pytest.fixture
def clients_loop() -> None:
    """Start the loop of blocking clients, which stays: its files are not this test's."""
    loop_thread()


def limit_in_threads(says: str) -> float:
    """Return the seconds for a send to a broker that says this."""
    return LIMIT if says == "nothing" else PATIENCE


def blocking(address: str, limit: float) -> mq.Producer:
    return mq.Producer(address, group="threads", send_timeout=limit).start()


async def test_a_cancelled_send_frees_its_place_and_its_number() -> None:
    async with stage() as on:
        await ready(on)
        set_up(on, "nothing", "all")
        task = asyncio.create_task(on.producer.send(MESSAGE))
        await until(lambda: on.asked["broker-a"] == 1, "the request")
        sending = on.producer.sending
        (connection,) = on.brokers["broker-a"].open
        dialled = sending.session.calls.connected(sending.session.brokers.address("broker-a"))
        assert dialled is not None
        assert (len(sending.window), len(dialled.requests)) == (1, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (len(sending.window), sending.window.bytes, len(dialled.requests)) == (0, 0, 0)
        assert not connection.closed


async def test_the_responses_of_a_burst_reach_their_senders() -> None:
    """Whatever stands among them, in whatever order, and wherever a read ends."""
    odd = ("another queue", "all fields", "of a batch", "refused for good", "a spaced number")
    async with stage(send_timeout=5.0) as on:
        await ready(on)
        held: dict[str, list[Command]] = {name: [] for name in on.brokers}
        for name, each in on.brokers.items():
            each.say = held[name].append
        bodies = [b"%d" % number for number in range(60)]
        tasks = [asyncio.create_task(on.producer.send(Message("orders", body))) for body in bodies]
        await until(lambda: sum(map(len, held.values())) == 60, "all requests")
        first_two = [body for at, body in enumerate(bodies) if at % 4 < 2]
        assert [each.body for each in held["broker-a"]] == first_two, "in the order of the sends"
        tasks[30].cancel()
        kinds, ids = {}, {}
        for name, requests in held.items():
            data = b""
            for at, request in enumerate(reversed(requests)):
                kind = odd[at // 5] if at % 5 == 4 and at // 5 < len(odd) else "stored"
                say = answers(queueOffset=f"{int(request.body)}")
                data += (say if kind == "stored" else SAYS[kind])(request).encode()  # type: ignore[arg-type, union-attr]
                kinds[request.body] = kind
                ids[request.body] = decode_properties(request.ext["i"].encode())["UNIQ_KEY"]
            connection = on.brokers[name].open[0]
            connection.write(data[: len(data) // 3])
            connection.flush()
            await asyncio.sleep(0)
            connection.write(data[len(data) // 3 :])
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for body, outcome in zip(bodies, outcomes, strict=True):
            kind = kinds[body]
            if body == b"30":
                assert isinstance(outcome, asyncio.CancelledError)
            elif kind == "refused for good":
                assert isinstance(outcome, errors.SendFailed)
            else:
                assert isinstance(outcome, mq.SendReceipt)
                assert outcome.message_id == ids[body]
                offset = {"stored": int(body), "a spaced number": 8}.get(kind, 7)
                assert outcome.queue_offset == offset
                assert (outcome.region_id == "eu") is (kind == "all fields")
        window = on.producer.sending.window
        assert (len(window), window.bytes) == (0, 0)


async def test_a_full_window_holds_plain_sends_back_in_their_order() -> None:
    async with stage(window=1, send_timeout=5.0) as on:
        await ready(on)
        held: list[Command] = []
        on.brokers["broker-a"].say = held.append
        first = asyncio.create_task(on.producer.send(MESSAGE))
        await until(lambda: held, "the first request")
        later = [asyncio.create_task(on.producer.send(MESSAGE)) for _ in range(3)]
        await until(lambda: on.producer.sending.window.waiting == 3, "the others to wait")
        assert on.asked == {"broker-a": 1, "broker-b": 0}
        on.brokers["broker-a"].say = stores
        on.brokers["broker-a"].open[0].write(stores(held[0]).encode())
        receipts = [await each for each in (first, *later)]
        places = [(each.queue.broker_name, each.queue.queue_id) for each in receipts]
        assert places == [("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)]


async def test_a_send_that_is_not_plain_yet_takes_no_turn_for_nothing() -> None:
    async with stage() as on:
        await on.begin_with(0)
        places = [(await on.producer.send(MESSAGE)).queue for _ in range(5)]
        assert [queue.queue_id for queue in places] == [0, 1, 0, 1, 0]
        for each in on.brokers.values():
            for connection in each.open:
                connection.abort()
        session = on.producer.session
        addresses = [session.brokers.address(name) for name in on.brokers]
        await until(lambda: not any(map(session.calls.connected, addresses)), "the end")
        assert (await on.producer.send(MESSAGE)).queue.queue_id == 1


@pytest.mark.parametrize("limit", [None, LIMIT])
async def test_a_broker_whose_address_is_gone_is_passed_over(limit: float | None) -> None:
    async with stage() as on:
        await ready(on)
        addresses = on.producer.session.addresses
        addresses.masters = {"broker-b": addresses.masters["broker-b"]}
        assert (await on.producer.send(MESSAGE, timeout=limit)).queue.broker_name == "broker-b"
        assert on.asked == {"broker-a": 0, "broker-b": 1}


async def test_a_broker_that_moved_is_sent_to_at_its_new_address() -> None:
    async with stage() as on:
        await ready(on)
        addresses = on.producer.session.addresses
        addresses.masters = dict.fromkeys(("broker-a", "broker-b"), addresses.masters["broker-b"])
        assert (await on.producer.send(MESSAGE)).queue.broker_name == "broker-a"
        assert on.asked == {"broker-a": 0, "broker-b": 1}


class Watching:
    def before_send(self, context: object) -> None: ...
    def after_send(self, context: object) -> None: ...


RICH = [
    Message("orders", b"x", keys=["A17"]),
    Message("orders", b"x", properties={"region": "eu"}),
    Message("orders", b"x", flag=1),
    Message("orders", b"x", priority=0),
    Message("orders", b"x" * 4096),
]


async def test_only_plain_messages_take_the_short_way() -> None:
    async with stage() as on:
        await ready(on)
        plain = on.producer.sending.plain
        for message in (MESSAGE, Message("orders", b"x"), Message("orders", b"x" * 4095, tag="")):
            posted = plain.post(message)
            assert posted is not None
            plain.abandon(posted)
        for message in RICH:
            assert plain.post(message) is None
        on.producer.add_send_hook(Watching())
        assert plain.post(MESSAGE) is None
        assert len(on.producer.sending.window) == 0


async def test_each_message_goes_to_its_own_topic_and_its_queues_of_now() -> None:
    async with stage() as on:
        await ready(on)
        await on.producer.send(Message("bills", b"x"))
        messages = on.producer.sending.plain.messages
        for name in ("orders", "bills", "bills", "orders"):
            aim = messages.aim(Message(name, b"x"))
            assert aim is not None
            assert (aim[0].topic, aim[2].topic) == (name, name)
        publication = on.producer.sending.publishing.ready("orders")
        assert publication is not None
        publication.take(publication.queues[:1])
        for _ in range(3):
            aim = messages.aim(MESSAGE)
            assert aim is not None
            assert aim[2] is publication.queues[0]
            publication.robin.index = aim[1]
        publication.take(())
        assert messages.aim(MESSAGE) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"namespace": "shop"},
        {
            "credentials": Credentials(access_key="user", secret_key="secret"),
            "namespace_v2": "shop",
        },
        {"avoid_slow_brokers": True},
        {"send_timeout_per_try": 1.0},
        {"queue_choice": "adaptive"},
        {"linger": 0.01},
    ],
)
async def test_some_producers_have_no_short_way(settings: dict[str, Any]) -> None:
    async with stage(**settings) as on:
        for _ in range(4):
            assert (await on.producer.send(MESSAGE)).ok or settings
        assert on.producer.sending.plain.post(MESSAGE) is None


@pytest.mark.parametrize("wrong", [None, "text", b"", 7])
async def test_what_is_no_message_is_told_as_ever(wrong: Any) -> None:
    async with stage() as on:
        await ready(on)
        with pytest.raises(
            errors.InvalidInput, match="a message must be a Message with a topic, not"
        ):
            await on.producer.send(wrong)
        with pytest.raises(errors.InvalidInput, match="a message needs a body"):
            await on.producer.send(Message("orders", b""))
        with pytest.raises(errors.InvalidInput):
            await on.producer.send(Message(["orders"], b"x"))  # type: ignore[arg-type]
