"""Typed handlers: what they are called with, and where a body that cannot be decoded goes."""

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import pocketmq as mq
from pocketmq import DeadLetter, JsonCodec, RetryLater, aio
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.client.codecs import encoded
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.handlers import Failure, Handler, HandlerFailure, raised
from pocketmq.client.push.typed import BodyUndecodable, Undecodable, decoding
from pocketmq.errors import InvalidInput
from pocketmq.model import Message, MessageRequestMode
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from tests.client.group.groups import Member, cluster, member
from tests.client.push.stands import messages, stand
from tests.client.push.test_retries import AT_ONCE, DEAD, SOON
from tests.loops import until

JSON = JsonCodec()
HOST = encode_host("127.0.0.1:10911")


@dataclass
class Order:
    item: str
    price: int


class Line(msgspec.Struct):
    item: str
    price: int


def received(*bodies: bytes) -> list[ReceivedMessage]:
    records = b"".join(
        encode_record(
            Record(topic=b"orders", body=body, born_host=HOST, store_host=HOST, queue_offset=at)
        )
        for at, body in enumerate(bodies)
    )
    return decode_pulled(records, DeliveryContext())


TEA, BAD, COFFEE = received(b'{"item":"tea","price":3}', b"42 EUR", b'{"item":"coffee","price":4}')


def handler_of(function: Any, undecodable: str = "dead_letter", *, batch: bool = False) -> Handler:
    made = decoding(function, JSON, Undecodable(undecodable), batch=batch)
    return Handler(made, batch=batch)


def test_values_become_bodies_and_bodies_values_of_the_same_type() -> None:
    values = [Order("tea", 3), Line("tea", 3), {"item": "tea"}, ["tea", 3], "tea", 3, None]
    for value in values:
        assert JSON.decode(JSON.encode(value), type(value) if value is not None else None) == value
    assert JSON.decode(b'[{"item":"tea","price":3}]', list[Order]) == [Order("tea", 3)]
    for body in (b'{"item":"tea"}', b'{"item":1,"price":3}', b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            JSON.decode(body, Order)
    with pytest.raises(InvalidInput, match="a complex cannot be encoded as JSON"):
        JSON.encode(1j)


def test_pydantic_models_are_used_by_their_own_rules() -> None:
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model("Model", item=(str, ...), price=(int, pydantic.Field(gt=0)))
    tea = model(item="tea", price=3)
    assert JSON.encode(tea) == b'{"item":"tea","price":3}'
    assert JSON.decode(JSON.encode(tea), model) == tea
    assert JSON.decode(JSON.encode([tea, tea]), list[model]) == [tea, tea]
    for body, kind in ((b'{"item":"tea","price":0}', model), (b'[{"item":"tea"}]', list[model])):
        with pytest.raises(ValueError, match="price"):
            JSON.decode(body, kind)


def test_a_producer_encodes_with_its_codec() -> None:
    producer = aio.Producer("127.0.0.1:9876", group="shop", codec=JSON)
    made = producer.message(
        "orders", Order("tea", 3), tag="paid", keys=["A1"], properties={"a": "b"}
    )
    assert made == Message("orders", b'{"item":"tea","price":3}', "paid", ["A1"], {"a": "b"})
    assert producer.message("orders", b"raw").body == b"raw"
    with pytest.raises(InvalidInput, match=r"a Order needs a codec.*codec=JsonCodec\(\)"):
        encoded(None, Order("tea", 3))


class Handling:
    """Remembers what typed functions are called with."""

    def __init__(self, answer: object = None) -> None:
        self.got: list[Any] = []
        self.answer = answer

    def order(self, order: Order) -> Any:
        self.got.append(order)
        return self.answer

    async def order_later(self, order: Order) -> Any:
        self.got.append(order)
        return self.answer

    def both(self, order: Order, message: ReceivedMessage, *, retries: int = 3) -> None:
        self.got.append((order, message.queue_offset))

    def defaulted(self, order: Order, retries: int = 3) -> None:
        self.got.append((order, retries))

    def lists(self, orders: list[Order]) -> Any:
        self.got.append(orders)
        return self.answer

    def both_lists(self, orders: list[Order], messages: list[ReceivedMessage]) -> None:
        self.got.append((orders, [message.queue_offset for message in messages]))

    def body(self, body: bytes) -> None:
        self.got.append(body)

    def plain(self, message: ReceivedMessage) -> None: ...

    def plain_list(self, messages: list[ReceivedMessage]) -> None: ...

    def untyped(self, message): ...  # type: ignore[no-untyped-def]


async def test_a_handler_is_called_with_what_it_is_annotated_with() -> None:
    on, tea = Handling(), Order("tea", 3)
    functions = (
        on.order,
        functools.partial(Handling.order, on),
        on.both,
        on.defaulted,
        on.body,
    )
    for function in functions:
        assert handler_of(function).call([TEA]) is None
    assert await handler_of(on.order_later).call_async([TEA]) is None
    assert handler_of(on.lists, batch=True).call([TEA, COFFEE]) is None
    assert handler_of(on.both_lists, batch=True).call([TEA, COFFEE]) is None
    both = [tea, Order("coffee", 4)]
    assert on.got == [tea, tea, (tea, 0), (tea, 3), TEA.body, tea, both, (both, [0, 2])]


def test_handlers_of_messages_are_left_as_they_are() -> None:
    on = Handling()
    for function in (on.plain, on.untyped, print):
        assert decoding(function, JSON, Undecodable.SKIP, batch=False) is function
    for many in (on.plain_list, on.untyped):
        assert decoding(many, JSON, Undecodable.SKIP, batch=True) is many


async def test_a_body_that_cannot_be_decoded_goes_where_the_user_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    on = Handling()
    for function in (on.order, on.order_later):
        outcomes: list[Failure | None] = []
        for word in ("dead_letter", "retry", "skip"):
            handler = handler_of(function, word)
            call: Any = handler.call_async([BAD]) if handler.is_async else handler.call([BAD])
            outcomes.append(await call if handler.is_async else call)
        dead, retry, skipped = outcomes
        assert dead is not None
        assert (dead.limit, dead.delay_level, dead.only) == (0, -1, None)
        assert dead.reason.startswith("body cannot be decoded as Order: ")
        assert retry is not None
        assert (retry.limit, retry.delay_level) == (None, 0)
        assert skipped is None
    assert on.got == []
    assert caplog.text.count("message skipped, its body cannot be decoded: topic=orders") == 2
    with pytest.raises(BodyUndecodable) as failed:
        decoding(on.order, JSON, Undecodable.RETRY, batch=False)(BAD)
    assert isinstance(failed.value.__cause__, msgspec.DecodeError)


def test_of_a_list_only_those_fail_that_cannot_be_decoded() -> None:
    on = Handling()
    failure = handler_of(on.lists, batch=True).call([TEA, BAD, COFFEE])
    assert failure is not None
    assert (failure.only, failure.limit) == (frozenset({1}), 0)
    assert on.got == [[Order("tea", 3), Order("coffee", 4)]]
    failure = handler_of(on.lists, "retry", batch=True).call([BAD])
    assert failure is not None
    assert (failure.only, failure.limit) == (frozenset({0}), None)
    assert handler_of(on.lists, "skip", batch=True).call([BAD, TEA]) is None
    assert on.got[1:] == [[Order("tea", 3)]], "a handler is not called with an empty list"
    unfinished = Handling(RetryLater(5, done=1))
    failure = handler_of(unfinished.lists, batch=True).call([BAD, TEA, COFFEE])
    assert failure is not None
    assert (failure.only, failure.limit, failure.done, failure.delay_level) == (None, None, 0, 5)


def test_what_is_not_a_matter_of_the_body_is_retried() -> None:
    def fails(order: Order) -> None:
        raise ValueError("no price")

    def mistaken(order: Handling) -> None: ...

    for function, kind in ((fails, ValueError), (mistaken, NotImplementedError)):
        failure = handler_of(function).call([TEA])
        assert failure is not None
        assert isinstance(failure.error, kind)
        assert failure.limit is None


def test_mistakes_are_refused_when_the_topic_is_subscribed() -> None:
    def three(order: Order, message: ReceivedMessage, more: int) -> None: ...

    def unknown(order: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821

    on = Handling()
    consumer = aio.PushConsumer("127.0.0.1:9876", group="billing", codec=JSON)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (three, {}, "a typed handler must take a value and the message"),
        (unknown, {}, "cannot be resolved.*'Nowhere'.*at the top of its module"),
        (on.order, {"batch": True}, r"must take list\[Order\] or the like, not <class"),
        (on.order, {"undecodable": "drop"}, "undecodable must be one of .*'skip'.*, not 'drop'"),
        (lambda: None, {}, "a handler must take one argument"),
        (on.order, {"codec": JsonCodec}, "a codec must have encode and decode, such as JsonCodec"),
        (None, {"codec": JSON}, "codec, retry and deduplicate belong to a handler"),
    ]
    for handler, options, text in cases:
        with pytest.raises(InvalidInput, match=text):
            consumer.subscribe("orders", "*", handler, **options)
    for client in (aio.Producer, mq.Producer, aio.PushConsumer, mq.PushConsumer):
        made: Any = client
        with pytest.raises(InvalidInput, match="a codec must have encode and decode"):
            made("127.0.0.1:9876", group="billing", codec="json")
    orderly = aio.PushConsumer("127.0.0.1:9876", group="billing", orderly=True)
    with pytest.raises(InvalidInput, match="an orderly consumer cannot move one message of a list"):
        orderly.subscribe("orders", "*", on.lists, batch=True, codec=JSON)
    orderly.subscribe("orders", "*", on.lists, batch=True, codec=JSON, undecodable="retry")
    orderly.subscribe("orders", "*", on.plain_list, batch=True, codec=JSON)


def test_a_dead_letter_may_be_raised_or_returned() -> None:
    failure = Handler(lambda message: DeadLetter("no such item")).call([TEA])
    assert failure == raised(DeadLetter("no such item"))
    assert failure is not None
    assert (failure.limit, failure.delay_level) == (0, -1)
    assert failure.reason == "handler requested the dead-letter topic (DeadLetter): no such item"


async def send_all(address: str, bodies: list[bytes]) -> None:
    async with Producer(address, group="shop") as producer:
        await producer.send_batch([Message("orders", body) for body in bodies])


async def test_those_of_a_list_that_did_not_fail_are_done() -> None:
    def handle(messages: list[ReceivedMessage]) -> None:
        raise HandlerFailure(Failure("bad", only=frozenset({1}), delay_level=-1, limit=0))

    async with stand(handle, batch=True, handler_batch=3) as (on, taker):
        held = on.hold()
        on.arrive(held, messages(3))
        await until(lambda: on.noted[-1:] == [3], "the offset behind all")
        (back,) = taker.sent_back()
        assert (back["offset"], back["delayLevel"]) == ("1001", "-1")
        assert back["maxReconsumeTimes"] == "0"


@pytest.mark.parametrize("profile", [V4, V5])
async def test_a_dead_letter_of_an_orderly_consumer_has_used_up_its_retries(
    profile: Profile,
) -> None:
    """The broker compares the two numbers: 4.x with `>=`, 5.x with `>`."""
    async with stand(lambda message: DeadLetter(), orderly=True, profile=profile) as (on, taker):
        held = on.hold()
        on.arrive(held, messages(1))
        await until(lambda: on.noted[-1:] == [1], "the offset behind it")
        (copy,) = taker.copies()
        assert (copy.ext["j"], copy.ext["l"]) == ("1", "0"), "reconsume times, and their limit"


Settings = dict[str, Any]
GOOD = b'{"item":"tea","price":3}'


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"handler_batch": 8},
        {"orderly": True, "suspend_queue": 30.0},
        {"client_rebalance": False},
        {"client_rebalance": False, "handler_batch": 8},
    ],
    ids=["one", "list", "orderly", "popped", "popped list"],
)
async def test_undecodable_messages_are_dead_letters_and_the_others_are_handled_once(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    handled: list[Order] = []

    def one(order: Order) -> None:
        handled.append(order)

    def many(orders: list[Order]) -> None:
        handled.extend(orders)

    caplog.set_level(logging.CRITICAL, "pocketmq.client")
    async with cluster(1, 1, config=AT_ONCE) as running:
        consuming = Member(running.address, "a", codec=JSON, **{**SOON, **settings})
        function: Callable[[Any], None] = many if "handler_batch" in settings else one
        consuming.consumer.subscribe("orders", "*", function)
        if "client_rebalance" in settings:
            async with aio.Admin(running.address) as admin:
                pop = MessageRequestMode.POP
                done = await admin.groups.set_mode("orders", "billing", pop, "DefaultCluster")
                assert done.complete
        await send_all(running.address, [GOOD, b"bad", GOOD, b"worse", GOOD])
        async with consuming.consumer, member(
            running.address, "dead", group="readers", topics=(DEAD,), **SOON
        ) as dead:  # fmt: skip
            await until(lambda: len(dead.got) == 2, "the dead letters", 20)
            await until(lambda: len(handled) == 3, "the others")
            if "client_rebalance" in settings:
                joined = consuming.consumer._life.member
                assert joined is not None
                (held,) = joined.parts.queues.popped.values()
                settling: Any = held.popped
                await until(lambda: settling.waiting == 0, "all to be acknowledged")
        assert sorted(dead.bodies) == [b"bad", b"worse"]
        assert handled == [Order("tea", 3)] * 3
