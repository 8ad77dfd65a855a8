"""Messages that were popped before a caller was there to take them.

A pop that a broker holds cannot be called back: what it brings after its receiver has gone is kept
for the next one. Knows how long it stays hidden from others; asks no broker.
"""

from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.pop.sources import Source
from pocketmq.model.groups import Subscription
from pocketmq.protocol.received import ReceivedMessage

_ENOUGH = 0.75
"""The part of its invisible time that a message must have left to be delivered without renewal."""


class Kept(NamedTuple):
    """Messages of one pop."""

    source: Source
    messages: list[ReceivedMessage]
    hidden_until: float
    """By the loop's clock."""
    invisible: float
    """The seconds for which the pop asked."""

    def lasts(self, invisible: float, now: float) -> bool:
        """Tell whether the messages are hidden for about as long as a receiver asks for."""
        return self.invisible == invisible and self.hidden_until - now >= _ENOUGH * invisible


class KeptMessages:
    """All that one consumer keeps, in order of arrival. Belongs to one event loop."""

    def __init__(self) -> None:
        self._kept: deque[Kept] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, kept: Kept) -> None:
        """Keep messages for the next receiver."""
        if kept.messages:
            self._kept.append(kept)

    def take(self, names: Collection[str], most: int, now: float) -> Kept | None:
        """Remove and return the first messages of these topics that are still hidden."""
        for _ in range(len(self._kept)):
            kept = self._kept.popleft()
            if kept.hidden_until <= now:
                continue  # the broker gives them to others
            if kept.source.name not in names:
                self._kept.append(kept)
                continue
            if len(kept.messages) > most:
                self._kept.appendleft(kept._replace(messages=kept.messages[most:]))
            return kept._replace(messages=kept.messages[:most])
        return None

    def take_unsubscribed(self, subscribed: list[tuple[str, Subscription]]) -> list[Kept]:
        """Remove and return what no subscription asks for any more."""
        filters = {(name, *_filter(subscription)) for name, subscription in subscribed}
        others = [
            kept
            for kept in self._kept
            if (kept.source.name, *_filter(kept.source.subscription)) not in filters
        ]
        for kept in others:
            self._kept.remove(kept)
        return others

    def take_all(self, now: float) -> list[Kept]:
        """Remove everything and return what is still hidden."""
        everything, self._kept = self._kept, deque()
        return [kept for kept in everything if kept.hidden_until > now]


class BrokerClocks:
    """Tells from a broker's clock when a held pop was answered, though the loop read it later."""

    def __init__(self) -> None:
        self._ahead: dict[str, float] = {}  # ours minus the broker's: the least that was seen

    def popped_at(self, broker: str, popped: PopResult, asked: float, now: float) -> float:
        """Return the loop's time of a pop: not before it was asked for, rather early than late."""
        at = popped.popped_at_ms / 1000
        ahead = self._ahead[broker] = min(now - at, self._ahead.get(broker, now - at))
        return max(asked, at + ahead)


def _filter(subscription: Subscription) -> tuple[str, str]:
    return subscription.expression_type, subscription.sub_string
