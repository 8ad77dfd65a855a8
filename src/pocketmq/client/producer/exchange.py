"""One try on the event loop: the request to a broker, and its response as an outcome.

Uses the session's connections, which all members of a client share. Decides nothing about retries:
errors are outcomes like receipts. Belongs to one event loop.
"""

import asyncio
from collections.abc import Callable

from pocketmq import errors
from pocketmq.client.producer.requests import Outgoing, RequestWriter, read_receipt
from pocketmq.client.producer.window import SendWindow
from pocketmq.client.session import Session
from pocketmq.model import MessageQueue, SendReceipt
from pocketmq.model.topics import is_logical
from pocketmq.net import Connection
from pocketmq.net.open_requests import AnswerSink
from pocketmq.protocol import Command

MOVE_PAUSE = 0.05
"""Seconds until the route of a queue that moves is fetched again."""


class LoopExchange:
    """Requests of one producer to brokers. Its window learns how long responses take."""

    def __init__(
        self,
        session: Session,
        writer: RequestWriter,
        window: SendWindow,
        now: Callable[[], float],
    ) -> None:
        self.writer = writer
        self._window = window
        self._answered = window.budget.answered
        self._now = now
        self._now_ms = session.clock.now_ms
        self._address = session.brokers.send_address
        self._routes = session.routes
        self._namespace = session.options.namespace
        self._dialer = session.calls.dialer

    async def ask(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        timeout: float,  # noqa: ASYNC109 - one timer serves all requests
        *,
        follow: bool = True,
    ) -> SendReceipt | errors.MQError:
        """Send a message and return its receipt, or the error.

        That is a `ServerError`, `TransportError`, `BrokerNotFound` or `ProtocolError`. A logical
        queue that has moved is followed, unless `follow` is False.
        """
        connection = None
        asked = self._now()
        deadline = asked + timeout
        try:
            address = self._address(queue)
            connection = self._dialer.known(address)
            if connection is None:
                connection = await self._connect(address, timeout)
                timeout -= self._now() - asked
            opaque, answer = connection.expect(outgoing.code, timeout)
            try:
                connection.post(opaque, self.writer.frame(outgoing, queue, opaque, self._now_ms()))
                reply = await answer
            except (asyncio.CancelledError, errors.InvalidInput):
                connection.forget(opaque)
                raise
            finally:
                del answer  # it has the error, whose traceback has this frame
            self._answered(len(outgoing.body), asked, self._now(), self._window.bytes)
            return read_receipt(reply, outgoing, queue, address, self._namespace)
        except errors.MQError as error:
            if isinstance(error, errors.RequestTimedOut) and connection is not None:
                self.timed_out(connection, asked, len(outgoing.body))
            if follow and isinstance(error, errors.NotLeader):
                return await self.follow(outgoing, queue, deadline - self._now(), error)
            return error

    async def follow(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        timeout: float,  # noqa: ASYNC109 - for all requests together
        refused: errors.NotLeader,
    ) -> SendReceipt | errors.MQError:
        """Send a message to the broker that leads its logical queue now; nothing was stored yet.

        The route is fetched until it names another broker than the one that refused.
        """
        deadline = self._now() + timeout
        while (left := deadline - self._now()) > 0:
            try:
                await self._routes.refresh(queue.topic, left)
                moved = self._address(queue) != refused.address
            except errors.MQError:
                moved = False
            if moved:
                outcome = await self.ask(outgoing, queue, deadline - self._now(), follow=False)
                if not isinstance(outcome, errors.NotLeader):
                    return outcome
                refused = outcome
            await asyncio.sleep(MOVE_PAUSE)
        return refused

    async def tell(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        timeout: float,  # noqa: ASYNC109 - of each wait
    ) -> errors.MQError | None:
        """Send one way; return the error if it cannot leave."""
        try:
            address = self._address(queue)
            connection = self._dialer.known(address) or await self._connect(address, timeout)
            opaque, _ = connection.expect(outgoing.code, timeout)
            connection.forget(opaque)
            frame = self.writer.frame(outgoing, queue, opaque, self._now_ms(), oneway=True)
            connection.write(frame)
            if connection.clogged:
                await _drain(connection, timeout)
        except errors.MQError as error:
            return error
        return None

    # The same without waiting, for a sink that takes the response

    def post(
        self, sink: AnswerSink, outgoing: Outgoing, queue: MessageQueue, timeout: float
    ) -> Connection | None:
        """Send a message whose response goes to `sink`; None if there is no connection yet.

        Logical queues are for `ask`, which follows them.
        """
        if is_logical(queue):
            return None
        try:
            connection = self._dialer.known(self._address(queue))
        except errors.BrokerNotFound:
            return None
        if connection is not None:
            opaque = connection.expect_into(sink, outgoing.code, timeout)
            try:
                connection.post(opaque, self.writer.frame(outgoing, queue, opaque, self._now_ms()))
            except (
                errors.InvalidInput
            ):  # raised to the caller; the sink must not hear of it a second time
                connection.forget(opaque)
                raise
        return connection

    def read(
        self, reply: Command, asked: float, outgoing: Outgoing, queue: MessageQueue, address: str
    ) -> SendReceipt | errors.MQError:
        """Return the outcome of a response to a request of the time `asked`."""
        self._answered(len(outgoing.body), asked, self._now(), self._window.bytes)
        try:
            return read_receipt(reply, outgoing, queue, address, self._namespace)
        except errors.MQError as error:
            return error

    def timed_out(self, connection: Connection, asked: float, size: int) -> None:
        """Report that a response did not come in time: the connection may be dead."""
        self._answered(size, asked, self._now(), self._window.bytes)
        self._dialer.doubt(connection, asked, self._now() - asked)

    async def _connect(self, address: str, timeout: float) -> Connection:  # noqa: ASYNC109 - the dialler's
        connection = await self._dialer.connect(address, timeout)
        if connection.closed:
            raise errors.ConnectFailed(address, "the connection was closed as soon as it was made")
        return connection


async def _drain(connection: Connection, timeout: float) -> None:  # noqa: ASYNC109 - the caller's deadline
    try:
        async with asyncio.timeout(timeout):
            await connection.drain()
    except TimeoutError as error:
        raise errors.RequestTimedOut(connection.remote_address, "one-way send", timeout) from error
