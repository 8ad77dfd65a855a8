"""A broker's response on a short way: taken while the read that brings it is handled."""

import asyncio
from functools import partial

from pocketmq.client.session import Session
from pocketmq.errors import MQError, RequestTimedOut, server_error
from pocketmq.net.connection import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.proxy.methods import PendingCall


class BrokerAtHand:
    """An open connection to a broker, which requests leave by."""

    __slots__ = ("address", "connection", "session")

    def __init__(self, session: Session, address: str, connection: Connection) -> None:
        self.session = session
        self.address = address
        self.connection = connection


def broker_at_hand(session: Session, name: str) -> BrokerAtHand | None:
    """Return the connection to a broker's master if there is one; raises `BrokerNotFound`."""
    address = session.brokers.address(name, master_only=True)
    connection = session.calls.connected(address)
    return None if connection is None else BrokerAtHand(session, address, connection)


class BrokerAnswer:
    """Where one response goes; a code outside `accept` is an error, as are timeouts and losses."""

    __slots__ = ("_broker", "_call", "_code", "_timeout")

    accept: frozenset[int]
    outlives_call = False
    """Whether the response is taken even if the client has ended its call."""

    def __init__(
        self,
        call: PendingCall,
        broker: BrokerAtHand,
        code: RequestCode,
        timeout: float | None = None,
    ) -> None:
        self._call = call
        self._broker = broker
        self._code = code
        own = broker.session.options.request_timeout
        self._timeout = own if timeout is None else timeout

    def expect(self) -> int:
        """Return the number of the request; raises `ConnectionLost`.

        If the client ends its call the response is not waited for, unless it outlives the call, and
        neither are requests kept that a broker takes no more of.
        """
        connection = self._broker.connection
        opaque = connection.expect_into(self, self._code, self._timeout)
        if not self.outlives_call:
            self._call.release = partial(connection.forget, opaque)
        return opaque

    def taken(self, answer: Command) -> None:
        """Reply to the client."""
        raise NotImplementedError

    def failed(self, error: MQError) -> None:
        """Reply to the client, or try again."""
        raise NotImplementedError

    # What a connection calls

    def done(self) -> bool:
        """Return whether the response is dropped: the client has ended its call."""
        return not self.outlives_call and self._call.is_over()

    def set_result(self, answer: Command) -> None:
        """Take the response."""
        if answer.code in self.accept:
            self.taken(answer)
        else:
            named = {"request": self._code.name, "address": self._broker.address}
            self.failed(server_error(answer.code, answer.remark, **named))

    def set_exception(self, error: MQError) -> None:
        """Take the reason why none comes; a connection that is silent is closed."""
        if isinstance(error, RequestTimedOut):
            waited = error.timeout
            asked = asyncio.get_running_loop().time() - waited
            self._broker.session.calls.dialer.doubt(self._broker.connection, asked, waited)
        self.failed(error)

    def take_over(self, outcome: Command | MQError) -> None:
        """Take what came for a request that the core has sent."""
        if isinstance(outcome, Command):
            self.set_result(outcome)
        else:
            self.set_exception(outcome)
