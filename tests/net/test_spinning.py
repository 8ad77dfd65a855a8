"""Spinning: a request that follows at once is read at once, and nobody waits for it in vain."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from pocketmq import native, net
from pocketmq.net.shared import LANE_READ
from pocketmq.net.spinning import ALONE, ROUNDS, SWITCH, spin_on
from tests.loops import until
from tests.net.peers import Raw, Recorder, ask, echo, serving

core = pytest.importorskip("pocketmq_core")
pytestmark = pytest.mark.skipif(
    native.core is None or len(os.sched_getaffinity(0)) < 2,
    reason="nobody spins in pure Python, or with one processor",
)

SECOND = 1_000_000  # microseconds
SKIPPED = 31  # waits after one in vain, at first
REQUESTS = ALONE + 3 * (1 + ROUNDS)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_bytes_that_are_there_are_received(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    spin = core.Spin(here.fileno(), 0)
    there.sendall(b"0123456789")
    assert spin.receive(4) == b"0123"
    assert spin.receive(65536) == b"456789"
    assert spin.receive(65536) is None


def test_bytes_that_come_within_the_limit_are_received(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    later = threading.Timer(0.05, there.sendall, [b"late"])
    later.start()
    assert core.Spin(here.fileno(), 60 * SECOND).receive(100) == b"late"
    later.join()


def test_the_end_and_errors_are_left_to_the_next_read(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    there.shutdown(socket.SHUT_WR)
    assert core.Spin(here.fileno(), 60 * SECOND).receive(100) is None
    assert here.recv(100) == b""
    assert core.Spin(-1, 60 * SECOND).receive(100) is None


def test_after_a_wait_in_vain_the_next_ones_are_not_even_tried(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    spin = core.Spin(here.fileno(), 0)
    assert spin.receive(1) is None
    there.sendall(b"abc")
    for pause in (SKIPPED, 0, 0):
        assert [spin.receive(1) for _ in range(pause)] == [None] * pause
        assert spin.receive(1) is not None


def test_one_thread_of_a_process_spins(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    received: list[bytes | None] = []
    first = core.Spin(here.fileno(), 60 * SECOND)
    thread = threading.Thread(target=lambda: received.append(first.receive(100)))
    thread.start()
    other, far = socket.socketpair()
    with other, far:
        far.sendall(b"x" * 100_000)
        second = core.Spin(other.fileno(), 0)
        while second.receive(1) is not None:  # the thread has not begun
            pass
        there.sendall(b"done")
        thread.join()
        assert received == [b"done"]
        assert second.receive(1) == b"x"


def test_nobody_spins_where_it_is_turned_off(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spin_on(pair[0].fileno()) is not None
    monkeypatch.setenv(SWITCH, "off")
    assert spin_on(pair[0].fileno()) is None


class Following:
    """A lane of a client whose next request is there as soon as the one before is answered."""

    starts: tuple[bytes, ...] = (b'{"code":310,',)

    def __init__(self, peer: Raw, requests: int, *, answers: bool = True) -> None:
        self.turns: list[int] = []
        """In which event-loop iteration each request was taken."""
        self._peer = peer
        self._requests = requests
        self._answers = answers
        self._turn = 0

    def count_turns(self) -> None:
        self._turn += 1
        if len(self.turns) < self._requests:
            asyncio.get_running_loop().call_soon(self.count_turns)

    def take(self, connection: net.Connection, data: bytes, start: int) -> int:
        assert start == 0
        if not self.turns:
            self.count_turns()
        self.turns.append(self._turn)
        if len(self.turns) < self._requests:
            self._peer.socket.send(data)
            connection.answered = self._answers
        return len(data)

    def end(self, connection: net.Connection) -> None:
        raise AssertionError("all was taken")

    def all_taken(self) -> bool:
        return len(self.turns) == self._requests


async def taken(*, answers: bool = True) -> list[int]:
    """Return how many requests were taken in each event-loop iteration that had any."""
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        owner.opened[0].lane = lane = Following(peer, REQUESTS, answers=answers)
        await peer.send(ask(b"x").encode())
        await until(lane.all_taken, "all requests")
    return [lane.turns.count(turn) for turn in sorted(set(lane.turns))]


async def test_requests_that_follow_at_once_are_read_in_one_iteration_up_to_a_limit() -> None:
    assert await taken() == [1] * ALONE + [1 + ROUNDS] * 3


async def test_each_request_has_its_iteration_while_something_else_is_to_be_done() -> None:
    assert await taken(answers=False) == [1] * REQUESTS


async def test_each_request_has_its_iteration_where_it_is_turned_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert await taken() == [1] * REQUESTS


async def test_each_request_has_its_iteration_after_another_client_has_asked() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as peer, Raw(address) as other:
        await until(lambda: len(owner.opened) == 2, "the connections")
        port = peer.socket.getsockname()[1]
        first = next(one for one in owner.opened if one.remote_address.endswith(f":{port}"))
        for expected in ([1] * ALONE + [1 + ROUNDS] * 3,) * 2:
            first.lane = lane = Following(peer, REQUESTS)
            await peer.send(ask(b"x").encode())
            await until(lane.all_taken, "all requests")
            assert [lane.turns.count(turn) for turn in sorted(set(lane.turns))] == expected
            await other.send(ask(b"y").encode())
            await other.commands(1)


class Once:
    """A lane that notes what it is given."""

    starts: tuple[bytes, ...] = (b'{"code":310,',)

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, connection: net.Connection, data: bytes, start: int) -> int:
        self.taken.append(data[start:])
        return len(data)

    def end(self, connection: net.Connection) -> None:
        """Nothing is left to finish."""


async def test_nothing_is_read_from_a_connection_that_a_read_has_closed() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), Raw(address) as peer:
        await until(lambda: owner.opened, "the connection")
        connection = owner.opened[0]
        connection.lane = lane = Once()
        connection.answered = True  # as a write at the end of an iteration leaves it
        too_long = b"\x7f\xff\xff\xff".ljust(LANE_READ, b"\0")
        await peer.send(too_long + ask(b"x").encode())
        await until(lambda: owner.closed, "the end of the connection")
        assert lane.taken == []


def test_a_child_forked_while_a_thread_spins_can_spin(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    first = core.Spin(here.fileno(), 60 * SECOND)
    thread = threading.Thread(target=first.receive, args=(100,))
    thread.start()
    other, far = socket.socketpair()
    with other, far:
        far.sendall(b"x" * 100_000)
        second = core.Spin(other.fileno(), 0)
        while second.receive(1) is not None:  # the thread has not begun
            pass
        child = os.fork()
        if not child:
            os._exit(0 if core.Spin(other.fileno(), 0).receive(1) == b"x" else 1)
        _, status = os.waitpid(child, 0)
        there.sendall(b"done")
        thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
