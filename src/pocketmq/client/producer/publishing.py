"""Where the topics of a producer can be written: their queues, and which one is next.

Asks for a topic's route when it is first needed, or for the template's if brokers are to create the
topic (Java: tryToFindTopicPublishInfo). Changed by one event loop; other threads may read.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

import msgspec

from pocketmq import errors
from pocketmq.balance.producer.adaptive import Fleet
from pocketmq.balance.producer.broker_record import TopicBrokers
from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.balance.profile import V4
from pocketmq.client.addresses import UNKNOWN_VERSION
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.model import MessageQueue, property_names
from pocketmq.protocol.peers import VersionGate

_BATCH_IDS = int(VersionGate.TOPIC_QUEUE_MAPPING)  # brokers from this version on are 5.x
_VERSION_WAIT = 1.0
"""Seconds that what depends on the brokers' versions waits for them."""


class Publication:
    """One topic as a producer sees it."""

    __slots__ = ("brokers", "by_broker", "queues", "robin", "topic", "versions_asked")

    def __init__(self, topic: str, robin: RoundRobin) -> None:
        self.topic = topic
        self.robin = robin
        self.queues: tuple[MessageQueue, ...] = ()
        """In Java's order; empty as long as the topic cannot be written to."""
        self.brokers: frozenset[str] = frozenset()
        self.by_broker: TopicBrokers | None = None
        """The same queues for an adaptive producer; None for others."""
        self.versions_asked = False
        """Whether its brokers were asked for their versions."""

    def take(self, queues: tuple[MessageQueue, ...]) -> None:
        """Take over the queues of a new route."""
        self.queues = queues
        before, self.brokers = self.brokers, frozenset(queue.broker_name for queue in queues)
        self.versions_asked = self.versions_asked and self.brokers <= before


class Publishing:
    """The topics of one producer, by their names on the wire; `fleet` if it is adaptive."""

    def __init__(
        self, session: Session, options: ProducerOptions, fleet: Fleet | None = None
    ) -> None:
        self._session = session
        self._fleet = fleet
        self.on_lost: Callable[[Publication, frozenset[str]], None] | None = None
        """Called when brokers have left the route of an adaptive producer's topic."""
        self._options = options
        self._is_4x = session.options.profile.line == V4.line
        self._topics: dict[str, Publication] = {}

    def topics(self) -> Collection[str]:
        """Return the topics that were sent to."""
        return self._topics.keys()

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over a topic's new queues; the position in the turn stays."""
        publication = self._topics.get(known.topic)
        if publication is not None:
            self._take(publication, known.publish_queues)

    def ready(self, topic: str) -> Publication | None:
        """Return a topic whose queues are known. Any thread may call it."""
        publication = self._topics.get(topic)
        return publication if publication is not None and publication.queues else None

    async def find(self, topic: str, timeout: float) -> Publication:  # noqa: ASYNC109 - for each question
        """Return a topic with its queues, asking the name server if they are not known.

        Raises `RouteNotFound`, `QueueNotSelected` if it has no queue that can be written to,
        `NameServersUnreachable`, or `BodyMalformed` for an invalid route. Nothing was sent then.
        """
        known = await self._route(topic, asyncio.get_running_loop().time() + timeout)
        publication = self._topics.get(topic)
        if publication is None:
            robin = RoundRobin.begun_by(self._session.random.randrange)
            publication = self._topics[topic] = Publication(topic, robin)
        self._take(publication, known.publish_queues)
        if not publication.queues:
            raise errors.QueueNotSelected(
                topic, "no broker with a master allows writes to it; check the topic's permissions"
            )
        return publication

    def _take(self, publication: Publication, queues: tuple[MessageQueue, ...]) -> None:
        before = publication.brokers
        publication.take(queues)
        if self._fleet is not None:
            now = asyncio.get_running_loop().time()
            publication.by_broker = self._fleet.topic(queues, now, publication.by_broker)
            self._fleet.keep_only({name for each in self._topics.values() for name in each.brokers})
            if self.on_lost is not None and before - publication.brokers:
                self.on_lost(publication, before - publication.brokers)

    async def _route(self, topic: str, deadline: float) -> KnownRoute:
        now = asyncio.get_running_loop().time
        routes = self._session.routes
        try:
            known = await routes.get(topic, max(0.0, deadline - now()))
            if known.publish_queues:
                return known
            # Cached before the topic could be written to: its permissions may have changed.
            return await routes.refresh(topic, max(0.0, deadline - now()))
        except errors.RouteNotFound:
            pass
        except errors.RequestTimedOut as error:  # of the question: nothing was sent
            raise errors.NameServersUnreachable(routes.name_servers.addresses) from error
        template, queue_nums = self._options.template_topic, self._options.new_topic_queues
        try:
            left = max(0.0, deadline - now())
            return await routes.assume(topic, template, queue_nums, left)
        except errors.RouteNotFound as error:
            raise errors.RouteNotFound(topic) from error
        except errors.RequestTimedOut as error:
            raise errors.NameServersUnreachable(routes.name_servers.addresses) from error

    async def adapted(
        self,
        outgoing: Outgoing,
        publication: Publication,
        timeout: float,  # noqa: ASYNC109 - for the versions
    ) -> Outgoing:
        """Return what is `for_5x` as `adapt` does, once the versions of the brokers are known.

        It waits for them once, and not for long.
        """
        if not publication.versions_asked:
            await self._ask_versions(publication, min(timeout, _VERSION_WAIT))
        return self.adapt(outgoing, publication)

    def can_adapt(self, publication: Publication) -> bool:
        """Return whether there is nothing for `adapted` to wait for."""
        return publication.versions_asked or self.knows_batch_ids(publication)

    async def _ask_versions(self, publication: Publication, timeout: float) -> None:  # noqa: ASYNC109
        session = self._session
        masters, version = session.addresses.masters, session.addresses.version
        unknown = [
            masters[broker]
            for broker in publication.brokers
            if broker in masters and version(masters[broker]) == UNKNOWN_VERSION
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*(session.heartbeats.beat_to(each) for each in unknown))
        publication.versions_asked = True

    def adapt(self, outgoing: Outgoing, publication: Publication) -> Outgoing:
        """Return what is `for_5x` as the brokers of its topic understand it.

        Raises `InvalidInput` for a delay that 4.x brokers would ignore.
        """
        if not self._may_be_old(publication, in_doubt=outgoing.batch_id is not None):
            return outgoing
        return for_4x(outgoing)

    def knows_batch_ids(self, publication: Publication) -> bool:
        """Return whether all brokers of a topic take an id for a batch as a whole."""
        return not self._may_be_old(publication, in_doubt=True)

    def _may_be_old(self, publication: Publication, *, in_doubt: bool) -> bool:
        """Return whether a topic is on 4.x brokers, or, for a batch, may be (`in_doubt`).

        Brokers report their version in the response to the first heartbeat. 5.x brokers do without
        the id of a batch; 4.x ones would give it to all of its messages.
        """
        if self._is_4x:
            return True
        version_of = self._session.addresses.version_of
        for broker in publication.brokers:
            version = version_of(broker)
            if version < _BATCH_IDS and (in_doubt or version != UNKNOWN_VERSION):
                return True
        return False


def for_4x(message: Outgoing) -> Outgoing:
    """Return a batch without an id for the whole of it; anything else `for_5x` is refused.

    4.x brokers add the properties of a batch to those of each message in it, and so would give all
    of them this one id. Raises `InvalidInput` for a message that they would deliver at once.
    """
    if message.batch_id is None:
        raise errors.InvalidInput(
            f"topic {message.topic!r} is on a 4.x broker, which does not support delay or "
            "deliver_at and would deliver the message immediately; use delay_level"
        )
    parts = message.properties.split("\2")
    kept = [each for each in parts if not each.startswith(f"{property_names.UNIQUE_KEY}\1")]
    return msgspec.structs.replace(message, properties="\2".join(kept))
