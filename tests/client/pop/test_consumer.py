"""Receiving, acknowledging and hiding, against brokers that remember what they were asked."""

import asyncio

import pytest

from pocketmq import errors
from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.model import ConsumeFromWhere, ConsumeType, property_names
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.pop import PopRequest
from tests.client.pop.shelves import Shelf, popping, record
from tests.loops import leap, leaping, until


async def test_a_pop_asks_for_what_the_caller_wants() -> None:
    shelf = Shelf()
    shelf.put(*(record(n, properties={property_names.TAGS: "paid"}) for n in range(3)))
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    async with popping(shelf, consume_from=first, expression="paid || sent") as consumer:
        assert len(await consumer.receive(2, invisible=90, timeout=12)) == 2
        (request,) = shelf.asked_for(Code.POP_MESSAGE)
        header = request.header(PopRequest)
        assert (header.max_msg_nums, header.invisible_time, header.queue_id) == (2, 90_000, -1)
        assert 2000 < header.poll_time <= 12_000, "what is left of the caller's time"
        assert (header.exp, header.exp_type, header.init_mode) == ("paid || sent", "TAG", 0)
        assert (header.born_time, header.order, header.attempt_id) == (0, False, None)


async def test_messages_are_received_once_and_acknowledged_alone_or_together() -> None:
    shelf = Shelf()
    shelf.put(*(record(n) for n in range(5)))
    async with popping(shelf) as consumer:
        got = await consumer.receive(3)
        assert [message.body for message in got] == [b"0", b"1", b"2"]
        await consumer.ack(got[0])
        await consumer.ack(got[1:])
        await consumer.ack([])
        assert shelf.acked == [0, 1, 2]
        assert len(shelf.asked_for(Code.ACK_MESSAGE)) == 1
        assert len(shelf.asked_for(Code.BATCH_ACK_MESSAGE)) == 1


async def test_brokers_that_know_no_batches_get_single_acknowledgements() -> None:
    shelf = Shelf(knows_batches=False)
    shelf.put(*(record(n) for n in range(4)))
    async with popping(shelf) as consumer:
        await consumer.ack(await consumer.receive(2))
        await consumer.ack(await consumer.receive(2))
        assert shelf.acked == [0, 1, 2, 3]
        assert len(shelf.asked_for(Code.BATCH_ACK_MESSAGE)) == 1


async def test_hiding_a_message_for_longer_gives_it_a_new_handle() -> None:
    shelf = Shelf()
    shelf.put(record(0))
    async with popping(shelf) as consumer:
        (message,) = await consumer.receive()
        longer = await consumer.change_invisible(message, 120)
        assert (
            message.get_property(property_names.POP_CHECKPOINT)
            == "0 1700000000000 60000 2 0 broker-0 0 0"
        )
        assert (
            longer.get_property(property_names.POP_CHECKPOINT)
            == "0 1700000000005 120000 3 0 broker-0 0 0"
        )
        await consumer.ack(longer)
        (ack,) = shelf.asked_for(Code.ACK_MESSAGE)
        assert ack.ext["extraInfo"] == "0 1700000000005 120000 3 0 broker-0 0 0"


async def test_a_receive_that_finds_nothing_ends_at_its_deadline() -> None:
    loop = asyncio.get_running_loop()
    for shelves in ([Shelf()], [Shelf(), Shelf()]):
        async with popping(*shelves) as consumer:
            began = loop.time()
            assert await consumer.receive(timeout=0.1) == []
            assert 0.09 <= loop.time() - began < 10, "pops are held for 15 s"


async def test_one_source_is_asked_to_hold_the_pop() -> None:
    shelf = Shelf()
    async with popping(shelf) as consumer:
        waiting = asyncio.ensure_future(consumer.receive(timeout=10))
        await until(lambda: len(shelf.asked_for(Code.POP_MESSAGE)) == 1, "the pop")
        shelf.put(record(0))
        assert [message.body for message in await waiting] == [b"0"]


async def test_sources_come_first_in_turn() -> None:
    a, b = Shelf(), Shelf()
    a.put(*(record(n, b"a") for n in range(4)))
    b.put(*(record(n, b"b") for n in range(4)))
    async with popping(a, b) as consumer:
        got = [(await consumer.receive(1))[0].body for _ in range(8)]
        assert sorted(got[:4]) == [b"a", b"a", b"b", b"b"]
        assert sorted(got) == [b"a"] * 4 + [b"b"] * 4


async def test_a_broker_that_fails_does_not_hide_what_another_has() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, request_timeout=1.0) as consumer:
        a.put(record(0))
        a.lost = 1000
        b.put(record(1, b"b"))
        assert [message.body for message in await consumer.receive(timeout=5)] == [b"b"]
        a.messages.clear()
        assert await consumer.receive(timeout=0.2) == []


async def test_the_error_of_a_lone_broker_is_the_callers() -> None:
    shelf = Shelf()
    async with popping(shelf, request_timeout=1.0) as consumer:
        shelf.put(record(0))
        shelf.lost = 1000
        with pytest.raises(errors.TransportError, match="POP_MESSAGE"):
            await consumer.receive(timeout=0)


async def test_brokers_that_know_no_pops_say_so() -> None:
    for count in (1, 2):
        shelves = [Shelf() for _ in range(count)]
        for shelf in shelves:
            shelf.refuses.add(Code.POP_MESSAGE)
        async with popping(*shelves) as consumer:
            with pytest.raises(errors.RequestNotSupported, match="POP_MESSAGE"):
                await consumer.receive()


async def test_what_a_cancelled_receiver_would_have_got_is_for_the_next() -> None:
    shelf = Shelf()
    async with popping(shelf) as consumer:
        receiving = asyncio.ensure_future(consumer.receive(timeout=10))
        await until(lambda: shelf.asked_for(Code.POP_MESSAGE), "the pop")
        receiving.cancel()
        await asyncio.wait({receiving})
        shelf.put(record(0), record(1))
        receiving_now = consumer._life.running().receiving
        await until(lambda: receiving_now.kept, "the answer")
        assert [message.body for message in await consumer.receive(1)] == [b"0"]
        assert [message.body for message in await consumer.receive(1)] == [b"1"]
        assert len(shelf.asked_for(Code.POP_MESSAGE)) == 1


@leaping
async def test_what_was_left_and_is_hidden_no_more_is_not_given_to_anybody() -> None:
    shelf = Shelf()
    async with popping(shelf, invisible=30.0) as consumer:
        receiving = asyncio.ensure_future(consumer.receive(timeout=10))
        await until(lambda: shelf.asked_for(Code.POP_MESSAGE), "the pop")
        receiving.cancel()
        shelf.put(record(0))
        await until(lambda: consumer._life.running().receiving.kept, "the answer")
        await leap(31)
        shelf.put(record(1))
        assert [message.body for message in await consumer.receive()] == [b"1"]


async def test_what_nobody_took_is_given_back_at_the_end() -> None:
    shelf = Shelf()
    async with popping(shelf) as consumer:
        receiving = asyncio.ensure_future(consumer.receive(timeout=10))
        await until(lambda: shelf.asked_for(Code.POP_MESSAGE), "the pop")
        receiving.cancel()
        shelf.put(record(0), record(1))
        await until(lambda: consumer._life.running().receiving.kept, "the answer")
    back = shelf.asked_for(Code.CHANGE_MESSAGE_INVISIBLETIME)
    assert [(r.ext["offset"], r.ext["invisibleTime"]) for r in back] == [("0", "1"), ("1", "1")]


async def test_messages_of_other_tags_are_acknowledged_for_nobody() -> None:
    """Brokers choose by hash codes, and `Aa` and `BB` have the same."""
    shelf = Shelf()
    shelf.put(
        *(record(n, properties={property_names.TAGS: tag}) for n, tag in enumerate(["Aa", "BB"]))
    )
    async with popping(shelf, expression="Aa") as consumer:
        assert [message.tag for message in await consumer.receive()] == ["Aa"]
        await until(lambda: shelf.acked == [1], "the other one to be acknowledged")


async def test_an_ordered_pop_whose_answer_was_lost_is_asked_for_again() -> None:
    """By the same attempt the broker knows that it is no other consumer."""
    shelf = Shelf()
    shelf.put(record(0), record(1))
    shelf.lost = 1
    async with popping(shelf, ordered=True, request_timeout=1.0) as consumer:
        with pytest.raises(errors.TransportError):
            await consumer.receive(1, timeout=0)
        assert len(await consumer.receive(1)) == 1
        assert len(await consumer.receive(1)) == 1
        first, second, third = (
            request.header(PopRequest) for request in shelf.asked_for(Code.POP_MESSAGE)
        )
        assert first.order
        assert first.attempt_id == second.attempt_id != third.attempt_id


async def test_brokers_are_told_of_the_group_and_of_its_end() -> None:
    shelf = Shelf()
    async with popping(shelf) as consumer:
        data = consumer._life.running().consumer_data()
        assert data.consume_type is ConsumeType.CONSUME_POP
        assert [each.topic for each in data.subscription_data_set] == ["orders"]
        assert shelf.asked_for(Code.HEART_BEAT)
    (left,) = shelf.asked_for(Code.UNREGISTER_CLIENT)
    assert left.ext["consumerGroup"] == "billing"


async def test_topics_without_a_route_are_named() -> None:
    shelf = Shelf()
    shelf.put(record(0))
    async with popping(shelf) as consumer:
        consumer.subscribe("nowhere")
        with pytest.raises(errors.RouteNotFound, match="nowhere"):
            await consumer.receive(topic="nowhere")
        assert len(await consumer.receive()) == 1
        consumer.unsubscribe("nowhere")
        with pytest.raises(errors.InvalidInput, match="call subscribe"):
            await consumer.receive(topic="nowhere")


async def test_names_are_put_into_a_namespace() -> None:
    async with popping(Shelf(), namespace="shop") as consumer:
        member = consumer._life.running()
        assert member.group == "shop%billing"
        assert list(member.topics()) == ["shop%orders"]


async def test_a_consumer_that_is_not_running_says_so() -> None:
    consumer = PopConsumer("127.0.0.1:1", group="billing").subscribe("orders")
    with pytest.raises(errors.ClientClosed):
        await consumer.receive()
    await consumer.close()
    with pytest.raises(errors.ClientClosed):
        await consumer.start()


@pytest.mark.parametrize(
    "settings",
    [
        {"max_messages": 33},
        {"max_messages": 0},
        {"invisible": 0.0},
        {"receive_timeout": -1.0},
        {"consume_from": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP},
        {"pull_batch": 3},
    ],
)
def test_settings_that_can_never_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidInput):
        PopConsumer("a:1", group="billing", **settings)  # type: ignore[arg-type]


async def test_a_start_that_waits_for_no_name_server_needs_none() -> None:
    consumer = PopConsumer("127.0.0.1:1", group="billing", start_wait=None).subscribe("orders")
    async with consumer:
        assert "running" in repr(consumer)
    assert "closed" in repr(consumer)
