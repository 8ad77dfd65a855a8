"""One try on the event loop: the request to a broker, and its response as a receipt.

Uses the session's connections, which all members of a client share. Decides nothing about retries:
every failure is raised. Belongs to one event loop.
"""

import asyncio
from collections.abc import Callable

from pocketmq.client.producer.requests import Outgoing, RequestWriter, read_receipt
from pocketmq.client.producer.window import SendWindow
from pocketmq.client.session import Session
from pocketmq.errors import BrokerNotFound, ConnectFailed, RequestTimedOut
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol.command import Command


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
        self._now = now
        self._now_ms = session.clock.now_ms
        self._address = session.brokers.send_address
        self._namespace = session.options.namespace
        self._dialer = session.calls.dialer

    async def ask(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt:  # noqa: ASYNC109 - one timer serves all requests
        """Send a message and return its receipt.

        Raises `ServerError`, `TransportError`, `BrokerNotFound` or `ProtocolError`.
        """
        address = self._address(queue.broker_name)
        asked = self._now()
        connection = self._dialer.known(address)
        if connection is None:
            connection = await self._connect(address, timeout)
            timeout -= self._now() - asked
        opaque, answer = connection.expect(outgoing.code, timeout)
        connection.post(opaque, self.writer.frame(outgoing, queue, opaque, self._now_ms()))
        try:
            reply = await answer
        except RequestTimedOut:
            self._window.answered(len(outgoing.body), asked, self._now())
            self.doubt(connection, asked)
            raise
        except asyncio.CancelledError:
            connection.forget(opaque)
            raise
        finally:
            del answer  # it has the error, whose traceback has this frame
        self._window.answered(len(outgoing.body), asked, self._now())
        return read_receipt(reply, outgoing, queue, address, self._namespace)

    async def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> None:  # noqa: ASYNC109 - of each wait
        """Send one way; raises `BrokerNotFound` or `TransportError` if it cannot leave."""
        address = self._address(queue.broker_name)
        connection = self._dialer.known(address) or await self._connect(address, timeout)
        opaque, _ = connection.expect(outgoing.code, timeout)
        connection.forget(opaque)
        connection.write(self.writer.frame(outgoing, queue, opaque, self._now_ms(), oneway=True))
        if connection.clogged:
            await _drain(connection, timeout)

    # The same without waiting, for a caller that takes the response itself

    def connected(self, broker: str) -> Connection | None:
        """Return the connection to a broker if there is one."""
        try:
            return self._dialer.known(self._address(broker))
        except BrokerNotFound:
            return None

    def post(
        self, connection: Connection, opaque: int, outgoing: Outgoing, to: MessageQueue
    ) -> None:
        """Send a message on a connection that expects its response under `opaque`."""
        connection.post(opaque, self.writer.frame(outgoing, to, opaque, self._now_ms()))

    def read(
        self, reply: Command, asked: float, outgoing: Outgoing, queue: MessageQueue, address: str
    ) -> SendReceipt:
        """Return the receipt of a response; raises `ServerError` or `HeaderMalformed`."""
        self._window.answered(len(outgoing.body), asked, self._now())
        return read_receipt(reply, outgoing, queue, address, self._namespace)

    def doubt(self, connection: Connection, asked: float) -> None:
        """Report that a response did not come in time: the connection may be dead."""
        self._dialer.doubt(connection, asked, self._now() - asked)

    async def _connect(self, address: str, timeout: float) -> Connection:  # noqa: ASYNC109 - the dialler's
        connection = await self._dialer.connect(address, timeout)
        if connection.closed:
            raise ConnectFailed(address, "the connection was closed as soon as it was made")
        return connection


async def _drain(connection: Connection, timeout: float) -> None:  # noqa: ASYNC109 - the caller's deadline
    try:
        async with asyncio.timeout(timeout):
            await connection.drain()
    except TimeoutError as error:
        raise RequestTimedOut(connection.remote_address, "one-way send", timeout) from error
