"""The blocking consumers on a real cluster."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import pocketmq as mq
from pocketmq import Cluster, ConsumeFromWhere, Message, ReceivedMessage
from pocketmq.errors import ClientClosed, InvalidInput, WouldBlockLoop
from tests.client.group.groups import BRISK

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        threading.Event().wait(0.005)


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[mq.Producer]:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as running:
        yield running


def test_handlers_get_every_message_and_may_send_and_steer(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    handled: list[bytes] = []
    answers: list[bool] = []
    queues: list[int] = []

    def handle(message: ReceivedMessage) -> None:
        handled.append(message.body)
        answers.append(producer.send(Message(f"{topic}-answers", message.body)).ok)
        answers.append(bool(consumer.assignment()))
        consumer.pause(f"{topic}-never")

    consumer = mq.PushConsumer(cluster.address, group="billing", consume_from=FIRST)
    cluster.create_topic(f"{topic}-answers")
    consumer.subscribe(topic, handler=handle)

    @consumer.on_assigned
    def assigned(taken: object) -> None:
        queues.append(len(consumer.assignment()[topic]))

    for number in range(20):
        producer.send(Message(topic, b"%02d" % number))
    with consumer:
        until(lambda: len(handled) == 20, "all messages")
        until(lambda: len(answers) == 40, "all answers")
        until(lambda: queues, "the callback")
        assert sum(map(len, consumer.assignment().values())) == 8
        assert consumer.history
        consumer.commit()
    assert sorted(handled) == [b"%02d" % number for number in range(20)]
    assert set(answers) == {True}
    assert consumer.history
    with pytest.raises(ClientClosed):
        consumer.assignment()


def test_a_coroutine_that_blocks_the_loop_with_a_call_is_told(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    told: list[str] = []
    steered: list[bool] = []

    async def handle(message: ReceivedMessage) -> None:
        try:
            producer.send(Message(topic, b"never"))
        except WouldBlockLoop as error:
            told.append(str(error))
        steered.append(bool(consumer.assignment()))  # this one does not wait

    consumer = mq.PushConsumer(cluster.address, group="billing", consume_from=FIRST, profile=BRISK)
    consumer.subscribe(topic, handler=handle)
    producer.send(Message(topic, b"x"))
    with consumer:
        until(lambda: steered, "the message")
    assert len(told) == 1
    assert steered == [True]


def test_close_from_another_thread_ends_run(cluster: Cluster, topic: str) -> None:
    consumer = mq.PushConsumer(cluster.address, group="billing")
    consumer.subscribe(topic, handler=print)
    running = threading.Thread(target=consumer.run)
    running.start()
    until(lambda: consumer.running, "the start")
    consumer.close()
    running.join(30)
    assert not running.is_alive()
    assert not consumer.running


def test_a_handler_that_raises_gets_the_message_again(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    tries: list[int] = []

    def handle(message: ReceivedMessage) -> mq.Consumed:
        tries.append(message.reconsume_times)
        if message.reconsume_times == 0:
            raise mq.RetryLater(delay_level=1)
        return mq.Consumed.OK

    consumer = mq.PushConsumer(
        cluster.address, group=f"g-{topic}", consume_from=FIRST, profile=BRISK
    )
    consumer.subscribe(topic, handler=handle)
    producer.send(Message(topic, b"x"))
    with consumer:
        until(lambda: len(tries) == 2, "the second try")
    assert tries == [0, 1]


def test_poll_gives_messages_and_commit_stores_how_far(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    receipt = producer.send(Message(topic, b"one"))
    queue = receipt.queue
    producer.send(Message(topic, b"two"), queue=queue)
    with mq.PullConsumer(
        cluster.address, request_timeout=30.0, group="audit", auto_commit=False
    ) as consumer:
        consumer.assign([queue])
        consumer.seek_to_begin(queue)
        bodies: list[bytes] = []
        while len(bodies) < 2:
            bodies += [message.body for message in consumer.poll(10)]
        assert bodies == [b"one", b"two"]
        assert consumer.poll(0) == []
        assert consumer.committed(queue) != 2
        consumer.commit()
        assert consumer.committed(queue) == 2
        assert consumer.assignment() == {topic: (queue,)}
        with pytest.raises(InvalidInput):
            consumer.seek(queue, 99)
    with pytest.raises(ClientClosed):
        consumer.poll()


def test_iterating_starts_the_consumer_and_ends_when_it_is_closed(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    for number in range(5):
        producer.send(Message(topic, b"%d" % number))
    consumer = mq.PullConsumer(
        cluster.address, request_timeout=30.0, group=f"i-{topic}", consume_from=FIRST, profile=BRISK
    )
    seen = []
    for message in consumer.subscribe(topic):
        seen.append(message.body)
        if len(seen) == 5:
            consumer.close()
    assert sorted(seen) == [b"%d" % number for number in range(5)]
    assert list(consumer) == []


def test_iteration_that_is_left_counts_only_what_it_gave(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    for number in range(6):
        producer.send(Message(topic, b"%d" % number))
    seen: list[bytes] = []
    for stop in (2, 6):
        with mq.PullConsumer(
            cluster.address,
            request_timeout=30.0,
            group=f"c-{topic}",
            consume_from=FIRST,
            profile=BRISK,
        ) as consumer:
            consumer.subscribe(topic)
            while len(seen) < stop:
                seen.append(next(consumer).body)
    assert sorted(seen) == [b"%d" % number for number in range(6)]


def test_an_error_in_the_block_lets_what_was_polled_come_again(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    producer.send(Message(topic, b"x"))
    group = f"e-{topic}"

    def fail() -> None:
        with mq.PullConsumer(
            cluster.address, request_timeout=30.0, group=group, consume_from=FIRST, profile=BRISK
        ) as consumer:
            consumer.subscribe(topic)
            assert next(consumer).body == b"x"
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    with mq.PullConsumer(
        cluster.address, request_timeout=30.0, group=group, consume_from=FIRST, profile=BRISK
    ) as again:
        again.subscribe(topic)
        assert next(again).body == b"x"


def test_close_ends_a_poll_that_waits(cluster: Cluster, topic: str) -> None:
    consumer = mq.PullConsumer(cluster.address, request_timeout=30.0, group="audit").subscribe(
        topic
    )
    consumer.start()
    polled: list[list[ReceivedMessage]] = []

    def poll() -> None:
        with suppress(ClientClosed):  # if the close comes first
            polled.append(consumer.poll(60))

    waiting = threading.Thread(target=poll)
    waiting.start()
    consumer.close()
    waiting.join(30)
    assert not waiting.is_alive()
    assert polled in ([[]], [])
