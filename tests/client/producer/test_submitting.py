"""Sends with a future of their receipt, and the window they go through."""

import asyncio

import pytest

from pocketmq.client.producer.submitting import Submitting
from pocketmq.errors import ClientClosed, InvalidInput, SendFailed, SystemFailure
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.protocol import Command
from tests.client.producer.stage import Say, TestBroker, refuses, silent, stage, stores
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR")


class Held:
    """Answers when told to."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.broker: TestBroker | None = None

    def say(self, request: Command) -> None:
        self.requests.append(request)

    def answer_all(self) -> None:
        assert self.broker is not None
        (connection,) = self.broker.open
        connection.write(*[stores(each).encode() for each in self.requests])
        self.requests.clear()


def held(broker: TestBroker) -> Held:
    made = Held()
    made.broker = broker
    broker.say = made.say
    return made


async def test_submitted_messages_take_turns_as_sent_ones_do() -> None:
    async with stage(batch_bytes=0) as on:
        await on.begin_with(0)
        first = [on.producer.submit(MESSAGE) for _ in range(3)]  # nobody is connected yet
        sent = await on.producer.send(MESSAGE)
        queues = [(await each).queue for each in first]
        again = await asyncio.gather(*[on.producer.submit(MESSAGE) for _ in range(4)])
        queues += [sent.queue, *[each.queue for each in again]]
        order = [(name, number) for name in ("broker-a", "broker-b") for number in (0, 1)]
        assert [(queue.broker_name, queue.queue_id) for queue in queues] == order * 2
        assert len(on.producer.sending.window) == 0


async def test_the_first_message_to_a_topic_finds_its_route() -> None:
    async with stage() as on:
        receipt = await on.producer.submit(Message("fresh", b"x"))
        assert receipt.queue.topic == "fresh"


async def test_choices_are_kept() -> None:
    async with stage() as on:
        queue = MessageQueue("orders", "broker-b", 1)
        assert (await on.producer.submit(MESSAGE, queue=queue)).queue == queue
        assert (await on.producer.submit(MESSAGE, queue=queue)).queue == queue


async def test_bad_input_is_told_at_once() -> None:
    async with stage() as on:
        await on.producer.send(MESSAGE)
        with pytest.raises(InvalidInput, match="needs a body"):
            on.producer.submit(Message("orders", b""))
        with pytest.raises(InvalidInput, match="timeout must be in seconds"):
            on.producer.submit(MESSAGE, timeout=-1.0)
        assert len(on.producer.sending.window) == 0


@pytest.mark.parametrize("connected", [False, True])
async def test_a_refusal_is_final_as_in_java(connected: bool) -> None:
    async with stage({"broker-a": stores, "broker-b": stores}) as on:
        await on.begin_with(0)
        if connected:
            for _ in range(4):
                await on.producer.send(MESSAGE)
        for each in on.brokers.values():
            each.say = refuses(1)
        with pytest.raises(SendFailed, match="after 1 try") as caught:
            await on.producer.submit(MESSAGE)
        assert isinstance(caught.value.last_error, SystemFailure)
        assert len(on.producer.sending.window) == 0


async def test_a_broken_connection_is_tried_elsewhere_with_the_same_queue_id() -> None:
    async with stage() as on:
        await on.begin_with(1)
        for _ in range(4):
            await on.producer.send(MESSAGE)
        broken = on.brokers["broker-a"]

        def cut(_: Command) -> None:
            for connection in broken.open:
                connection.abort()

        broken.say = cut
        receipt = await on.producer.submit(MESSAGE)
        assert receipt.queue == MessageQueue("orders", "broker-b", 1)
        assert len(on.producer.sending.window) == 0


async def test_time_runs_out_for_submitted_messages_too() -> None:
    async with stage({"broker-a": stores}) as on:
        await on.producer.send(MESSAGE)
        on.brokers["broker-a"].say = silent
        with pytest.raises(SendFailed) as caught:
            await on.producer.submit(MESSAGE, timeout=0.1)
        assert (caught.value.attempts, caught.value.outcome_unknown) == (1, True)
        assert len(on.producer.sending.window) == 0


@pytest.mark.parametrize("submitted", [False, True])
async def test_a_full_window_makes_further_messages_wait(submitted: bool) -> None:
    async with stage({"broker-a": stores}, window=2, batch_bytes=0) as on:
        await on.producer.send(MESSAGE)
        answers = held(on.brokers["broker-a"])
        begin = on.producer.submit if submitted else on.producer.send
        sends = [asyncio.ensure_future(begin(MESSAGE)) for _ in range(5)]
        room = asyncio.ensure_future(on.producer.room())
        await until(lambda: len(answers.requests) == 2, "two requests")
        assert on.producer.sending.window.waiting == 3
        assert not room.done()
        while not all(send.done() for send in sends):
            answers.answer_all()
            await asyncio.sleep(0)
            assert len(answers.requests) <= 2
        await room
        assert len({send.result().message_id for send in sends}) == 5


async def test_a_message_that_gets_no_turn_in_time_was_never_sent() -> None:
    async with stage({"broker-a": stores}, window=1) as on:
        await on.producer.send(MESSAGE)
        answers = held(on.brokers["broker-a"])
        first = on.producer.submit(MESSAGE, timeout=5.0)
        for late in (on.producer.send, on.producer.submit):
            with pytest.raises(SendFailed, match="not sent within") as caught:
                await late(MESSAGE, timeout=0.05)
            assert (caught.value.attempts, caught.value.outcome_unknown) == (0, False)
            assert caught.value.retryable
        await until(lambda: answers.requests, "the first request")
        answers.answer_all()
        await first
        assert len(on.brokers["broker-a"].sends) == 2


async def test_one_that_is_cancelled_harms_no_other() -> None:
    async with stage({"broker-a": stores}, batch_bytes=0) as on:
        await on.producer.send(MESSAGE)
        answers = held(on.brokers["broker-a"])
        sends = [asyncio.ensure_future(on.producer.send(MESSAGE)) for _ in range(6)]
        submits = [on.producer.submit(MESSAGE) for _ in range(6)]
        await until(lambda: len(answers.requests) == 12, "all requests")
        for each in (*sends[::2], *submits[::2]):
            each.cancel()
        answers.answer_all()
        left = await asyncio.gather(*sends[1::2], *submits[1::2])
        assert all(receipt.ok for receipt in left)
        assert len({receipt.message_id for receipt in left}) == 6
        await until(lambda: len(on.producer.sending.window) == 0, "the window to be empty")
        on.brokers["broker-a"].say = stores
        assert (await on.producer.send(MESSAGE)).ok


async def test_cancelling_ends_the_tries_that_follow() -> None:
    async with stage({"broker-a": stores, "broker-b": stores}) as on:
        await on.begin_with(0)
        for _ in range(4):
            await on.producer.send(MESSAGE)
        broken = on.brokers["broker-a"]
        answers = held(on.brokers["broker-b"])

        def cut(_: Command) -> None:
            for connection in broken.open:
                connection.abort()

        broken.say = cut
        future = on.producer.submit(MESSAGE)
        await until(lambda: answers.requests, "the second try")
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future
        await until(lambda: len(on.producer.sending.window) == 0, "the window to be empty")


async def test_closing_waits_for_what_was_promised_and_refuses_the_rest() -> None:
    says: dict[str, Say] = {"broker-a": stores}
    async with stage(says, window=2) as on:
        await on.producer.send(MESSAGE)
        answers = held(on.brokers["broker-a"])
        promised = [on.producer.submit(MESSAGE) for _ in range(4)]
        promised.append(on.producer.submit(MESSAGE, ordering_key="k"))
        closing = asyncio.create_task(on.producer.close())
        await until(lambda: len(answers.requests) == 2, "two requests")
        with pytest.raises(ClientClosed):
            on.producer.submit(MESSAGE)
        with pytest.raises(ClientClosed):
            await on.producer.send(MESSAGE)
        assert not closing.done()
        on.brokers["broker-a"].say = stores
        answers.answer_all()
        await closing
        receipts: list[SendReceipt] = [each.result() for each in promised]
        assert all(receipt.ok for receipt in receipts)


async def test_nothing_under_way_is_drained_at_once() -> None:
    async with stage() as on:
        await Submitting(on.producer.sending).drained()
