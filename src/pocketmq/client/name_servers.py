"""Requests to name servers: to one while it answers, to the next when it does not.

As in Java the list is shuffled once, so that clients spread over the servers, and the chosen one is
kept as long as its connection lives. Java sends a request to one server only; here it is repeated
with the others within its deadline, since asking for a route is idempotent.
"""

import asyncio
import logging
from collections.abc import Mapping
from random import Random

from pocketmq.client.calls import SUCCESS, Fields, ServerCalls
from pocketmq.errors import NameServersUnreachable, TransportError
from pocketmq.net import parse_addresses
from pocketmq.protocol import Command

logger = logging.getLogger("pocketmq.client")

ENVIRONMENT = "NAMESRV_ADDR"


def name_server_addresses(configured: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses to use: those configured, else those in NAMESRV_ADDR.

    Raises `NameServersUnreachable` if there are none, `InvalidInput` for an invalid address.
    """
    text = configured or environment.get(ENVIRONMENT, "")
    if not text.strip(" ;"):
        raise NameServersUnreachable(())
    return tuple(str(address) for address in parse_addresses(text))


class NameServerCalls:
    """The name servers of one client. Belongs to one event loop."""

    def __init__(self, addresses: tuple[str, ...], calls: ServerCalls, random: Random) -> None:
        self.addresses = addresses
        self._calls = calls
        self._order = random.sample(addresses, len(addresses))
        self._at = 0
        self._settled = False  # the chosen one has answered
        self._warned = False  # one warning for each outage

    @property
    def chosen(self) -> str:
        """The server for the next request, unless its connection is lost."""
        return self._order[self._at]

    async def ask(
        self,
        code: int,
        fields: Fields = None,
        *,
        timeout: float,  # noqa: ASYNC109 - divided among the servers
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Return the response of the chosen server, or of the next that answers.

        Raises `NameServersUnreachable` if none does in time, and `ServerError` for a refusal.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        first = self._first()
        failure: TransportError | None = None
        count = len(self._order)
        for step in range(count):
            at = (first + step) % count
            left = (deadline - loop.time()) / (count - step)
            if left <= 0:
                break
            try:
                answer = await self._calls.ask(
                    self._order[at], code, fields, timeout=left, accept=accept
                )
            except TransportError as error:
                logger.debug("name server %s failed: %s; trying the next", self._order[at], error)
                failure = error
                if at == self._at:  # another call may have moved on meanwhile
                    self._choose((at + 1) % count, settled=False)
            else:
                self._choose(at, settled=True)
                self._warned = False
                return answer
        if not self._warned:
            logger.warning("no name server responds at %s: %s", ", ".join(self.addresses), failure)
            self._warned = True
        reason = "" if failure is None else failure.reason
        raise NameServersUnreachable(self.addresses, reason) from failure

    def _first(self) -> int:
        """Return the server to start with: the next one if the chosen one's connection is lost."""
        if self._settled and self._calls.connected(self.chosen) is None:
            self._choose((self._at + 1) % len(self._order), settled=False)
        return self._at

    def _choose(self, at: int, *, settled: bool) -> None:
        self._at = at
        self._settled = settled
