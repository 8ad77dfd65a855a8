"""Receives and acks on the caller's own connection: interrupts, closes, restarts, hostile answers."""

import os
import signal
import threading

import pytest

from pocketmq import errors
from pocketmq.blocking.connection_pool import MOST
from pocketmq.model import property_names
from pocketmq.protocol import RequestCode as Code
from tests.blocking.shelved import Served, bodies, learn, pops, shelved
from tests.client.pop.shelves import Shelf, record
from tests.own_time import own_time
from tests.server_process import wait_for


def receive_and_interrupt(served: Served, shelf: Shelf) -> None:
    """Receive, and be interrupted once that pop is held: not by one of an earlier receive."""
    asked = len(pops(shelf))

    def interrupt() -> None:
        wait_for(lambda: len(pops(shelf)) > asked and shelf.held == 1, "the pop that is held", 60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        served.consumer.receive(timeout=60)
    finally:
        interrupter.join()


def test_messages_are_received_and_acknowledged_on_the_callers_connection() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        served.do(lambda: shelf.put(*(record(n) for n in range(5))))
        consumer = served.consumer
        got = consumer.receive(1)
        assert bodies(got) == [b"0"]
        consumer.ack(got)
        consumer.ack(consumer.receive(1)[0])
        consumer.ack(consumer.receive(3))
        consumer.ack([])
        assert shelf.acked == [0, 1, 2, 3, 4]
        assert len(shelf.asked_for(Code.ACK_MESSAGE)) == 2
        assert len(shelf.asked_for(Code.BATCH_ACK_MESSAGE)) == 1
        assert len(shelf.opened) == 2  # the loop's, which sends heartbeats, and the caller's


def test_an_interrupt_loses_no_message_and_no_connection() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        consumer = served.consumer

        for number in range(3):
            asked = len(pops(shelf))
            with pytest.raises(KeyboardInterrupt):
                receive_and_interrupt(served, shelf)
            assert shelf.held == 1
            served.do(lambda number=number: shelf.put(record(number)))  # type: ignore[misc]
            assert bodies(consumer.receive(timeout=10)) == [b"%d" % number]
            assert len(pops(shelf)) <= asked + 2
        pool = consumer._pops.connections._pool  # type: ignore[union-attr]
        wait_for(lambda: len(pool) <= 1, "connections to be closed or free")


def test_what_an_interrupted_receive_brings_goes_back_when_the_consumer_is_closed() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        with pytest.raises(KeyboardInterrupt):
            receive_and_interrupt(served, shelf)
        served.do(lambda: shelf.put(record(0)))
        kept = served.consumer._client.member.receiving.kept
        wait_for(lambda: len(kept) == 1, "the message to be kept")
    back = shelf.asked_for(Code.CHANGE_MESSAGE_INVISIBLETIME)
    assert [(each.ext["offset"], each.ext["invisibleTime"]) for each in back] == [("0", "1")]


def test_a_close_by_another_thread_ends_a_receive_that_waits() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        outcomes: list[BaseException] = []

        def receive() -> None:
            try:
                served.consumer.receive(timeout=60)
            except BaseException as error:  # noqa: BLE001 - looked at below
                outcomes.append(error)

        threads = [threading.Thread(target=receive) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_for(lambda: shelf.held == 3, "three pops that are held")
        began = own_time()
        served.consumer.close()
        for thread in threads:
            thread.join(30)
        assert [type(error) for error in outcomes] == [errors.ClientClosed] * 3
        assert own_time() - began < 5
        with pytest.raises(errors.ClientClosed):
            served.consumer.receive()


def test_more_callers_than_connections_wait_on_the_loop() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        got: list[bytes] = []

        def receive() -> None:
            messages = served.consumer.receive(1, timeout=30)
            got.extend(bodies(messages))
            served.consumer.ack(messages)

        threads = [threading.Thread(target=receive) for _ in range(MOST + 4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: shelf.held == MOST + 4, "pops that are held")
        served.do(lambda: shelf.put(*(record(n) for n in range(MOST + 4))))
        for thread in threads:
            thread.join(30)
        assert sorted(got, key=int) == [b"%d" % n for n in range(MOST + 4)]
        assert sorted(shelf.acked) == list(range(MOST + 4))


def test_a_broker_that_was_restarted_is_asked_on_a_new_connection() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        consumer = served.consumer
        learn(served)

        def cut() -> None:
            for connection in shelf.opened:
                connection.close()
            shelf.put(record(shelf._next))

        for _ in range(3):
            served.do(cut)
            messages = consumer.receive(1, timeout=10)
            served.do(cut)
            consumer.ack(messages)
            messages = consumer.receive(1, timeout=10)
            consumer.ack(messages)
        assert shelf.acked == list(range(6))


def test_a_refused_acknowledgement_is_an_error_and_is_sent_once() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        served.do(lambda: shelf.put(record(0), record(1), record(2)))
        messages = served.consumer.receive(3)
        shelf.refuses |= {int(Code.ACK_MESSAGE), int(Code.BATCH_ACK_MESSAGE)}
        shelf.refusal = 1
        for some in (messages[0], messages[:1], messages):
            with pytest.raises(errors.ServerError):
                served.consumer.ack(some)
        assert len(shelf.asked_for(Code.ACK_MESSAGE)) == 2
        assert len(shelf.asked_for(Code.BATCH_ACK_MESSAGE)) == 1


def test_messages_of_other_tags_are_acknowledged_in_the_background() -> None:
    """Brokers choose by hash codes, and `Aa` and `BB` have the same."""
    shelf = Shelf()
    with shelved(shelf, expression="Aa") as served:
        learn(served)
        tagged = [
            record(n, properties={property_names.TAGS: t}) for n, t in enumerate(("Aa", "BB"))
        ]
        served.do(lambda: shelf.put(*tagged))
        assert [message.tag for message in served.consumer.receive()] == ["Aa"]
        wait_for(lambda: shelf.acked == [1], "the other one to be acknowledged")


def test_several_brokers_are_asked_in_turn() -> None:
    a, b = Shelf(), Shelf()
    with shelved(a, b) as served:
        served.do(lambda: a.put(*(record(n, b"a") for n in range(4))))
        served.do(lambda: b.put(*(record(n, b"b") for n in range(4))))
        got = [bodies(served.consumer.receive(1, timeout=5)) for _ in range(8)]
        assert sorted(got) == [[b"a"]] * 4 + [[b"b"]] * 4
        assert served.consumer.receive(1, timeout=0.0) == []


def test_a_mistake_in_the_arguments_is_named() -> None:
    with shelved(Shelf()) as served:
        learn(served)
        for wrong in ({"max_messages": 33}, {"invisible": 0.0}, {"timeout": -1.0}, {"topic": "x"}):
            with pytest.raises(errors.InvalidInput):
                served.consumer.receive(**wrong)
        with pytest.raises(errors.InvalidInput, match="subscribed"):
            served.consumer.receive(topic=["orders"])  # type: ignore[arg-type]


def test_a_changed_subscription_counts_from_the_next_receive_on() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        served.consumer.receive(timeout=0.0)
        served.consumer.subscribe("orders", "paid")
        served.consumer.receive(timeout=0.0)
        served.consumer.unsubscribe("orders")
        with pytest.raises(errors.InvalidInput, match="call subscribe"):
            served.consumer.receive(timeout=0.0)
        assert [each.ext["exp"] for each in pops(shelf)][-2:] == ["*", "paid"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_use_its_parents_connections() -> None:
    shelf = Shelf()
    with shelved(shelf) as served:
        learn(served)
        asked = len(pops(shelf))
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            code = 1
            try:
                served.consumer.receive(timeout=0.0)
            except errors.ClientForked:
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert len(pops(shelf)) == asked
