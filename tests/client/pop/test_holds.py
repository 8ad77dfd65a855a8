"""Pops held at several brokers at once: who gets what they bring, and what nobody takes."""

import asyncio

import pytest

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.errors import ClientClosed, MQError, TransportError
from pocketmq.net import Connection
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol import RequestCode as Code
from tests.client.pop.shelves import Shelf, popping, record
from tests.loops import leap, leaping, until


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


async def hold(consumer: PopConsumer, *shelves: Shelf) -> "asyncio.Task[list[ReceivedMessage]]":
    """Begin a receive that has pops held at all shelves."""
    waiting = asyncio.ensure_future(consumer.receive(timeout=10))
    await until(lambda: all(shelf.held for shelf in shelves), "the pops to be held")
    return waiting


async def kept(consumer: PopConsumer, count: int = 1) -> None:
    await until(
        lambda: len(consumer._life.running().receiving.kept) == count, "the messages to be kept"
    )


def changes(shelf: Shelf) -> list[tuple[str, str]]:
    """Offsets and new invisible times, in milliseconds."""
    asked = shelf.asked_for(Code.CHANGE_MESSAGE_INVISIBLETIME)
    return [(request.ext["offset"], request.ext["invisibleTime"]) for request in asked]


async def test_the_first_broker_that_has_something_ends_the_wait_and_the_others_go_on() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        waiting = await hold(consumer, a, b)
        b.put(record(0, b"from b"))
        (message,) = await waiting
        assert (message.body, message.broker_name) == (b"from b", "broker-1")
        asked = len(a.asked_for(Code.POP_MESSAGE))
        a.put(record(0, b"from a"))
        assert bodies(await consumer.receive(timeout=10)) == [b"from a"]
        assert len(a.asked_for(Code.POP_MESSAGE)) == asked
        await consumer.ack(message)
        assert (a.acked, b.acked) == ([], [0])


async def test_pops_are_held_as_long_as_those_of_push_consumers_however_short_the_wait() -> None:
    """Java's brokers serve the pop first that ends first."""
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        assert await consumer.receive(timeout=0.05) == []
        assert await consumer.receive(timeout=0.05) == []
        for shelf in (a, b):
            assert [r.ext["pollTime"] for r in shelf.asked_for(Code.POP_MESSAGE)] == ["0", "15000"]


async def test_a_receive_that_does_not_wait_has_no_pop_held() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        assert await consumer.receive(timeout=0) == []
        assert (a.held, b.held) == (0, 0)


async def test_a_receive_that_does_not_wait_gets_what_a_held_pop_has_taken() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        assert await consumer.receive(timeout=0.05) == []
        await until(lambda: a.held and b.held, "the pops to be held")
        b.put(record(0))
        assert bodies(await consumer.receive(timeout=0)) == [b"0"]


async def test_receivers_that_share_a_consumer_get_every_message_once() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        receivers = [asyncio.ensure_future(consumer.receive(1, timeout=10)) for _ in range(6)]
        await until(lambda: a.held and b.held, "the pops to be held")
        for number in range(3):
            a.put(record(number, b"a%d" % number))
            b.put(record(number, b"b%d" % number))
        got = [body for messages in await asyncio.gather(*receivers) for body in bodies(messages)]
        assert sorted(got) == [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]


@leaping
async def test_what_was_kept_for_long_is_hidden_anew_when_it_is_delivered() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, invisible=60.0) as consumer:
        waiting = await hold(consumer, a, b)
        a.put(record(0))
        await waiting
        b.put(record(0), record(1))
        await kept(consumer)
        assert changes(b) == []
        await leap(30)
        first = await consumer.receive(1)
        assert (bodies(first), changes(b)) == ([b"0"], [("0", "60000")])
        await consumer.ack(first)
        (ack,) = b.asked_for(Code.ACK_MESSAGE)
        assert ack.ext["extraInfo"].split()[1:3] == ["1700000000005", "60000"]
        await leap(31)  # the second was not renewed, and others may have it now
        assert await consumer.receive(timeout=0) == []


async def test_what_was_popped_for_another_invisible_time_is_changed_to_what_is_asked() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, invisible=60.0) as consumer:
        waiting = await hold(consumer, a, b)
        a.put(record(0))
        await waiting
        b.put(record(0))
        assert bodies(await consumer.receive(invisible=5.0)) == [b"0"]
        assert changes(b) == [("0", "5000")]


async def test_what_held_pops_brought_is_returned_when_the_consumer_closes() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        waiting = await hold(consumer, a, b)
        a.put(record(0))
        await waiting
        b.put(record(0), record(1))
        await kept(consumer)
    assert (changes(a), changes(b)) == ([], [("0", "1"), ("1", "1")])


async def test_what_held_pops_bring_after_the_close_is_returned_while_others_use_the_session() -> (
    None
):
    a, b = Shelf(), Shelf()
    async with popping(a, b, instance_name="same") as consumer:
        address = consumer._client_options.name_servers
        another = PopConsumer(address, group="another", instance_name="same")
        async with another.subscribe("orders"):
            waiting = await hold(consumer, a, b)
            a.put(record(0))
            await waiting
            await consumer.close()
            b.put(record(0))
            await until(lambda: changes(b) == [("0", "1")], "the message to be returned")


async def test_what_is_not_subscribed_any_more_is_returned() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        waiting = await hold(consumer, a, b)
        a.put(record(0))
        await waiting
        b.put(record(0, b"of all tags"))
        await kept(consumer)
        consumer.subscribe("orders", "paid")
        assert await consumer.receive(timeout=0) == []
        await until(lambda: changes(b) == [("0", "1")], "the message to be returned")


async def test_a_receive_that_waits_ends_when_the_consumer_closes() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        waiting = await hold(consumer, a, b)
        await consumer.close()
        with pytest.raises(ClientClosed):
            await waiting


async def test_brokers_that_fail_while_pops_are_held_are_the_callers_error() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, request_timeout=1.0) as consumer:
        waiting = await hold(consumer, a, b)
        for shelf in (a, b):
            shelf.refuses.add(Code.POP_MESSAGE)
            shelf.put(record(0))
        with pytest.raises(MQError):
            await waiting


async def test_a_broker_that_fails_does_not_delay_what_another_holds() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, request_timeout=1.0) as consumer:
        a.put(record(0))
        a.lost = 1000
        waiting = asyncio.ensure_future(consumer.receive(timeout=10))
        await until(lambda: b.held, "the pop to be held")
        b.put(record(0, b"b"))
        assert bodies(await waiting) == [b"b"]


async def test_the_error_is_raised_if_every_broker_fails() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b, request_timeout=1.0) as consumer:
        for shelf in (a, b):
            shelf.put(record(0))
            shelf.lost = 1000
        with pytest.raises(TransportError, match="POP_MESSAGE"):
            await consumer.receive(timeout=5)


async def test_what_a_held_pop_brings_while_others_are_looked_at_is_received_at_once() -> None:
    a = Shelf()

    class Late(Shelf):
        """Has a message come elsewhere while it is looked at."""

        def _pop(self, connection: Connection, request: Command) -> Command | None:
            if a.held:
                a.put(record(0))
            return super()._pop(connection, request)

    b, c = Late(), Shelf()
    async with popping(a, b, c) as consumer:
        waiting = await hold(consumer, a)
        async with asyncio.timeout(5):  # the receive would wait twice as long
            assert bodies(await waiting) == [b"0"]


async def test_ordered_pops_under_way_at_the_same_time_are_different_attempts() -> None:
    """With the same one a broker gives both the same messages."""
    a, b = Shelf(), Shelf()
    async with popping(a, b, ordered=True) as consumer:
        waiting = await hold(consumer, a, b)
        assert await consumer.receive(timeout=0) == []
        attempts = [request.ext["attemptId"] for request in a.asked_for(Code.POP_MESSAGE)]
        assert len(attempts) == len(set(attempts)) == 3
        a.put(record(0))
        assert bodies(await waiting) == [b"0"]


async def test_a_broker_that_failed_once_and_holds_a_pop_now_counts_as_working() -> None:
    a, b = Shelf(), Shelf()
    async with popping(a, b) as consumer:
        waiting = await hold(consumer, a, b)
        b.refuses.add(Code.POP_MESSAGE)
        b.refusal = 1  # the broker's system error
        b.put(record(0))
        await until(lambda: not b.held, "b to fail")
        b.refuses.clear()
        b.messages.clear()
        await until(lambda: b.held, "b to hold a pop again")
        a.refuses.add(Code.POP_MESSAGE)
        a.refusal = 1
        a.put(record(0))
        asked = len(a.asked_for(Code.POP_MESSAGE))
        await until(
            lambda: waiting.done() or len(a.asked_for(Code.POP_MESSAGE)) > asked,
            "a to fail and be asked again",
        )
        b.put(record(1, b"from b"))
        assert bodies(await waiting) == [b"from b"]
