"""Requests to brokers by name: the address is looked up, the response code is checked.

What to do about an error is up to the caller: errors carry flags (`retryable`, `refresh_route`,
`outcome_unknown`).
"""

from collections.abc import Awaitable, Callable
from functools import cache
from random import Random
from typing import TypeVar

from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.calls import SUCCESS, Fields, ServerCalls
from pocketmq.client.routes import RouteBook
from pocketmq.client.rows import NumberedTemplate, RequestRow
from pocketmq.errors import RouteNotFound
from pocketmq.model import MessageQueue
from pocketmq.model.route import MASTER_ID
from pocketmq.net import Address, parse_address
from pocketmq.protocol import Command

N = TypeVar("N")


@cache
def main_port() -> frozenset[int]:
    """Return what Java sends to a broker's own port even if the second one is to be used.

    The whole catalogue is imported only for clients that use the second port.
    """
    from pocketmq.protocol.catalogue import REQUESTS

    return frozenset(code for code, row in REQUESTS.items() if row.main_port)


class BrokerCalls:
    """Sends requests to brokers by name. Belongs to one event loop."""

    def __init__(
        self,
        calls: ServerCalls,
        addresses: BrokerAddresses,
        *,
        timeout: float,
        vip_channel: bool = False,
    ) -> None:
        self.calls = calls
        self.addresses = addresses
        self.send_address: Callable[[MessageQueue], str] = (
            self._second_port if vip_channel else addresses.writer
        )
        """Returns the address to send to for a queue; raises `BrokerNotFound`. Thread-safe."""
        self._timeout = timeout
        self._vip = vip_channel

    async def call(
        self,
        broker: str,
        code: int,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
        master_only: bool = False,
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Send a request to a broker's master; without one to a slave, unless `master_only`.

        Raises `BrokerNotFound` if it has no address (nothing was sent), the `ServerError` that
        stands for a code outside `accept`, and `TransportError`.
        """
        address = self.address(broker, master_only=master_only)
        return await self.call_at(address, code, fields, body, timeout=timeout, accept=accept)

    async def call_at(
        self,
        address: str,
        code: int,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Send a request to the broker at an address, such as `addresses.for_reading` returns."""
        limit = self._timeout if timeout is None else timeout
        port = self._port(address, code)
        return await self.calls.ask(port, code, fields, body, timeout=limit, accept=accept)

    def repeat_at(
        self,
        address: str,
        code: int,
        template: NumberedTemplate[N],
        numbers: N,
        *,
        timeout: float,
        accept: frozenset[int] = SUCCESS,
    ) -> Awaitable[Command]:
        """Do what `call_at` does with a request of which all but some numbers is encoded."""
        port = self._port(address, code)
        return self.calls.repeat(port, code, template, numbers, timeout=timeout, accept=accept)

    def row_at(
        self, address: str, code: int, template: NumberedTemplate[N], *, timeout: float
    ) -> RequestRow[N] | None:
        """Return what sends such requests in a row, if there is an open connection."""
        return self.calls.row(self._port(address, code), code, template, timeout)

    async def tell(
        self,
        broker: str,
        code: int,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - for the connection alone
        master_only: bool = False,
    ) -> None:
        """Send a one-way request; raises `BrokerNotFound` or `ConnectFailed`."""
        address = self._port(self.address(broker, master_only=master_only), code)
        limit = self._timeout if timeout is None else timeout
        await self.calls.tell(address, code, fields, body, timeout=limit)

    def address(self, broker: str, *, master_only: bool = False) -> str:
        """Return a broker's address; raises `BrokerNotFound`."""
        if master_only:
            return self.addresses.master(broker)
        return self.addresses.any_of(broker).address

    def _second_port(self, queue: MessageQueue) -> str:
        return vip_address(self.addresses.writer(queue))

    def _port(self, address: str, code: int) -> str:
        return vip_address(address) if self._vip and code not in main_port() else address


def vip_address(address: str) -> str:
    """Return an address with the broker's second port, which is two below its own."""
    host, port = parse_address(address)
    return str(Address(host, port - 2)) if port > 2 else address


async def any_broker_of(routes: RouteBook, topic: str, random: Random) -> str:
    """Return the address of some broker of a topic, to ask about the groups that use it.

    As in Java: a random broker of the route, its master, or any process of it. Raises
    `RouteNotFound` if the route names none, and what `RouteBook.get` does.
    """
    known = await routes.get(topic)
    usable = [data.broker_addrs for data in known.route.broker_datas if data.broker_addrs]
    if not usable:
        raise RouteNotFound(topic)
    table = random.choice(usable)
    master = table.get(MASTER_ID)
    return master if master is not None else random.choice(sorted(table.values()))
