"""The connections on which callers pop and acknowledge, and what becomes of a pop in flight.

A broker holds a pop until a message comes. Its caller may be interrupted meanwhile: then the loop
waits for the response, and what it brings is for the next caller. When the consumer is closed, the
connections of pops in flight end, and their callers get `ClientClosed`.
"""

import socket
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from pocketmq.blocking.calls_in_flight import CallsInFlight
from pocketmq.blocking.connection import BlockingConnection, ReadUsual
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.session_connections import connections_of
from pocketmq.client.callbacks import call_in_own_thread
from pocketmq.client.calls import request_name
from pocketmq.client.pop.member import PopMember
from pocketmq.client.pop.sources import Kept, Source
from pocketmq.client.questions.asking import Ask, Question, run
from pocketmq.errors import ClientClosed, ConnectionLost, MQError, server_error
from pocketmq.protocol import Command

T = TypeVar("T")

_LEAVING = 0.2
"""Seconds for brokers to end the connections of pops that wait, when the consumer is closed."""


class AllInUse(Exception):
    """Every connection is in use: the request goes by way of the loop."""


class PopInFlight(msgspec.Struct, frozen=True):
    """A pop that was sent: what the loop needs to finish it."""

    source: Source
    code: int
    timeout: float
    make_question: Callable[[], Question[Kept | MQError]]


class PopConnections:
    """The connections of one consumer's callers. Any thread may call; made on the loop."""

    def __init__(self, member: PopMember, owner: str, thread: LoopThread) -> None:
        session = member.session
        self._owner = owner
        self._thread = thread
        self._holds = member.receiving.holds
        self._requests = member.requests
        self._request = session.calls.request
        self._address = session.addresses.master
        self._limit = session.options.request_timeout
        self._pool = connections_of(session, thread)
        self._waiting: set[BlockingConnection] = set()
        self.handed_over: set[BlockingConnection] = set()
        """Those whose pops the loop is about to take over."""
        self._left = CallsInFlight()
        self.closing = False

    def ask(self, asked: Ask) -> Command:
        """Send a request that brokers answer immediately; raises as `PopRequests.carry` does."""
        assert asked.queue is not None
        address = self._address(asked.queue.broker_name)

        def frame(opaque: int) -> bytes:
            command = self._request(asked.code, asked.header, asked.body)
            return msgspec.structs.replace(command, opaque=opaque).encode()

        answer = self.ask_at(address, frame, asked.code, _never)
        return accepted(answer, asked, address)

    def ask_at(
        self, address: str, frame: Callable[[int], bytes], code: int, read: ReadUsual[T]
    ) -> T | Command:
        """Send a request to an address; see `BlockingConnection.ask_usual`. Raises `AllInUse`."""
        pool, limit, now = self._pool, self._limit, time.monotonic()
        connection = pool.take_idle(address, now) or self._take(address, now + limit)
        try:
            opaque = connection.next_opaque()
            found = connection.ask_usual(frame(opaque), opaque, code, limit, read)
        except BaseException as error:  # KeyboardInterrupt, too: the response may still come
            self._drop(connection, error)
            raise
        pool.give(connection)
        return found

    def pop(
        self,
        pop: PopInFlight,
        address: str,
        frame: Callable[[int], bytes],
        read: ReadUsual[T],
        now: float,
    ) -> T | Command:
        """Send a pop and wait for its response; interrupted, the loop waits for it instead.

        `now` is the time of the call, by the monotonic clock.
        """
        pool, timeout = self._pool, pop.timeout
        connection = pool.take_idle(address, now) or self._take(address, now + timeout)
        opaque, deadline = 0, 0.0  # once it was sent
        try:
            try:
                self._waiting.add(connection)
                if self.closing:  # after it was added: a close looks who waits
                    raise ClientClosed(self._owner)
                number = connection.next_opaque()
                deadline = time.monotonic() + timeout
                connection.begin(frame(number), pop.code, timeout)
                opaque = number
                found = connection.finish(number, pop.code, timeout, read)
            finally:  # first thing, without a call in between in which it could be interrupted
                self._waiting.discard(connection)
                if self.closing:
                    self._left.notify()
        except BaseException as error:
            interrupted = opaque and not isinstance(error, Exception)
            if interrupted and connection.is_resumable and not self.closing:
                self._hand_over(connection, pop, opaque, deadline)
            else:
                self._drop(connection, error)
            raise
        pool.give(connection)
        return found

    def stop(self) -> None:
        """End the pops that wait; what has come already is still received."""
        self.closing = True
        for connection in tuple(self._waiting):
            connection.end(socket.SHUT_WR)  # a broker then answers no pop that it holds

    def close(self) -> None:
        """Close all connections; after `stop`."""
        self._left.wait(lambda: not self._waiting, _LEAVING)
        for connection in tuple(self._waiting):
            connection.end()
        self._pool.close()

    def _take(self, address: str, deadline: float) -> BlockingConnection:
        """Return a connection that is not in use, a new one if need be."""
        connection = self._pool.take(address, deadline)
        if connection is None:
            raise AllInUse
        return connection

    def _drop(self, connection: BlockingConnection, error: BaseException) -> None:
        self._pool.drop(connection)
        if isinstance(error, ConnectionLost):  # such as of a broker that was restarted
            self._pool.forget(connection.address)

    # A pop whose caller was interrupted

    def _hand_over(
        self, connection: BlockingConnection, pop: PopInFlight, opaque: int, deadline: float
    ) -> None:
        def adopt() -> None:
            self._holds.adopt(pop.source, self._finish(connection, pop, opaque, deadline))
            self.handed_over.discard(connection)

        try:
            self.handed_over.add(connection)
            self._thread.loop.call_soon_threadsafe(adopt)
        except BaseException as error:  # the loop is closed, or the caller is interrupted again
            self.handed_over.discard(connection)
            self._pool.drop(connection)
            if not isinstance(error, RuntimeError):
                raise

    async def _finish(
        self, connection: BlockingConnection, pop: PopInFlight, opaque: int, deadline: float
    ) -> Kept | MQError:
        """Wait for the response in a thread, as the connection cannot be read by the loop."""

        def wait() -> Command:
            try:
                left = max(0.001, deadline - time.monotonic())
                return connection.finish(opaque, pop.code, left, _never)
            finally:
                self._pool.drop(connection)

        question = pop.make_question()
        first = next(question)

        async def carry(asked: Ask) -> Command:
            if asked is not first:
                return await self._requests.carry(asked)
            try:
                answer = await call_in_own_thread("pocketmq-pop", wait)
            finally:
                connection.end()  # if the consumer is closed, the thread need not wait
            return accepted(answer, asked, connection.address)

        return await run(question, carry, first)


def accepted(answer: Command, asked: Ask, address: str) -> Command:
    """Return a response; raises the `ServerError` that stands for a code that is not accepted."""
    if answer.code not in asked.accept:
        name = request_name(asked.code)
        raise server_error(answer.code, answer.remark, request=name, address=address)
    return answer


def _never(_: bytes, __: int) -> Command | None:
    """Take no response for a usual one."""
    return None
