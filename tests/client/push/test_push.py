"""What an application sees: filters, names, batches, settings, its own messages again."""

import asyncio

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.client.filters import by_sql, by_tags
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.client.push.handlers import RetryLater
from pocketmq.errors import ClientClosed, FilterSyntaxError, InvalidInput, NameInvalid
from pocketmq.model import Message, MessageQueue
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol import ReceivedMessage
from tests.client.group import groups
from tests.loops import until

AVG = Average()


async def test_only_messages_with_the_tags_come() -> None:
    async with groups.cluster() as running:
        async with Producer(running.address, group="senders") as producer:
            for tag in ("paid", "open", "refunded", None):
                await producer.send(Message("orders", str(tag).encode(), tag=tag))
        async with groups.member(running.address, expression="paid || refunded") as one:
            await until(lambda: len(one.got) == 2, "two of four")
            await groups.send(running.address, 1, tag="paid")
            await until(lambda: len(one.got) == 3, "another one")
            assert sorted(one.bodies) == [b"0", b"paid", b"refunded"]


async def test_a_tag_with_the_same_hash_code_is_taken_out_by_the_client() -> None:
    assert java_hash("Aa") == java_hash("BB")
    async with groups.cluster(1, 1) as running:
        async with Producer(running.address, group="senders") as producer:
            for tag in ("Aa", "BB", "Aa"):
                await producer.send(Message("orders", tag.encode(), tag=tag))
        async with groups.member(running.address, expression=by_tags("BB")) as one:
            await until(lambda: one.bodies == [b"BB"], "one of three")
            joined = one.consumer._life.member
            assert joined is not None
            queue = groups.queues_of(1, 1)[0]
            # The last one is passed with the next answer, which the broker holds back for a while.
            await until(lambda: joined.noted_offset(queue) == 2, "the offset to pass two of them")


async def test_sql_selects_by_properties() -> None:
    async with groups.cluster(config={"enablePropertyFilter": True}) as running:
        async with Producer(running.address, group="senders") as producer:
            for price in (5, 15, 25):
                message = Message("orders", str(price).encode(), properties={"price": str(price)})
                await producer.send(message)
        async with groups.member(running.address, expression=by_sql("price > 10")) as one:
            await until(lambda: len(one.got) == 2, "two of three")
            assert sorted(one.bodies) == [b"15", b"25"]


async def test_a_new_expression_holds_from_then_on() -> None:
    async with (
        groups.cluster(1, 1) as running,
        groups.member(running.address, expression="a") as one,
    ):
        await groups.shared([one], groups.queues_of(1, 1), AVG)
        await groups.send(running.address, 1, tag="a")
        await until(lambda: len(one.got) == 1, "a message with the first tag")
        one.consumer.subscribe("orders", "b")
        joined = one.consumer._life.member
        assert joined is not None
        await joined.announce()
        await groups.send(running.address, 1, tag="a")
        await groups.send(running.address, 1, tag="b")
        await until(lambda: len(one.got) == 2, "a message with the second tag")
        assert [message.tag for message in one.got] == ["a", "b"]


async def test_namespaces_are_not_seen_by_handlers() -> None:
    async with (
        groups.cluster(1, 2, "shop%orders") as running,
        Producer(running.address, group="senders", namespace="shop") as producer,
        groups.member(running.address, namespace="shop") as one,
    ):
        await producer.send(Message("orders", b"inside"))
        await until(lambda: one.bodies == [b"inside"], "the message")
        assert [message.topic for message in one.got] == ["orders"]
        assert one.queues() == tuple(groups.queues_of(1, 2))
        await one.consumer.seek(MessageQueue("orders", "broker-0", one.got[0].queue_id), 0)
        await until(lambda: len(one.got) == 2, "the message again")
        assert one.consumer.history[-1].group == "shop%billing"


async def test_a_message_that_failed_comes_back_under_its_own_topic() -> None:
    async with groups.cluster(1, 2) as running:
        tries: list[ReceivedMessage] = []

        async def handle(message: ReceivedMessage) -> None:
            tries.append(message)
            if len(tries) == 1:
                raise RetryLater(delay_level=1)

        async with PushConsumer(
            running.address, group="billing", profile=groups.BRISK, consume_from=groups.FIRST
        ) as consumer:
            consumer.subscribe("orders", "paid", handle)
            await groups.send(running.address, 1, tag="paid")
            await until(lambda: len(tries) == 2, "a second try", 20)
        first, second = tries
        assert (first.topic, second.topic) == ("orders", "orders")
        assert (first.body, first.tag) == (second.body, second.tag)
        assert (first.reconsume_times, second.reconsume_times) == (0, 1)
        assert second.topic_bytes == b"%RETRY%billing"


async def test_batches_go_to_handlers_that_want_them() -> None:
    async with groups.cluster(1, 1) as running:
        await groups.send(running.address, 25)
        batches: list[list[ReceivedMessage]] = []

        async def handle(messages: list[ReceivedMessage]) -> None:
            batches.append(messages)

        one = groups.Member(running.address, "a", handler_batch=10)
        one.consumer.subscribe("orders", "*", handle)
        async with one.consumer:
            await until(lambda: sum(map(len, batches)) == 25, "everything")
            assert max(map(len, batches)) <= 10
            assert len(batches) < 25


def test_what_can_never_work_is_refused_before_the_start() -> None:
    with pytest.raises(InvalidInput, match="unknown setting 'pull_bach'; did you mean 'pull_bat"):
        PushConsumer("127.0.0.1:9876", group="billing", pull_bach=3)  # type: ignore[call-arg]
    with pytest.raises(NameInvalid):
        PushConsumer("127.0.0.1:9876", group="not a group")
    consumer = PushConsumer("127.0.0.1:9876", group="billing")
    with pytest.raises(InvalidInput, match="needs a handler"):
        consumer.subscribe("orders")
    with pytest.raises(NameInvalid):
        consumer.subscribe("not a topic", "*", print)
    with pytest.raises(FilterSyntaxError):
        consumer.subscribe("orders", by_sql("price >"), print)
    assert (consumer.history, consumer.warnings, consumer.running) == ((), (), False)
    with pytest.raises(ClientClosed):
        _ = consumer.session


async def test_a_closed_consumer_cannot_start_again() -> None:
    async with groups.cluster() as running, groups.member(running.address) as one:
        assert await one.consumer.start() is one.consumer
        await one.consumer.close()
        with pytest.raises(ClientClosed):
            await one.consumer.start()


async def test_handlers_at_work_may_finish_when_the_consumer_is_closed() -> None:
    async with groups.cluster(1, 1) as running:
        began, gate, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            began.set()
            await gate.wait()
            done.set()

        one = groups.Member(running.address, "a", stop_wait=10.0)
        one.consumer.subscribe("orders", "*", handle)
        await one.consumer.start()
        await groups.send(running.address, 1)
        await began.wait()
        closing = asyncio.create_task(one.consumer.close())
        await until(lambda: not one.consumer.running, "the end to begin")
        gate.set()
        await closing
        assert done.is_set()
        async with groups.member(running.address, "b") as other:
            await groups.shared([other], groups.queues_of(1, 1), AVG)
            await groups.send(running.address, 1)
            await until(lambda: len(other.got) == 1, "the next message alone")
            assert other.got[0].queue_offset == 1


@pytest.mark.parametrize(("count", "first"), [(1, "handler"), (8, "handler"), (9, "pull")])
async def test_handlers_of_few_messages_start_before_the_next_pull_is_sent(
    count: int, first: str
) -> None:
    (queue,) = groups.queues_of(1, 1)
    loop, pulls, begun = asyncio.get_running_loop(), [], asyncio.Event()
    async with (
        groups.cluster(1, 1) as running,
        Producer(running.address, group="senders") as producer,
    ):
        consumer = PushConsumer(running.address, group="billing", consume_from=groups.FIRST)

        async def handle(_: ReceivedMessage) -> None:
            pulls.append(last_pull())
            begun.set()

        def last_pull() -> float:
            joined = consumer._life.member
            found = None if joined is None else joined.held().get(queue)
            return found.process.last_pull if found and found.template else loop.time()

        consumer.subscribe("orders", "*", handle)
        async with consumer:
            await until(lambda: last_pull() + 0.01 < loop.time(), "a pull that waits")
            before = last_pull()
            await producer.send_batch([Message("orders", b"x")] * count)
            await asyncio.wait_for(begun.wait(), 20)
            assert ("handler" if pulls[0] == before else "pull") == first
