"""Requests to name servers, signed if the settings name a user; routes of topics, asked and cached.

Java: `innerClientAuthenticationCredentials`; here also `nameServerCredentials`. Name servers with
access control accept registrations from such a user only. Only brokers that assign queues to their
clients ask for routes. A cached route is served while it is refreshed; the first request for a
topic waits for it. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pocketmq.errors import BodyMalformed, MQError, ResponseCode
from pocketmq.model import MessageQueue, TopicRoute
from pocketmq.model.secrets import InnerCredentials
from pocketmq.protocol import Command, RequestCode, decode_body
from pocketmq.protocol.requests.nameserver import GetRouteRequest

logger = logging.getLogger("pocketmq.broker")

_TIMEOUT = 3.0
FRESH_FOR = 30.0
"""Seconds after which a route is asked for again."""
MAX_ROUTES = 10_000
"""Topics remembered; beyond that each question goes to the name servers."""

Queues: TypeAlias = frozenset[MessageQueue]
Found: TypeAlias = Callable[[TopicRoute | None], None]
Fetch: TypeAlias = Callable[[str, Found], None]
"""Asks for a topic's route and calls back, now or later; None if there is none."""
Waiter: TypeAlias = Callable[[Queues | None], None]


class RequestSender(Protocol):
    """Sends a request to an address and returns the answer; `pocketmq.net.Dialer` does."""

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask an address. Raises `MQError` if no answer comes."""
        ...


class SignedCalls:
    """Signs what is asked."""

    def __init__(self, calls: RequestSender, user: InnerCredentials) -> None:
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


def calls_of(calls: RequestSender, user: InnerCredentials | None) -> RequestSender:
    """Return calls that are signed by a user, or unsigned for None."""
    return calls if user is None else SignedCalls(calls, user)


class RouteQuestions:
    """Asks one name server after the other until one answers. Belongs to the broker's loop."""

    def __init__(self, name_servers: Sequence[str], calls: RequestSender) -> None:
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


def no_route(_: str, found: Found) -> None:
    """Answer for a broker without name servers."""
    found(None)


class RouteCache:
    """Readable queues by topic, as name servers returned them."""

    def __init__(self, fetch: Fetch = no_route) -> None:
        self.fetch = fetch
        self._known: dict[str, tuple[Queues, float]] = {}
        self._waiting: dict[str, list[Waiter]] = {}

    def find(self, topic: str, now: float, waiter: Waiter) -> None:
        """Call `waiter` with a topic's queues: at once if they are cached, else when they are.

        It gets None for a topic without a route, or if no name server answers.
        """
        known = self._known.get(topic)
        if known is not None:
            queues, since = known
            if now - since > FRESH_FOR:
                self._ask(topic, now)
            waiter(queues)
            return
        waiting = self._waiting.get(topic)
        if waiting is not None:
            waiting.append(waiter)
        else:
            self._ask(topic, now, waiter)

    def _ask(self, topic: str, now: float, *waiters: Waiter) -> None:
        if topic in self._waiting:
            return
        self._waiting[topic] = list(waiters)

        def found(route: TopicRoute | None) -> None:
            queues = self._take(topic, route, now)
            for waiter in self._waiting.pop(topic, ()):
                waiter(queues)

        self.fetch(topic, found)

    def _take(self, topic: str, route: TopicRoute | None, now: float) -> Queues | None:
        self._known.pop(topic, None)
        if route is None:
            return None
        try:
            queues = frozenset(route.subscribe_queues(topic))
        except BodyMalformed:
            return None
        if len(self._known) < MAX_ROUTES:
            self._known[topic] = queues, now
        return queues
