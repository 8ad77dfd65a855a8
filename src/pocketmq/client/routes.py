"""The routes of topics: cached, and refreshed in the background.

Concurrent callers that need one topic share one request. A cached route stays in use while no name
server answers, and when the topic is deleted, as in Java. Independent of producers and consumers:
the caller passes the topics in use, and listeners are notified of changes.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from copy import copy

import msgspec

from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.name_servers import NameServerCalls
from pocketmq.client.questions.asking import Ask, route_of, run
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, NameServersUnreachable, RequestTimedOut
from pocketmq.model import MessageQueue, TopicRoute
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.route import DEFAULT_TOPIC_QUEUE_NUMS
from pocketmq.protocol import Command

logger = logging.getLogger("pocketmq.client")


class KnownRoute(msgspec.Struct, frozen=True):
    """A topic's route with its queues, computed once."""

    topic: str
    route: TopicRoute
    publish_queues: tuple[MessageQueue, ...]
    """Those that producers choose from, in Java's order."""
    subscribe_queues: frozenset[MessageQueue]
    """Those that consumers share."""
    assumed: bool = False
    """The topic does not exist yet: this is how brokers will create it for its first message."""


Listener = Callable[[KnownRoute], None]


class RouteBook:
    """The routes of one client. Belongs to one event loop."""

    def __init__(
        self,
        name_servers: NameServerCalls,
        addresses: BrokerAddresses,
        tasks: Tasks,
        timeout: float,
    ) -> None:
        self.name_servers = name_servers
        self.addresses = addresses
        self._tasks = tasks
        self._timeout = timeout
        self._routes: dict[str, KnownRoute] = {}
        self._asking: dict[str, asyncio.Task[KnownRoute | MQError]] = {}
        self._wanted: set[str] = set()  # requested since the last poll
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call a function with every route that is new or changed, on the loop."""
        self._listeners.append(listener)

    def cached(self, topic: str) -> KnownRoute | None:
        """Return the cached route, without a request."""
        return self._routes.get(topic)

    async def get(self, topic: str, timeout: float | None = None) -> KnownRoute:  # noqa: ASYNC109 - the question outlives it
        """Return the cached route, or fetch it; raises what `refresh` does."""
        self._wanted.add(topic)
        return self._routes.get(topic) or await self.refresh(topic, timeout)

    async def refresh(self, topic: str, timeout: float | None = None) -> KnownRoute:  # noqa: ASYNC109 - the question outlives it
        """Fetch a route from the name server, or join a request for it that is in flight.

        Raises `RouteNotFound` if there is no such topic, `NameServersUnreachable`,
        `RequestTimedOut`, or `BodyMalformed` for an invalid route.
        """
        task = self._ask(topic)
        # A caller that times out or is cancelled must not cancel the request for the others.
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise RequestTimedOut(self.name_servers.chosen, f"route of {topic}", timeout or 0.0)
        if task.cancelled():
            raise NameServersUnreachable(self.name_servers.addresses)
        outcome = task.result()
        if isinstance(outcome, MQError):
            raise copy(
                outcome
            ) from outcome.__cause__  # one for each waiter: each raises it with its own traceback
        return outcome

    def refresh_soon(self, topic: str) -> None:
        """Fetch a route without waiting, after an error with `refresh_route`."""
        self._ask(topic)

    async def assume(
        self,
        topic: str,
        template: str = AUTO_CREATE_TOPIC,
        queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS,
        timeout: float | None = None,  # noqa: ASYNC109 - the question outlives it
    ) -> KnownRoute:
        """Return the route a topic will have when brokers create it for its first message.

        It is cached as the topic's route until the name server has a real one. Raises what
        `refresh` does, about the template.
        """
        known = await self.refresh(template, timeout)
        self._wanted.add(topic)
        return self._take(topic, known.route.for_new_topic(queue_nums), assumed=True)

    async def refresh_all(self, topics: Iterable[str]) -> None:
        """Fetch the routes of topics; stop at once if no name server answers, since none would.

        Raises `NameServersUnreachable`. Topics without a route are skipped.
        """
        for topic in topics:
            try:
                await self.refresh(topic)
            except NameServersUnreachable:
                raise
            except MQError as error:
                logger.debug("cannot fetch the route of topic %s: %s", topic, error)

    async def poll(self, in_use: Collection[str]) -> None:
        """Refresh all routes in use; drop those not used or requested since the last poll.

        Without a name server everything stays as it is.
        """
        wanted = set(in_use) | self._wanted
        self._wanted = set()
        try:
            await self.refresh_all(sorted(wanted))
        except NameServersUnreachable:
            self._wanted |= wanted
            return
        for topic in self._routes.keys() - wanted - self._wanted:
            del self._routes[topic]

    def drop_offline_brokers(self) -> list[str]:
        """Drop and return addresses that no route has any more."""
        return self.addresses.keep_only(known.route for known in self._routes.values())

    def _ask(self, topic: str) -> asyncio.Task[KnownRoute | MQError]:
        task = self._asking.get(topic)
        if task is None:
            task = self._tasks.spawn(self._fetch(topic), f"route of {topic}")
            self._asking[topic] = task
            task.add_done_callback(lambda _: self._asking.pop(topic, None))
        return task

    async def _fetch(self, topic: str) -> KnownRoute | MQError:
        """Return the route or the error, for all waiters: a task that raises would be logged."""

        async def carry(asked: Ask) -> Command:
            limit = self._timeout
            return await self.name_servers.ask(
                asked.code, asked.header, timeout=limit, accept=asked.accept
            )

        try:
            return self._take(topic, await run(route_of(topic), carry))
        except MQError as error:
            return error

    def _take(self, topic: str, route: TopicRoute, *, assumed: bool = False) -> KnownRoute:
        """Cache a route if it has changed; raises `BodyMalformed` and keeps the old one instead."""
        old = self._routes.get(topic)
        if old is not None and not route.differs_from(old.route):
            if old.assumed and not assumed:
                self._routes[topic] = old = msgspec.structs.replace(old, assumed=False)
            return old
        leaders = route.leaders(topic)
        known = KnownRoute(
            topic,
            route,
            tuple(route.publish_queues(topic)),
            frozenset(route.subscribe_queues(topic)),
            assumed,
        )
        self._routes[topic] = known
        self.addresses.take(route.broker_datas)
        if leaders or (old is not None and old.route.topic_queue_mapping_by_broker):
            self.addresses.lead(topic, leaders)
        for listener in self._listeners:
            try:
                listener(known)
            except Exception:
                logger.exception("route listener failed: topic=%s", topic)
        return known
