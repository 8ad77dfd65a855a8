"""Where a POP consumer takes messages from: each topic on each of its brokers, in turn.

Knows routes; asks no broker.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from pocketmq.client.routes import RouteBook
from pocketmq.errors import RouteNotFound
from pocketmq.model.groups import Subscription

Place: TypeAlias = tuple[str, str, str, str]
"""What makes a source another one: topic, broker, and the filter with its kind."""


class Source(NamedTuple):
    """One topic on one broker."""

    name: str
    """The topic as the application calls it."""
    subscription: Subscription
    broker: str

    @property
    def place(self) -> Place:
        """The source without what changes when the same is subscribed again."""
        wanted = self.subscription
        return wanted.topic, self.broker, wanted.expression_type, wanted.sub_string


class Sources:
    """Gives the sources so that each comes first in its turn."""

    def __init__(self, routes: RouteBook, patience: float) -> None:
        self._routes = routes
        self._patience = patience  # for questions to the name server
        self._turn = 0

    async def in_turn(self, subscriptions: Iterable[tuple[str, Subscription]]) -> list[Source]:
        """List all sources, beginning with the next in turn; topics without a route are left out.

        Raises `RouteNotFound` if none has one, and what `RouteBook.get` does.
        """
        found: list[Source] = []
        missing: RouteNotFound | None = None
        for name, subscription in subscriptions:
            try:
                known = await self._routes.get(subscription.topic, self._patience)
            except RouteNotFound as error:
                missing = error
                continue
            brokers = sorted({queue.broker_name for queue in known.subscribe_queues})
            found += [Source(name, subscription, broker) for broker in brokers]
            if not brokers:
                missing = RouteNotFound(subscription.topic)
        if not found and missing is not None:
            raise missing
        if found:
            first = self._turn % len(found)
            self._turn = first + 1
            found = found[first:] + found[:first]
        return found
