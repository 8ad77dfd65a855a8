"""What a producer's trace tells."""

import pytest

from pocketmq.errors import SendFailed
from pocketmq.model import Message, TransactionState
from pocketmq.protocol import Command, ReceivedMessage, trace_text
from tests.client.producer.stage import Say, Stage, refuses, stage
from tests.client.producer.test_check_backs import ask
from tests.client.producer.test_transactions import PLACE, ends, keeps
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR", tag="paid", keys=["A17", "B18"])
TRACES = "RMQ_SYS_TRACE_TOPIC"


async def told(on: Stage, topic: str = TRACES) -> list[trace_text.Traced]:
    """Everything in the trace; closes the producer."""
    await on.producer.close()
    messages = [each for each in on.brokers["broker-a"].sends if each.ext["b"] == topic]
    return [event for each in messages for event in trace_text.decode_traced(each.body.decode())]


async def test_a_send_is_told_with_its_place() -> None:
    async with stage({"broker-a": keeps()}, trace=True) as on:
        receipt = await on.producer.send(MESSAGE)
        address = on.producer.session.addresses.master("broker-a")
        (event,) = await told(on)
    assert isinstance(event, trace_text.TracedSend)
    assert event == trace_text.TracedSend(
        time_ms=event.time_ms,
        region="DefaultRegion",
        group="shop",
        topic="orders",
        message_id=receipt.message_id,
        tag="paid",
        keys="A17 B18",
        store_host=address,
        body_size=6,
        cost_ms=event.cost_ms,
        offset_message_id=PLACE,
    )


async def test_the_trace_can_be_found_by_ids_and_keys_and_has_a_group_of_its_own() -> None:
    async with stage({"broker-a": keeps()}, trace=True) as on:
        receipt = await on.producer.send(MESSAGE)
        await on.producer.close()
        trace = on.brokers["broker-a"].sends[-1]
    assert f"KEYS\x01{receipt.message_id} A17 B18\x02" in trace.ext["i"]
    assert trace.ext["a"] == "_INNER_TRACE_PRODUCER-shop-PRODUCE"


async def test_every_message_of_a_batch_is_told_by_its_own_id() -> None:
    def say(request: Command) -> Command:
        places = ",".join(f"{n:032X}" for n in range(3)) if request.code == 320 else PLACE
        return keeps(place=places)(request)

    async with stage({"broker-a": say}, trace=True) as on:
        batch = [Message("orders", b"x" * n, tag=f"t{n}") for n in (1, 2, 3)]
        receipt = await on.producer.send_batch(batch)
        events = await told(on)
    assert [
        (each.message_id, each.offset_message_id, each.tag, each.body_size)
        for each in events
        if isinstance(each, trace_text.TracedSend)
    ] == [
        (message_id, f"{n:032X}", f"t{n + 1}", n + 1)
        for n, message_id in enumerate(receipt.message_id.split(","))
    ]
    assert len(events) == 3


async def test_kinds_of_messages_are_told_apart() -> None:
    async with stage({"broker-a": keeps()}, trace=True) as on:
        producer = on.producer
        await producer.send(MESSAGE)
        await producer.send(MESSAGE, delay_level=3)
        await producer.send(MESSAGE, delay=2.0)
        await producer.send_in_transaction(MESSAGE, lambda _, __: TransactionState.ROLLBACK)
        events = await told(on)
    assert [each.kind for each in events if not isinstance(each, trace_text.TracedEnd)] == [  # type: ignore[union-attr]
        trace_text.TracedKind.NORMAL, trace_text.TracedKind.DELAYED, trace_text.TracedKind.DELAYED, trace_text.TracedKind.HALF,
    ]  # fmt: skip


async def test_the_end_of_a_transaction_is_told() -> None:
    async with stage({"broker-a": keeps()}, trace=True, namespace="ns") as on:
        receipt = await on.producer.send_in_transaction(
            MESSAGE, lambda _, __: TransactionState.COMMIT
        )
        address = on.producer.session.addresses.master("broker-a")
        half, end = await told(on)
    assert isinstance(half, trace_text.TracedSend)
    assert (half.group, half.topic) == ("shop", "orders")
    assert isinstance(end, trace_text.TracedEnd)
    assert end == trace_text.TracedEnd(
        time_ms=end.time_ms,
        region="DefaultRegion",
        group="shop",
        topic="orders",
        message_id=receipt.message_id,
        tag="paid",
        keys="A17 B18",
        store_host=address,
        transaction_id=receipt.message_id,
        state=TransactionState.COMMIT,
    )


async def test_what_a_check_came_to_is_told() -> None:
    async def check(_: ReceivedMessage) -> None:
        return None

    async with stage({"broker-a": keeps()}, trace=True, check=check) as on:
        await ask(on)
        await ends(on)
        (end,) = await told(on)
    assert isinstance(end, trace_text.TracedEnd)
    assert (end.state, end.from_check) == (TransactionState.UNKNOWN, True)
    assert (end.message_id, end.transaction_id, end.tag) == ("M1111", "M1111", "paid")


def says_no_trace(request: Command) -> Command:
    answer = keeps()(request)
    return request.reply(0, ext={**answer.ext, "TRACE_ON": "false"})


def region(request: Command) -> Command:
    answer = keeps()(request)
    return request.reply(0, ext={**answer.ext, "MSG_REGION": "eu"})


async def test_a_broker_that_wants_no_traces_gets_none() -> None:
    async with stage({"broker-a": says_no_trace}, trace=True) as on:
        await on.producer.send(MESSAGE)
        assert await told(on) == []


async def test_the_region_is_the_brokers() -> None:
    async with stage({"broker-a": region}, trace=True) as on:
        await on.producer.send(MESSAGE)
        (event,) = await told(on)
    assert isinstance(event, trace_text.TracedSend)
    assert event.region == "eu"


async def test_only_what_a_broker_took_is_told() -> None:
    def say(request: Command) -> Command | None:
        answers: dict[bool, Say] = {True: keeps(), False: refuses(13)}
        return answers[request.ext["b"] == TRACES](request)

    async with stage({"broker-a": say}, trace=True) as on:
        with pytest.raises(SendFailed):
            await on.producer.send(MESSAGE)
        await on.producer.send(Message(TRACES, b"by hand"))
        await on.producer.send_oneway(MESSAGE)
        assert await told(on) == []
        assert on.producer.traces_dropped == 0


async def test_a_topic_of_its_own_is_outside_of_namespaces() -> None:
    async with stage({"broker-a": keeps()}, trace=True, trace_topic="mine", namespace="ns") as on:
        await on.producer.send(MESSAGE)
        assert len(await told(on, "mine")) == 1


async def test_traces_that_no_broker_takes_are_counted_and_harm_nothing() -> None:
    def say(request: Command) -> Command | None:
        answers: dict[bool, Say] = {True: refuses(13), False: keeps()}
        return answers[request.ext["b"] == TRACES](request)

    async with stage({"broker-a": say}, trace=True) as on:
        for _ in range(3):
            assert (await on.producer.send(MESSAGE)).ok
        await on.producer.close()
        assert on.producer.traces_dropped == 3


async def test_the_route_of_the_trace_topic_is_kept_fresh() -> None:
    async with stage({"broker-a": keeps()}, trace=True, trace_topic="mine") as on:
        for _ in range(20):
            await on.producer.send(MESSAGE)
        topics = on.producer.session.roll.topics
        await until(lambda: "mine" in topics(), "the trace topic")
