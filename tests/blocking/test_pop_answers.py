"""Answers to pops on the caller's own connection that come in pieces, or that are lies."""

import asyncio
from collections.abc import Callable

import pytest

from pocketmq import errors
from pocketmq.net import Connection
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from tests.blocking.shelved import bodies, learn, shelved
from tests.client.pop.shelves import Shelf, record


class Lying(Shelf):
    """Answers the next pop with bytes of the test's choice instead."""

    def __init__(self) -> None:
        super().__init__()
        self.lies: list[Callable[[bytes], list[bytes]]] = []

    def _answer(self, connection: Connection, requests: list[Command]) -> None:
        for request in requests:
            if request.code == Code.POP_MESSAGE and self.lies:
                answer = self._pop(connection, request)
                assert answer is not None
                self._write(connection, self.lies.pop(0)(answer.encode()))
            else:
                super()._answer(connection, [request])

    def _write(self, connection: Connection, pieces: list[bytes]) -> None:
        """Write pieces one by one, with time for each to be read alone."""
        if pieces:
            connection.write(pieces[0])
            loop = asyncio.get_running_loop()
            loop.call_later(0.02, self._write, connection, pieces[1:])


def _renumbered(frame: bytes) -> bytes:
    """Return the same response to a request that was never sent."""
    head, mark, rest = frame.partition(b'"opaque":')
    digits = len(rest) - len(rest.lstrip(b"0123456789"))
    return head + mark + b"9" * digits + rest[digits:]


@pytest.mark.parametrize(
    "pieces",
    [
        lambda frame: [frame[:3], frame[3:40], frame[40:]],
        lambda frame: [_renumbered(frame) + frame],
        lambda frame: [frame[:-1], frame[-1:]],
    ],
    ids=["in pieces", "behind one of another number", "without its last byte at first"],
)
def test_an_answer_is_found_however_it_comes(pieces: Callable[[bytes], list[bytes]]) -> None:
    shelf = Lying()
    with shelved(shelf) as served:
        learn(served)
        for _ in range(10):  # numbers have two digits from then on, as has the other number
            served.consumer.receive(timeout=0.0)
        shelf.lies.append(pieces)
        served.do(lambda: shelf.messages.append(record(0)))
        messages = served.consumer.receive(timeout=5)
        assert bodies(messages) == [b"0"]
        served.consumer.ack(messages)
        assert shelf.acked == [0]


@pytest.mark.parametrize(
    ("lie", "raised"),
    [
        (lambda _: [b"\x7f\xff\xff\xff" + b"x" * 40], errors.ProtocolError),
        (lambda _: [b"\0\0\0\x08\0\0\0\x04nope"], errors.ProtocolError),
        (lambda frame: [frame.replace(b'"0 0 0"', b'"0 0 x"')], errors.ProtocolError),
        (lambda frame: [frame.replace(b'"popTime"', b'"popTame"')], errors.ProtocolError),
    ],
    ids=["a huge length", "a header that is no JSON", "no offset", "no time"],
)
def test_a_hostile_answer_is_an_error_and_the_next_receive_works(
    lie: Callable[[bytes], list[bytes]], raised: type[Exception]
) -> None:
    shelf = Lying()
    with shelved(shelf, request_timeout=30.0) as served:
        learn(served)
        shelf.lies.append(lie)
        served.do(lambda: shelf.messages.append(record(0)))
        with pytest.raises(raised):
            served.consumer.receive(timeout=0.0)
        served.do(lambda: shelf.put(record(1)))
        assert bodies(served.consumer.receive(timeout=5)) == [b"1"]


def test_a_broker_without_an_answer_costs_the_time_and_a_connection() -> None:
    shelf = Shelf()
    with shelved(shelf, request_timeout=3.0) as served:
        learn(served)
        shelf.lost = 1
        served.do(lambda: shelf.messages.append(record(0)))
        with pytest.raises(errors.RequestTimedOut, match="POP_MESSAGE"):
            served.consumer.receive(timeout=0.0)
        assert bodies(served.consumer.receive(timeout=5)) == [b"0"]
