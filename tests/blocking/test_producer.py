"""The blocking producer on a real cluster: every way to send, many threads, and what goes wrong."""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, as_completed, wait
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message, MessageQueue, SendReceipt
from pocketmq.blocking import process_loop
from pocketmq.blocking.connection_pool import MOST
from pocketmq.errors import (
    ClientClosed,
    InvalidInput,
    MQError,
    NameServersUnreachable,
    QueueNotSelected,
    SendFailed,
    WouldBlockLoop,
)
from tests.loops import open_files
from tests.own_time import own_time
from tests.ports import free_port
from tests.server_process import wait_for


def stored(cluster: Cluster, topic: str) -> list[bytes]:
    """All bodies of a topic, sorted."""
    bodies: list[bytes] = []
    with mq.PullConsumer(
        cluster.address, request_timeout=30.0, group="reader", auto_commit=False
    ) as consumer:
        queues = consumer.queues(topic)
        consumer.assign(queues)
        ends = sum(_end(consumer, queue) for queue in queues)
        for queue in queues:
            consumer.seek_to_begin(queue)
        while len(bodies) < ends:
            bodies += [message.body for message in consumer.poll(10)]
    return sorted(bodies)


def _end(consumer: mq.PullConsumer, queue: MessageQueue) -> int:
    return consumer.offset_for_time(queue, time.time() + 60)


def test_a_message_is_stored_and_its_receipt_says_where(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        receipt = producer.send(Message(topic, b"42 EUR", tag="paid", keys=["A17"]))
    assert receipt.ok
    assert receipt.queue.topic == topic
    assert receipt.queue_offset == 0
    with mq.PullConsumer(cluster.address, request_timeout=30.0, group="audit") as consumer:
        consumer.assign([receipt.queue])
        consumer.seek_to_begin(receipt.queue)
        (message,) = consumer.poll(10)
    assert (message.body, message.tag, message.keys) == (b"42 EUR", "paid", ["A17"])
    assert message.message_id == receipt.message_id


def test_queues_take_turns_over_all_brokers(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        queues = [producer.send(Message(topic, b"x")).queue for _ in range(8)]
        assert sorted(map(str, queues)) == sorted(map(str, producer.queues(topic)))


def test_a_queue_a_key_or_a_function_chooses(cluster: Cluster, topic: str) -> None:
    seen: list[Sequence[MessageQueue]] = []

    def last(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        seen.append(queues)
        assert threading.current_thread() is threading.main_thread()
        return queues[-1]

    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        queues = producer.queues(topic)
        message = Message(topic, b"x")
        assert producer.send(message, queue=queues[3]).queue == queues[3]
        keyed = {producer.send(message, ordering_key="customer-7").queue for _ in range(5)}
        assert len(keyed) == 1
        assert producer.submit(message, ordering_key="customer-7").result(10).queue in keyed
        assert producer.send(message, selector=last).queue == queues[-1]
        assert [list(each) for each in seen] == [queues]
        with pytest.raises(InvalidInput, match="one of queue"):
            producer.send(message, queue=queues[0], ordering_key="k")
        with pytest.raises(QueueNotSelected):
            producer.send(message, queue=MessageQueue(topic, "nobody", 0))


def test_a_batch_and_one_way_messages_arrive(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        batch = [Message(topic, b"batch %d" % n) for n in range(5)]
        receipt = producer.send_batch(batch)
        assert receipt.message_id.count(",") in {0, 4}
        parts = producer.send_batch([Message(topic, b"y" * 3_000_000)] * 2, split=True)
        assert [part.ok for part in parts] == [True, True]
        producer.send_oneway(Message(topic, b"one way"))
        deadline = time.monotonic() + 10
        while b"one way" not in stored(cluster, topic):
            assert time.monotonic() < deadline


def test_what_was_submitted_comes_back_in_futures(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", window=8, send_timeout=30.0) as producer:
        futures = [producer.submit(Message(topic, b"%03d" % n)) for n in range(200)]
        assert all(isinstance(future, Future) for future in futures)
        done, not_done = wait(futures, timeout=30)
        assert (len(done), len(not_done)) == (200, 0)
        assert {future.result().ok for future in as_completed(futures)} == {True}
    assert stored(cluster, topic) == [b"%03d" % n for n in range(200)]


def test_callbacks_of_futures_may_block(cluster: Cluster, topic: str) -> None:
    outcomes: list[Any] = []
    called = threading.Event()

    def answer(future: Future[SendReceipt]) -> None:
        try:
            outcomes.append(producer.send(Message(topic, b"from a callback")).ok)
        finally:
            called.set()

    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.submit(Message(topic, b"x")).add_done_callback(answer)
        assert called.wait(30)
        assert outcomes == [True]
        done = producer.submit(Message(topic, b"y"))
        done.result(30)
        done.add_done_callback(lambda future: outcomes.append(future.result().ok))
        assert outcomes == [True, True]


def test_a_future_that_was_cancelled_stays_so_and_the_message_goes(
    cluster: Cluster, topic: str
) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        future = producer.submit(Message(topic, b"promised"))
        cancelled = future.cancel()
        producer.submit(Message(topic, b"second")).result(30)
    assert future.cancelled() is cancelled
    assert stored(cluster, topic) == [b"promised", b"second"]


def test_closing_sends_what_was_promised(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        futures = [producer.submit(Message(topic, b"%03d" % n)) for n in range(300)]
    assert {future.done() for future in futures} == {True}
    assert len(stored(cluster, topic)) == 300


def test_closing_waits_for_all_requests_of_a_batch_that_another_thread_sends(
    cluster: Cluster, topic: str
) -> None:
    messages = [Message(topic, b"%d" % number + b"." * 3000) for number in range(300)]
    receipts: list[SendReceipt] = []
    producer = mq.Producer(
        cluster.address, group="shop", max_message_size=4096, send_timeout=30.0
    ).start()
    begun = threading.Event()

    class Watch:
        def before_send(self, context: mq.SendContext) -> None:
            pass

        def after_send(self, context: mq.SendContext) -> None:
            begun.set()

    producer.add_send_hook(Watch())

    def send() -> None:
        receipts.extend(producer.send_batch(messages, split=True))

    sender = threading.Thread(target=send)
    sender.start()
    assert begun.wait(30)
    producer.close()
    sender.join(30)
    assert len(receipts) == 300
    assert len(stored(cluster, topic)) == 300


def test_many_threads_share_one_producer(cluster: Cluster, topic: str) -> None:
    """More than there are connections; every message is stored once."""
    threads, each = MOST + 8, 20
    errors: list[Exception] = []
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:

        def work(number: int) -> None:
            try:
                for n in range(each):
                    body = b"%03d %03d" % (number, n)
                    if n % 3:
                        producer.send(Message(topic, body))
                    else:
                        producer.submit(Message(topic, body)).result(30)
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
    assert errors == []
    assert stored(cluster, topic) == [
        b"%03d %03d" % (number, n) for number in range(threads) for n in range(each)
    ]


def test_what_can_never_work_is_told_at_once(cluster: Cluster, topic: str) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'retries'"):
        mq.Producer(cluster.address, group="shop", retires=3)  # type: ignore[call-arg]
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        with pytest.raises(InvalidInput, match="empty"):
            producer.send(Message(topic, b""))
        with pytest.raises(InvalidInput, match="timeout"):
            producer.send(Message(topic, b"x"), timeout=-1.0)
        with pytest.raises(InvalidInput, match="timeout"):
            producer.submit(Message(topic, b"x"), timeout=0.0)
        with pytest.raises(InvalidInput):
            producer.submit(Message(topic, b"x"), delay=1.0, delay_level=3)


def test_a_producer_is_used_between_start_and_close_alone(cluster: Cluster, topic: str) -> None:
    producer = mq.Producer(cluster.address, group="shop", send_timeout=30.0)
    message = Message(topic, b"x")
    calls = [
        lambda: producer.send(message),
        lambda: producer.submit(message),
        lambda: producer.send_oneway(message),
        lambda: producer.send_batch([message]),
        lambda: producer.queues(topic),
        producer.room,
    ]
    producer.close()
    for call in calls:
        with pytest.raises(ClientClosed):
            call()
    assert producer.start().start() is producer
    assert producer.send(message).ok
    producer.close()
    producer.close()
    for call in calls:
        with pytest.raises(ClientClosed):
            call()
    with pytest.raises(ClientClosed):
        producer.start()


def test_nothing_is_left_open(cluster: Cluster, topic: str) -> None:
    with mq.Producer(
        cluster.address, group="warm", send_timeout=30.0
    ) as producer:  # the loop's own files stay
        producer.send(Message(topic, b"x"))
    files = open_files()
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.send(Message(topic, b"x"))
        producer.submit(Message(topic, b"x")).result(30)
        assert open_files() > files
    deadline = time.monotonic() + 10
    while open_files() > files:
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)


def test_a_start_without_a_name_server_fails_and_leaves_nothing() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    producer = mq.Producer(nobody, group="shop")
    with pytest.raises(NameServersUnreachable, match=nobody):
        producer.start()
    with pytest.raises(ClientClosed):
        producer.send(Message("t", b"x"))
    producer.close()
    with mq.Producer(nobody, group="shop", start_wait=None) as patient:
        with pytest.raises(NameServersUnreachable):
            patient.send(Message("t", b"x"), timeout=30.0)
        future = patient.submit(Message("t", b"x"), timeout=30.0)
        with pytest.raises(NameServersUnreachable):
            future.result(60)


def test_a_blocking_call_in_a_coroutine_of_the_loop_is_refused(
    cluster: Cluster, topic: str
) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        message = Message(topic, b"x")

        async def misused() -> list[str]:
            told = []
            for call in (producer.send, producer.submit, producer.send_oneway):
                try:
                    call(message)
                except WouldBlockLoop as error:
                    told.append(str(error))
            return told

        told = process_loop.loop_thread().call(misused())
        assert len(told) == 3
        assert "pocketmq.aio" in told[0]


def test_an_interrupted_send_leaves_the_producer_whole(cluster: Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.send(Message(topic, b"before"))

        def interrupt(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
            signal.raise_signal(signal.SIGINT)
            time.monotonic()
            return queues[0]

        with pytest.raises(KeyboardInterrupt):
            producer.send(Message(topic, b"interrupted"), selector=interrupt)
        assert producer.send(Message(topic, b"after")).ok
        assert producer.submit(Message(topic, b"and after")).result(30).ok


def test_hooks_see_every_try_of_a_blocking_send(cluster: Cluster, topic: str) -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[tuple[str, str]] = []

        def before_send(self, context: mq.SendContext) -> None:
            self.seen.append(("before", context.queue.topic))

        def after_send(self, context: mq.SendContext) -> None:
            assert context.receipt is not None
            self.seen.append(("after", context.receipt.queue.topic))

    watch = Watch()
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        producer.send(Message(topic, b"unseen"))
        producer.add_send_hook(watch)
        producer.send(Message(topic, b"seen"))
    assert watch.seen == [("before", topic), ("after", topic)]


@pytest.mark.parametrize("profile", [mq.V4, mq.V5], ids=["4.x", "5.x"])
@pytest.mark.parametrize("avoid", [False, True], ids=["plain", "avoiding"])
def test_a_send_goes_on_to_another_broker_when_one_is_gone(avoid: bool, profile: Any) -> None:
    with Cluster(brokers=2) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with mq.Producer(
            cluster.address,
            group="shop",
            avoid_slow_brokers=avoid,
            profile=profile,
            send_timeout=30.0,
        ) as producer:
            for _ in range(8):
                producer.send(Message(topic, b"x"))
            cluster.kill("broker-1")
            receipts = [producer.send(Message(topic, b"x")) for _ in range(12)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-0"}
            submitted = [producer.submit(Message(topic, b"x")).result(30) for _ in range(6)]
            assert {receipt.queue.broker_name for receipt in submitted} == {"broker-0"}
            cluster.kill("broker-0")
            with pytest.raises(SendFailed) as caught:
                producer.send(Message(topic, b"x"))
            assert caught.value.topic == topic
            assert caught.value.attempts == 3


def test_a_silent_broker_costs_the_time_allowed_and_no_more() -> None:
    with Cluster(brokers=1, faults=True) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
            producer.send(Message(topic, b"x"))
            cluster.partition("broker-0")
            started, own = time.monotonic(), own_time()
            with pytest.raises(SendFailed) as caught:
                producer.send(Message(topic, b"x"), timeout=0.3)
            assert time.monotonic() - started > 0.25
            assert own_time() - own < 5
            assert caught.value.outcome_unknown
            cluster.heal("broker-0")
            assert producer.send(Message(topic, b"x"), timeout=10).ok


def test_a_kept_future_keeps_its_receipt_and_not_its_message(cluster: Cluster, topic: str) -> None:
    body = os.urandom(100_000)
    alone = sys.getrefcount(body)
    with mq.Producer(
        cluster.address, group="kept", compress_from=2**31 - 1, send_timeout=30.0
    ) as producer:
        futures = [producer.submit(Message(topic, body)) for _ in range(20)]
        wait(futures, 30)
        wait_for(lambda: sys.getrefcount(body) == alone, "nothing holds the body any more")
        assert all(future.result().ok for future in futures)


def test_a_kept_future_that_failed_does_not_keep_its_message_either(
    cluster: Cluster, topic: str
) -> None:
    body = os.urandom(100_000)
    alone = sys.getrefcount(body)
    with mq.Producer(cluster.address, group="kept", retries=0, send_timeout=30.0) as producer:
        producer.send(Message(topic, b"x"))
        missing = MessageQueue(topic, "broker-0", 4711)
        future = producer.submit(Message(topic, body), queue=missing)
        assert isinstance(future.exception(30), MQError)
        wait_for(lambda: sys.getrefcount(body) == alone, "nothing holds the body any more")
