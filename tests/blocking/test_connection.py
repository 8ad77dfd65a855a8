"""Connections that their user reads: one answer for one request, or an end."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pocketmq.blocking import connection as module
from pocketmq.blocking.connection import BlockingConnection
from pocketmq.blocking.connection_pool import MOST, ConnectionPool, connect
from pocketmq.errors import ConnectFailed, ConnectionLost, ProtocolError, RequestTimedOut
from pocketmq.net import Limits, parse_address
from pocketmq.protocol import Command
from tests.blocking.peers import peer, requests
from tests.loops import open_files
from tests.own_time import own_time
from tests.ports import free_port

SHORT = 0.05
"""Seconds of a kernel's timer."""


def place_of(address: str, _deadline: float = 0.0) -> list[tuple[str, int]]:
    return [parse_address(address)]


@contextmanager
def connection_to(address: str) -> Iterator[BlockingConnection]:
    connection = connect(address, place_of(address), Limits(), time.monotonic() + 10)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def connection_with_timer(address: str) -> Iterator[BlockingConnection]:
    """Yield a connection that has just got a response to a short request, whose timer is still set.

    On a busy machine the response may be late, which closes the connection: then another.
    """
    while True:
        with connection_to(address) as connection:
            try:
                ask(connection, b"x", timeout=SHORT)
            except RequestTimedOut:
                continue
            yield connection
            return


def ask(connection: BlockingConnection, body: bytes = b"", timeout: float = 10.0) -> Command:
    number = connection.next_opaque()
    return connection.ask(Command.request(10, number, None, body).encode(), number, 10, timeout)


def listen(caller: socket.socket) -> None:
    for _ in requests(caller):
        pass


def echo(caller: socket.socket) -> None:
    for request in requests(caller):
        caller.sendall(request.reply(0, body=request.body).encode())


def test_each_request_gets_its_answer() -> None:
    with peer(echo) as address, connection_to(address) as connection:
        assert [ask(connection, body).body for body in (b"a", b"b" * 200_000, b"")] == [
            b"a",
            b"b" * 200_000,
            b"",
        ]


@pytest.mark.parametrize("first", [3, 8, 20, 60, 100_000])
def test_a_large_answer_is_whole_however_it_is_cut(first: int) -> None:
    """The beginning may end in the prefix, in the header or in the body."""
    body = bytes(range(256)) * 8000

    def in_two(caller: socket.socket) -> None:
        for request in requests(caller):
            answer = request.reply(0, body=body).encode()
            caller.sendall(answer[:first])
            gate.wait(10)
            caller.sendall(answer[first:])

    gate = threading.Event()
    with peer(in_two) as address, connection_to(address) as connection:
        threading.Timer(0.05, gate.set).start()
        assert ask(connection).body == body
        assert ask(connection).body == body


def test_small_answers_may_follow_large_ones() -> None:
    """After a large one the head of the next is read first, whatever its size."""
    sizes = (1_000_000, 2_000_000, 0, 5, 1_000_000, 100_000, 60_000, 1)
    with peer(echo) as address, connection_to(address) as connection:
        for size in sizes:
            body = bytes([size % 251]) * size
            assert ask(connection, body).body == body


def test_a_large_answer_that_stops_half_way_ends_at_the_deadline() -> None:
    def half(caller: socket.socket) -> None:
        for request in requests(caller):
            caller.sendall(request.reply(0, body=bytes(1_000_000)).encode()[:500_000])

    with peer(half) as address, connection_to(address) as connection:
        started, own = time.monotonic(), own_time()
        with pytest.raises(RequestTimedOut):
            ask(connection, timeout=0.3)
        assert time.monotonic() - started > 0.25
        assert own_time() - own < 5


def test_answers_to_nobody_and_requests_of_the_peer_are_passed_over() -> None:
    def chatter(caller: socket.socket) -> None:
        for request in requests(caller):
            stray = Command.request(40, request.opaque).encode()
            late = Command.request(10, request.opaque + 7).reply(0, body=b"late").encode()
            caller.sendall(stray + late)
            caller.sendall(request.reply(0, body=b"mine").encode())

    with peer(chatter) as address, connection_to(address) as connection:
        assert [ask(connection).body, ask(connection).body] == [b"mine", b"mine"]


def test_an_answer_in_pieces_is_waited_for() -> None:
    def drip(caller: socket.socket) -> None:
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in requests(caller):
            for byte in request.reply(0, body=b"whole").encode():
                caller.sendall(bytes([byte]))

    with peer(drip) as address, connection_to(address) as connection:
        assert ask(connection).body == b"whole"


def test_silence_ends_at_the_deadline_and_the_connection_with_it() -> None:
    with peer(listen) as address, connection_to(address) as connection:
        started, own = time.monotonic(), own_time()
        with pytest.raises(
            RequestTimedOut, match=r"no response to SEND_MESSAGE within 0\.05 s"
        ) as caught:
            ask(connection, timeout=0.05)
        assert time.monotonic() - started > 0.04
        assert own_time() - own < 5
        assert caught.value.outcome_unknown
        with pytest.raises(ConnectionLost):
            ask(connection)


@pytest.mark.parametrize("timeout", [0.005, 0.0001, 0.0, -0.5])
def test_the_first_wait_of_a_connection_ends_however_short_it_is(timeout: float) -> None:
    with peer(listen) as address, connection_to(address) as connection:
        own = own_time()
        with pytest.raises(RequestTimedOut):
            ask(connection, timeout=timeout)
        assert own_time() - own < 5


def test_a_peer_that_keeps_dripping_does_not_move_the_deadline() -> None:
    def drip_for_ever(caller: socket.socket) -> None:
        stray = Command.request(10, 99).reply(0).encode()
        gone = threading.Event()
        for _ in requests(caller):
            while not gone.wait(0.005):
                caller.sendall(stray)

    with peer(drip_for_ever) as address, connection_to(address) as connection:
        own = own_time()
        with pytest.raises(RequestTimedOut):
            ask(connection, timeout=0.1)
        assert own_time() - own < 5


def test_a_peer_that_takes_nothing_is_given_up_at_the_deadline() -> None:
    full = threading.Event()

    def deaf(_: socket.socket) -> None:
        full.wait(30)

    with peer(deaf) as address, connection_to(address) as connection:
        with pytest.raises(RequestTimedOut):
            ask(connection, b"x" * 64 * 1024 * 1024, timeout=0.05)
        full.set()


def test_an_end_in_between_says_that_the_outcome_is_unknown() -> None:
    def hang_up(caller: socket.socket) -> None:
        next(requests(caller))

    with peer(hang_up) as address, connection_to(address) as connection:
        with pytest.raises(ConnectionLost, match="closed by the peer") as caught:
            ask(connection)
        assert caught.value.outcome_unknown
        assert str(caught.value) == f"{address}: closed by the peer"  # as it was raised first


def test_bytes_that_are_no_frame_end_the_connection() -> None:
    def babble(caller: socket.socket) -> None:
        for _ in requests(caller):
            caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with peer(babble) as address, connection_to(address) as connection:
        with pytest.raises(ProtocolError):
            ask(connection)
        with pytest.raises(ConnectionLost):
            ask(connection)


def test_an_interrupt_is_passed_on_and_ends_the_connection() -> None:
    def interrupt(caller: socket.socket) -> None:
        next(requests(caller))
        # Not to the process: the kernel might give it to a thread that cannot be interrupted.
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        list(requests(caller))

    with peer(interrupt) as address, connection_to(address) as connection:
        with pytest.raises(KeyboardInterrupt):
            ask(connection)
        with pytest.raises(ConnectionLost):
            ask(connection)


def test_nobody_listening_is_told_as_such() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ConnectFailed, match="no server listens there"):
        connect(address, place_of(address), Limits(), time.monotonic() + 10)
    with pytest.raises(ConnectFailed, match="does not resolve"):
        connect("nowhere:1", [], Limits(), time.monotonic() + 10)
    with pytest.raises(ConnectFailed, match="in the time allowed"):
        connect(address, place_of(address), Limits(), time.monotonic() - 1)


# Several pool


def take(pool: ConnectionPool, address: str) -> BlockingConnection:
    connection = pool.take(address, time.monotonic() + 10)
    assert connection is not None
    return connection


def test_a_connection_given_back_is_taken_again() -> None:
    with peer(echo) as address:
        pool = ConnectionPool(place_of)
        first = take(pool, address)
        second = take(pool, address)
        pool.give(first)
        assert take(pool, address) is first
        assert len(pool) == 2
        pool.give(first)
        pool.give(second)
        pool.close()
        assert len(pool) == 0


def test_there_are_only_so_many_connections_and_a_dropped_one_makes_room() -> None:
    with peer(echo) as address:
        pool = ConnectionPool(place_of)
        taken = [take(pool, address) for _ in range(MOST)]
        assert pool.take(address, time.monotonic() + 10) is None
        pool.drop(taken.pop())
        taken.append(take(pool, address))
        for connection in taken:
            pool.give(connection)
        pool.close()


def test_a_connection_that_the_peer_closed_meanwhile_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pocketmq.blocking.connection_pool.TRUSTED", 0.0)
    hung_up = threading.Event()

    def once(caller: socket.socket) -> None:
        for request in requests(caller):
            caller.sendall(request.reply(0).encode())
            break
        caller.close()
        hung_up.set()

    with peer(once) as address:
        pool = ConnectionPool(place_of)
        first = take(pool, address)
        ask(first)
        assert hung_up.wait(10)
        pool.give(first)
        second = take(pool, address)
        assert second is not first
        assert ask(second).code == 0
        pool.drop(second)
        pool.close()


def test_connections_that_nobody_uses_are_closed_when_another_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with peer(echo) as address:
        pool = ConnectionPool(place_of)
        first = take(pool, address)
        pool.give(first)
        monkeypatch.setattr("pocketmq.blocking.connection_pool.IDLE", 0.0)
        with peer(echo) as other:
            pool.give(take(pool, other))
        assert len(pool) == 1
        with pytest.raises(ConnectionLost):
            ask(first)
        pool.close()


def test_a_connection_given_back_after_the_end_is_closed_and_none_is_made() -> None:
    files = open_files()
    with peer(echo) as address:
        pool = ConnectionPool(place_of)
        connection = take(pool, address)
        pool.close()
        pool.give(connection)
        assert len(pool) == 0
        assert pool.take(address, time.monotonic() + 10) is None
    deadline = time.monotonic() + 10
    while open_files() > files:
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)


def test_an_address_that_cannot_be_reached_uses_up_no_place() -> None:
    pool = ConnectionPool(lambda _address, _deadline: [])
    for _ in range(MOST + 1):
        with pytest.raises(ConnectFailed):
            pool.take("nowhere:1", time.monotonic() + 10)
    assert len(pool) == 0


def test_a_wait_outlasts_the_timer_that_shorter_requests_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel ends the wait, which is resumed: timers are not set for each kind of request."""
    monkeypatch.setattr(module, "_OFTEN", 0.01)

    def late(caller: socket.socket) -> None:
        for number, request in enumerate(requests(caller)):
            if number:
                assert not gate.wait(10 * SHORT)  # longer than the timer
            caller.sendall(request.reply(0, body=b"there").encode())

    gate = threading.Event()
    with peer(late) as address, connection_with_timer(address) as connection:
        number = connection.next_opaque()
        connection.begin(Command.request(10, number).encode(), 10, 30.0)
        answer = connection.finish(number, 10, 30.0, lambda _, __: None)
        assert isinstance(answer, Command)
        assert answer.body == b"there"


def test_a_wait_that_a_timer_ended_ends_by_its_own_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_OFTEN", 0.01)

    def once(caller: socket.socket) -> None:
        for request in requests(caller):
            if request.body:
                caller.sendall(request.reply(0).encode())

    with peer(once) as address, connection_with_timer(address) as connection:
        number = connection.next_opaque()
        connection.begin(Command.request(10, number).encode(), 10, 3 * SHORT)
        began = time.monotonic()
        with pytest.raises(RequestTimedOut):
            connection.finish(number, 10, 3 * SHORT, lambda _, __: None)
        # The socket's timer is set anew only if that changes more than `_PRECISION`.
        assert 3 * SHORT - module._PRECISION - 0.005 < time.monotonic() - began < 10
