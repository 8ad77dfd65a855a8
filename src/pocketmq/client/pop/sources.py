"""Where a POP consumer takes messages from, and what was popped before a caller came to take it.

A source is one topic on one broker; sources are asked in turn. A pop that a broker holds cannot be
called back: what it brings after its receiver has gone is kept for the next one, as long as it
stays hidden from other consumers. Uses routes; asks no broker. Belongs to one event loop.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.routes import KnownRoute, RouteBook
from pocketmq.errors import RouteNotFound
from pocketmq.model import Subscription
from pocketmq.protocol import ReceivedMessage

SourceKey: TypeAlias = tuple[str, str, str, str]
"""What makes sources different: topic, broker, and the filter with its kind."""


_ENOUGH = 0.75
"""The part of its invisible time that a message must have left to be delivered without renewal."""


class Source(NamedTuple):
    """One topic on one broker."""

    name: str
    """The topic as the application calls it."""
    subscription: Subscription
    broker: str

    @property
    def key(self) -> SourceKey:
        """The source without what changes when the same is subscribed again."""
        wanted = self.subscription
        return wanted.topic, self.broker, wanted.expression_type, wanted.sub_string


class Sources:
    """The sources of a consumer; each comes first in its turn."""

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
            some = sources_of(name, subscription, known)
            found += some
            if not some:
                missing = RouteNotFound(subscription.topic)
        if not found and missing is not None:
            raise missing
        if found:
            first = self._turn % len(found)
            self._turn = first + 1
            found = found[first:] + found[:first]
        return found


def sources_of(name: str, subscription: Subscription, known: KnownRoute) -> list[Source]:
    """Return the sources of a topic by its route."""
    brokers = sorted({queue.broker_name for queue in known.subscribe_queues})
    return [Source(name, subscription, broker) for broker in brokers]


class Kept(NamedTuple):
    """Messages of one pop."""

    source: Source
    messages: list[ReceivedMessage]
    hidden_until: float
    """By the loop's clock."""
    invisible: float
    """The seconds for which the pop asked."""

    def lasts(self, invisible: float, now: float) -> bool:
        """Return whether the messages are hidden for about as long as a receiver asks for."""
        return self.invisible == invisible and self.hidden_until - now >= _ENOUGH * invisible


class KeptMessages:
    """Kept messages of one consumer, in order of arrival."""

    def __init__(self) -> None:
        self.waiting: deque[Kept] = deque()
        """Those that were not taken."""

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, kept: Kept) -> None:
        """Keep messages for the next receiver."""
        if kept.messages:
            self.waiting.append(kept)

    def take(self, names: Collection[str], most: int, now: float) -> Kept | None:
        """Remove and return the first messages of these topics that are still hidden."""
        for _ in range(len(self.waiting)):
            kept = self.waiting.popleft()
            if kept.hidden_until <= now:
                continue  # the broker redelivers them
            if kept.source.name not in names:
                self.waiting.append(kept)
                continue
            if len(kept.messages) > most:
                self.waiting.appendleft(kept._replace(messages=kept.messages[most:]))
            return kept._replace(messages=kept.messages[:most])
        return None

    def take_unsubscribed(self, subscribed: list[tuple[str, Subscription]]) -> list[Kept]:
        """Remove and return what no subscription asks for any more."""
        filters = {(name, *_filter(subscription)) for name, subscription in subscribed}
        others = [
            kept
            for kept in self.waiting
            if (kept.source.name, *_filter(kept.source.subscription)) not in filters
        ]
        for kept in others:
            self.waiting.remove(kept)
        return others

    def take_all(self, now: float) -> list[Kept]:
        """Remove everything and return what is still hidden."""
        everything, self.waiting = self.waiting, deque()
        return [kept for kept in everything if kept.hidden_until > now]


class BrokerClocks:
    """Derives from a broker's clock when a held pop was answered, though the loop read it later."""

    def __init__(self) -> None:
        self._ahead: dict[str, float] = {}  # ours minus the broker's: the least that was seen

    def popped_at(self, broker: str, popped: PopResult, asked: float, now: float) -> float:
        """Return the loop's time of a pop: not before it was asked for, rather early than late."""
        at = popped.popped_at_ms / 1000
        ahead = self._ahead[broker] = min(now - at, self._ahead.get(broker, now - at))
        return max(asked, at + ahead)


def _filter(subscription: Subscription) -> tuple[str, str]:
    return subscription.expression_type, subscription.sub_string
