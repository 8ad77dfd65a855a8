"""Where the topics of a producer may be written: their queues, and whose turn it is.

Asks for a topic's route when it is first needed, or for the template's if brokers are to make the
topic (Java: tryToFindTopicPublishInfo). Belongs to one event loop.
"""

import asyncio
from collections.abc import Collection

from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.errors import (
    NameServersUnreachable,
    QueueNotSelected,
    RequestTimedOut,
    RouteNotFound,
)
from pocketmq.model.queue import MessageQueue


class Publication:
    """One topic as a producer sees it."""

    __slots__ = ("brokers", "queues", "robin", "topic")

    def __init__(self, topic: str, robin: RoundRobin) -> None:
        self.topic = topic
        self.robin = robin
        self.queues: tuple[MessageQueue, ...] = ()
        """In Java's order; empty as long as the topic cannot be written to."""
        self.brokers: frozenset[str] = frozenset()

    def take(self, queues: tuple[MessageQueue, ...]) -> None:
        """Take over the queues of a new route."""
        self.queues = queues
        self.brokers = frozenset(queue.broker_name for queue in queues)


class Publishing:
    """The topics of one producer, by their names on the wire."""

    def __init__(self, session: Session, options: ProducerOptions) -> None:
        self._session = session
        self._options = options
        self._topics: dict[str, Publication] = {}

    def topics(self) -> Collection[str]:
        """List the topics that were sent to."""
        return self._topics.keys()

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over a topic's new queues; whose turn it is stays."""
        publication = self._topics.get(known.topic)
        if publication is not None:
            publication.take(known.publish_queues)

    def ready(self, topic: str) -> Publication | None:
        """Give a topic whose queues are known."""
        publication = self._topics.get(topic)
        return publication if publication is not None and publication.queues else None

    async def find(self, topic: str, timeout: float) -> Publication:  # noqa: ASYNC109 - for each question
        """Give a topic with its queues, asking the name server if they are not known.

        Raises `RouteNotFound`, `QueueNotSelected` if it has no queue that may be written to,
        `NameServersUnreachable`, or `BodyMalformed` for a route that makes no sense. Nothing was
        sent then.
        """
        known = await self._route(topic, asyncio.get_running_loop().time() + timeout)
        publication = self._topics.get(topic)
        if publication is None:
            robin = RoundRobin.begun_by(self._session.random.randrange)
            publication = self._topics[topic] = Publication(topic, robin)
        publication.take(known.publish_queues)
        if not publication.queues:
            raise QueueNotSelected(
                topic, "no broker with a master lets it be written to; see its permissions"
            )
        return publication

    async def _route(self, topic: str, deadline: float) -> KnownRoute:
        now = asyncio.get_running_loop().time
        routes = self._session.routes
        try:
            known = await routes.get(topic, max(0.0, deadline - now()))
            if known.publish_queues:
                return known
            return await routes.refresh(topic, max(0.0, deadline - now()))
        except RouteNotFound:
            pass
        except RequestTimedOut as error:  # the outcome of the question; nothing was sent
            raise NameServersUnreachable(routes.name_servers.addresses) from error
        template, queue_nums = self._options.template_topic, self._options.new_topic_queues
        try:
            left = max(0.0, deadline - now())
            return await routes.assume(topic, template, queue_nums, left)
        except RouteNotFound as error:
            raise RouteNotFound(topic) from error
        except RequestTimedOut as error:
            raise NameServersUnreachable(routes.name_servers.addresses) from error
