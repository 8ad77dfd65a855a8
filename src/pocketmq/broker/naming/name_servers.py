"""Requests to name servers: signed if the settings name a user, and asking for routes.

Java: `innerClientAuthenticationCredentials`; here also `nameServerCredentials`. Name servers with
access control accept registrations from such a user only.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from pocketmq.broker.balancing.routes import Found
from pocketmq.errors import MQError, ResponseCode
from pocketmq.model.route import TopicRoute
from pocketmq.model.start_users import InnerCredentials
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.nameserver import GetRouteRequest

logger = logging.getLogger("pocketmq.broker")

_TIMEOUT = 3.0


class NameServerCalls(Protocol):
    """Sends a request to an address and returns the answer; `pocketmq.net.Dialer` does."""

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask an address. Raises `MQError` if no answer comes."""
        ...


class SignedCalls:
    """Signs what is asked."""

    def __init__(self, calls: NameServerCalls, user: InnerCredentials) -> None:
        from pocketmq.protocol.signature import SigningUser, sign  # most brokers do without

        self._calls = calls
        self._user = SigningUser(user.access_key, user.secret_key.encode(), user.security_token)
        self._sign = sign

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask an address as the user. Raises `MQError` if no answer comes."""
        fields = dict(request.ext)
        self._sign(self._user, request.code, fields, request.body)
        signed = Command.request(request.code, 0, fields, request.body)
        return await self._calls.request(address, signed, timeout)


def calls_of(calls: NameServerCalls, user: InnerCredentials | None) -> NameServerCalls:
    """Return calls that are signed by a user, or unsigned for None."""
    return calls if user is None else SignedCalls(calls, user)


class RouteQuestions:
    """Asks one name server after the other until one answers. Belongs to the broker's loop."""

    def __init__(self, name_servers: Sequence[str], calls: NameServerCalls) -> None:
        self._name_servers = list(dict.fromkeys(name_servers))
        self._calls = calls
        self._tasks: set[asyncio.Task[None]] = set()

    def fetch(self, topic: str, found: Found) -> None:
        """Ask for a route and call back later; with None without a route or an answer."""
        if not self._name_servers:
            found(None)
            return
        task = asyncio.create_task(self._fetch(topic, found), name=f"route of {topic}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop asking; callbacks that wait get None."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _fetch(self, topic: str, found: Found) -> None:
        route = None
        try:
            route = await self._ask(topic)
        finally:
            found(route)

    async def _ask(self, topic: str) -> TopicRoute | None:
        header = GetRouteRequest(topic=topic, accept_standard_json_only=True)
        request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, 0, header)
        for address in self._name_servers:
            try:
                answer = await self._calls.request(address, request, _TIMEOUT)
                if answer.code == ResponseCode.SUCCESS:
                    return decode_body(answer.body, TopicRoute)
            except MQError as error:
                logger.info(
                    "route request failed: name_server=%s topic=%s error=%s", address, topic, error
                )
            else:
                return None
        return None
