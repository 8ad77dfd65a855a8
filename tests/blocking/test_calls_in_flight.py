"""Threads that wait for calls of others: each that ends wakes one, and none sleeps for nothing."""

import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.connection import BlockingConnection
from pocketmq.blocking.connection_pool import MOST
from pocketmq.blocking.questions import Questions
from pocketmq.client.options import ClientOptions
from pocketmq.errors import ClientClosed, ConnectFailed
from tests.blocking.peers import peer
from tests.ports import free_port
from tests.server_process import wait_for

pytestmark = pytest.mark.usefixtures("no_check_hides_a_lost_wake_up")

LATE = 10


@pytest.fixture
def questions() -> Iterator[Questions]:
    asked = Questions(ClientOptions(name_servers="127.0.0.1:1"), "reader", 1.0)
    yield asked
    asked.close()


def silence(caller: socket.socket) -> None:
    """Answer nothing until the caller leaves."""
    caller.recv(1)


def sleepers(questions: Questions, address: str) -> int:
    return len(questions._in_flight.get(address, CallsInFlight()).sleepers)


def take(questions: Questions, address: str) -> BlockingConnection:
    return questions._take(address, 30.0)


def close_all(connections: Iterable[BlockingConnection]) -> None:
    for connection in connections:
        connection.close()


def late_takers(
    threads: ThreadPoolExecutor, questions: Questions, address: str
) -> list[Future[BlockingConnection]]:
    late = [threads.submit(take, questions, address) for _ in range(LATE)]
    wait_for(lambda: sleepers(questions, address) == LATE, "threads to wait for a connection")
    return late


def test_connections_that_come_back_together_go_to_as_many_threads(questions: Questions) -> None:
    with peer(silence) as address, ThreadPoolExecutor(LATE) as threads:
        taken = [take(questions, address) for _ in range(MOST)]
        late = late_takers(threads, questions, address)
        for connection in taken[:LATE]:
            questions._give(connection)
        assert {each.result(30) for each in late} == set(taken[:LATE])
        assert sleepers(questions, address) == 0
        close_all(taken)


def test_a_connection_that_comes_back_is_not_offered_to_threads_of_another_server(
    questions: Questions,
) -> None:
    with (
        peer(silence) as one,
        peer(silence) as other,
        ThreadPoolExecutor() as threads,
    ):
        taken = [take(questions, address) for address in (one, other) for _ in range(MOST)]
        first = threads.submit(take, questions, one)
        wait_for(lambda: sleepers(questions, one) == 1, "a thread to wait for the first server")
        second = threads.submit(take, questions, other)
        wait_for(lambda: sleepers(questions, other) == 1, "a thread to wait for the second server")
        questions._give(taken[-1])
        assert second.result(30) is taken[-1]
        assert not first.done()
        questions._drop(taken[0])
        close_all([*taken, first.result(30)])


def test_a_thread_that_cannot_connect_lets_the_next_one_try(questions: Questions) -> None:
    gone = f"127.0.0.1:{free_port()}"
    with peer(silence) as address, ThreadPoolExecutor(LATE) as threads:
        taken = [take(questions, address) for _ in range(MOST)]
        late = late_takers(threads, questions, address)
        questions._connections._resolve = lambda *_: [("127.0.0.1", int(gone.split(":")[1]))]
        questions._drop(taken[0])
        for each in late:
            with pytest.raises(ConnectFailed):
                each.result(30)
        close_all(taken)


def test_all_threads_that_wait_for_a_connection_hear_of_the_close(questions: Questions) -> None:
    with peer(silence) as address, ThreadPoolExecutor(LATE) as threads:
        taken = [take(questions, address) for _ in range(MOST)]
        late = late_takers(threads, questions, address)
        questions.close()
        for each in late:
            with pytest.raises(ClientClosed):
                each.result(30)
        for connection in taken:
            questions._give(connection)
        assert len(questions._connections) == 0


def test_several_threads_can_wait_for_the_same() -> None:
    calls, over = CallsInFlight(), threading.Event()
    with ThreadPoolExecutor(LATE) as threads:
        waits = [threads.submit(calls.wait, over.is_set) for _ in range(LATE)]
        wait_for(lambda: len(calls.sleepers) == LATE, "threads to wait")
        over.set()
        calls.notify()
        for each in waits:
            each.result(30)
    assert not calls.sleepers


def test_a_thread_that_finds_what_it_waits_for_by_itself_passes_a_wake_up_on() -> None:
    calls, found = CallsInFlight(), threading.Event()
    with ThreadPoolExecutor(1) as threads:

        def find() -> bool:
            # Another thread waits longer; both calls end while this one looks.
            wait_for(lambda: len(calls.sleepers) == 2, "both to wait")
            calls.notify()
            return True

        other = threads.submit(calls.wait_for, lambda: found.is_set() or None)
        wait_for(lambda: len(calls.sleepers) == 1, "the other thread to wait")
        assert calls.wait_for(find)
        found.set()
        calls.notify()
        assert other.result(30)
    assert calls.wait_for(lambda: None, 0.0) is None
    assert not calls.sleepers
