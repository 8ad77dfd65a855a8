"""What an interrupt leaves behind: Ctrl-C, or a signal's handler that raises, at any step of a call.

Each test interrupts a call at every step it has, one after the other, and looks at what the client
keeps: connections, capacity, locks, wake-ups. The next call must work as if nothing had happened.
"""

import gc
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message, native
from pocketmq.blocking.conditions import SteadyCondition
from pocketmq.blocking.connection import READ, BlockingConnection
from pocketmq.blocking.connection_pool import ConnectionPool, connect
from pocketmq.blocking.loop_thread import CLEAN_UP, LoopThread
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.blocking.submitting import SubmitWindow
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.window import ByteBudget
from pocketmq.net import Limits, parse_address
from pocketmq.protocol import Command
from tests.blocking.interrupting import interrupts, was_interrupted
from tests.blocking.peers import peer, requests
from tests.own_time import own_time
from tests.server_process import wait_for

pytestmark = [
    # A connection that is lost between two steps is closed by its destructor; a coroutine that was
    # made and not handed over is dropped.
    pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning"),
    pytest.mark.timeout(300),
]
PATIENCE = 30.0
"""Seconds for each request, whose broker may be without a processor for a few of them."""


def nothing_is_taken(pool: ConnectionPool) -> bool:
    """Whether all connections that count are there for the next caller, with nothing to read."""
    gc.collect()
    idle = [each for some in pool._idle.values() for each in some]
    return len(pool) == len(idle) and all(each.is_quiet() for each in idle)


async def answer() -> int:
    return 42


def test_a_call_on_the_loop_ends_soon_whenever_it_is_interrupted() -> None:
    thread = LoopThread("interrupted")
    for step in interrupts(lambda: thread.call(answer())):
        began = own_time()
        assert thread.call(answer()) == 42, step
        assert own_time() - began < CLEAN_UP / 2
    thread.close()


SENDS: dict[str, Callable[[mq.Producer, str], object]] = {
    "plain": lambda p, topic: p.send(Message(topic, b"x")),
    "ordered": lambda p, topic: p.send(Message(topic, b"x"), ordering_key="k"),
    "batch": lambda p, topic: p.send_batch([Message(topic, b"x"), Message(topic, b"y")]),
    "one way": lambda p, topic: p.send_oneway(Message(topic, b"x")),
    "transaction": lambda p, topic: p.send_in_transaction(
        Message(topic, b"x"), lambda _, __: mq.TransactionState.COMMIT
    ),
    "submitted": lambda p, topic: p.submit(Message(topic, b"x")).result(30),
    "submitted with a tag": lambda p, topic: p.submit(Message(topic, b"x", "tag")).result(30),
    "submitted to a queue": lambda p, topic: p.submit(
        Message(topic, b"x"), ordering_key="k"
    ).result(30),
}


def is_as_new(producer: mq.Producer) -> bool:
    """Whether a producer that does nothing counts nothing as in flight."""
    parts: Any = producer._parts
    producer.flush()
    window = parts.submitting.window
    return (
        nothing_is_taken(parts.sending.exchange.connections)
        and not parts.sending._busy
        and not parts.transactions._in_flight
        # In pure Python a place in a batch is not taken in one step.
        and (native.core is None or (window.count, window.bytes) == (0, 0))
    )


@pytest.mark.parametrize("name", SENDS)
def test_a_producer_sends_on_whenever_a_send_is_interrupted(
    cluster: Cluster, topic: str, name: str
) -> None:
    send = SENDS[name]
    check: Any = lambda _: mq.TransactionState.COMMIT  # noqa: E731
    with mq.Producer(cluster.address, group="shop", check=check, send_timeout=PATIENCE) as producer:
        send(producer, topic)
        for step in interrupts(lambda: send(producer, topic)):
            began = own_time()
            send(producer, topic)
            assert own_time() - began < CLEAN_UP / 2, step
            assert is_as_new(producer), step


def test_a_producer_can_be_closed_whenever_a_send_is_interrupted(
    cluster: Cluster, topic: str
) -> None:
    def send() -> None:
        producer.send(Message(topic, b"x"))

    step = 1
    while step:
        producer = mq.Producer(cluster.address, group="shop", send_timeout=PATIENCE).start()
        send()
        step = step + 1 if was_interrupted(send, step) else 0
        closer = threading.Thread(target=producer.close)
        closer.start()
        closer.join(30)
        assert not closer.is_alive(), step


def test_capacity_is_there_whenever_a_thread_is_interrupted_that_waits_for_it() -> None:
    window = SubmitWindow(1, ByteBudget(1000, 3.0))
    entered: list[int] = []

    def enter() -> None:
        while not window.try_enter(1, entered.append, 0):
            window.wait(1, 30.0)

    window.on_full = lambda: window.leave(1)  # just before the thread waits
    for _ in interrupts(enter):
        while window.count:
            window.leave(1)
            entered.pop()
        enter()


def test_a_condition_is_free_whenever_a_thread_that_waits_for_it_is_interrupted() -> None:
    condition = SteadyCondition()

    def wait() -> None:
        with condition:
            condition.wait(0.001)

    with ThreadPoolExecutor(1) as other:
        for step in interrupts(wait):
            assert other.submit(condition.acquire, timeout=5).result(), step
            other.submit(condition.release).result()


@pytest.mark.parametrize("size", [10, 3 * READ], ids=["small", "large"])
def test_an_interrupted_wait_for_a_response_is_resumed_only_if_nothing_is_lost(size: int) -> None:
    def answer(caller: socket.socket) -> None:
        for asked in requests(caller):
            caller.sendall(asked.reply(0, body=bytes(size)).encode())

    def begin(connection: BlockingConnection) -> int:
        number = connection.next_opaque()
        connection.begin(Command.request(10, number).encode(), 10, 30.0)
        return number

    def finish(connection: BlockingConnection, number: int) -> Command | None:
        return connection.finish(number, 10, 30.0, lambda *_: None)

    resumed = 0
    with peer(answer) as address:
        step, was = 1, True
        while was:
            deadline = time.monotonic() + 30
            connection = connect(address, [parse_address(address)], Limits(), deadline)
            finish(connection, begin(connection))  # it remembers what was large
            number = begin(connection)
            was = was_interrupted(lambda c=connection, n=number: finish(c, n), step)  # type: ignore[misc]
            if was and connection.is_resumable:
                answered = finish(connection, number)
                assert answered is not None, step
                assert len(answered.body) == size, step
                resumed += 1
            connection.close()
            step += 1
    assert resumed


def test_a_pop_consumer_receives_on_whenever_it_is_interrupted(
    cluster: Cluster, topic: str
) -> None:
    def receive() -> int:
        messages = consumer.receive(timeout=20)
        for message in messages:
            consumer.ack(message)
        return len(messages)

    with (
        mq.Producer(cluster.address, group="shop", send_timeout=PATIENCE) as producer,
        mq.PopConsumer(
            cluster.address, group=topic, invisible=5, request_timeout=PATIENCE
        ) as consumer,
    ):
        consumer.subscribe(topic)
        for _ in range(2):  # the second one is the short way
            producer.send(Message(topic, b"x"))
            while not receive():
                pass
        connections = consumer._pops.connections  # type: ignore[union-attr]
        producer.send(Message(topic, b"x"))
        for step in interrupts(receive):
            producer.send(Message(topic, b"x"))
            while not receive():
                pass
            assert not connections._waiting, step
            wait_for(lambda: nothing_is_taken(connections._pool), "connections to be free")
            producer.send(Message(topic, b"x"))


def test_a_pull_consumer_polls_on_whenever_it_is_interrupted(cluster: Cluster, topic: str) -> None:
    def poll() -> int:
        messages = consumer.poll(timeout=20)
        consumer.commit()
        return len(messages)

    with (
        mq.Producer(cluster.address, group="shop", send_timeout=PATIENCE) as producer,
        mq.PullConsumer(cluster.address, group=topic, request_timeout=PATIENCE) as consumer,
    ):
        consumer.subscribe(topic)
        producer.send(Message(topic, b"x"))
        for step in interrupts(poll):
            producer.send(Message(topic, b"x"))
            began = own_time()
            while not poll():
                pass
            assert own_time() - began < CLEAN_UP / 2, step
            producer.send(Message(topic, b"x"))


def test_a_reader_asks_on_whenever_it_is_interrupted(cluster: Cluster, topic: str) -> None:
    options = ClientOptions(name_servers=cluster.address, request_timeout=PATIENCE)
    with RecordReader(options) as reader:
        (queue, *_) = reader.queues(topic)
        for step in interrupts(lambda: reader.bounds(queue)):
            assert nothing_is_taken(reader._questions._connections), step
            assert reader.bounds(queue) == Bounds(0, 0)
