"""Transactions in the caller's own thread: the function, its errors, interrupts, closes."""

import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message, TransactionState
from pocketmq.errors import ClientClosed, InvalidInput, QueueNotSelected
from tests.server_process import wait_for

COMMIT, ROLLBACK = TransactionState.COMMIT, TransactionState.ROLLBACK


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[mq.Producer]:
    with mq.Producer(
        cluster.address,
        group="payments",
        check=lambda _: TransactionState.UNKNOWN,
        send_timeout=30.0,
    ) as running:
        yield running


def consumed(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """The first bodies that consumers see."""
    bodies: list[bytes] = []
    with mq.PullConsumer(
        cluster.address,
        request_timeout=30.0,
        group="audit",
        consume_from=mq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ).subscribe(topic) as consumer:
        deadline = time.monotonic() + 30
        while len(bodies) < count and time.monotonic() < deadline:
            bodies += [message.body for message in consumer.poll(1.0)]
    return sorted(bodies)


def test_the_function_runs_in_the_callers_thread_and_decides(
    cluster: Cluster, topic: str, producer: mq.Producer
) -> None:
    threads: list[int] = []
    ids: list[str] = []

    def local(message: Message, name: str) -> TransactionState:
        threads.append(threading.get_ident())
        ids.append(name)
        return COMMIT if message.body == b"yes" else ROLLBACK

    yes = producer.send_in_transaction(Message(topic, b"yes"), local)
    no = producer.send_in_transaction(Message(topic, b"no"), local)
    also = producer.send_in_transaction(Message(topic, b"yes"), local)
    assert [yes.state, no.state, also.state] == [COMMIT, ROLLBACK, COMMIT]
    assert ids == [yes.message_id, no.message_id, also.message_id]
    assert set(threads) == {threading.get_ident()}
    assert consumed(cluster, topic, 2) == [b"yes", b"yes"]


def test_an_error_of_the_function_is_in_the_receipt(topic: str, producer: mq.Producer) -> None:
    def local(_: Message, __: str) -> TransactionState:
        raise ZeroDivisionError("no")

    failed = producer.send_in_transaction(Message(topic, b"x"), local)
    assert failed.state is TransactionState.UNKNOWN
    assert isinstance(failed.error, ZeroDivisionError)
    odd = producer.send_in_transaction(Message(topic, b"x"), lambda _, __: "yes")  # type: ignore[arg-type,return-value]
    assert odd.state is TransactionState.UNKNOWN
    assert isinstance(odd.error, InvalidInput)


def test_a_coroutine_function_runs_on_the_loop(topic: str, producer: mq.Producer) -> None:
    threads: list[int] = []

    async def local(_: Message, __: str) -> TransactionState:
        threads.append(threading.get_ident())
        return COMMIT

    assert producer.send_in_transaction(Message(topic, b"x"), local).state is COMMIT

    def returns_one(message: Message, name: str) -> Coroutine[Any, Any, TransactionState]:
        return local(message, name)

    wrapped = producer.send_in_transaction(Message(topic, b"x"), returns_one)
    assert wrapped.state is COMMIT
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_the_function_may_use_the_producer(topic: str, producer: mq.Producer) -> None:
    def local(_: Message, __: str) -> TransactionState:
        return COMMIT if producer.send(Message(topic, b"inner")).ok else ROLLBACK

    assert producer.send_in_transaction(Message(topic, b"outer"), local).state is COMMIT


def test_an_interrupt_of_the_function_reaches_the_caller_and_the_next_send_works(
    topic: str, producer: mq.Producer
) -> None:
    def local(_: Message, __: str) -> TransactionState:
        signal.raise_signal(signal.SIGINT)
        return COMMIT

    with pytest.raises(KeyboardInterrupt):
        producer.send_in_transaction(Message(topic, b"x"), local)
    receipt = producer.send_in_transaction(Message(topic, b"x"), lambda _, __: COMMIT)
    assert receipt.state is COMMIT


def test_a_close_lets_a_transaction_end(cluster: Cluster, topic: str) -> None:
    producer = mq.Producer(
        cluster.address, group="late", check=lambda _: TransactionState.UNKNOWN, send_timeout=30.0
    )
    begun, finish = threading.Event(), threading.Event()
    receipts: list[Any] = []

    def local(_: Message, __: str) -> TransactionState:
        begun.set()
        assert finish.wait(20)
        return COMMIT

    def work() -> None:
        receipts.append(producer.send_in_transaction(Message(topic, b"last"), local))

    with producer:
        worker = threading.Thread(target=work)
        worker.start()
        assert begun.wait(20)
        closer = threading.Thread(target=producer.close)
        closer.start()
        wait_for(lambda: producer._closing, "the close to start")
        with pytest.raises(ClientClosed):
            producer.send_in_transaction(Message(topic, b"later"), local)
        finish.set()
        worker.join(20)
        closer.join(20)
    assert [receipt.state for receipt in receipts] == [COMMIT]
    assert consumed(cluster, topic, 1) == [b"last"]


def test_a_close_does_not_wait_for_a_function_that_never_ends(cluster: Cluster, topic: str) -> None:
    begun, finish = threading.Event(), threading.Event()

    def local(_: Message, __: str) -> TransactionState:
        begun.set()
        finish.wait(60)
        return COMMIT

    with mq.Producer(cluster.address, group="stuck", send_timeout=4.0) as producer:
        worker = threading.Thread(
            target=lambda: producer.send_in_transaction(Message(topic, b"x"), local)
        )
        worker.start()
        assert begun.wait(20)
        began = time.monotonic()
        producer.close()
        assert time.monotonic() - began < 20
    finish.set()
    worker.join(20)


def test_nothing_runs_if_the_half_message_is_not_stored(topic: str, producer: mq.Producer) -> None:
    called: list[str] = []
    lost = mq.MessageQueue(topic, "no-such-broker", 0)
    with pytest.raises(QueueNotSelected):
        producer.send_in_transaction(
            Message(topic, b"x"), lambda _, name: called.append(name), queue=lost, timeout=1.0
        )
    with pytest.raises(InvalidInput):
        producer.send_in_transaction(Message(topic, b"x"), "no function")  # type: ignore[arg-type]
    assert not called
