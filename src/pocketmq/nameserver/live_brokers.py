"""Who was heard of, when and on which connection.

Brokers are found by key, by connection and by how long they have been silent. Knows no topics.
"""

from collections.abc import Hashable

from pocketmq.nameserver.registrations import BrokerKey, LiveBroker


class LiveBrokers:
    """Every broker that has registered and has neither left nor been lost."""

    def __init__(self) -> None:
        self._live: dict[BrokerKey, LiveBroker] = {}
        self._by_connection: dict[Hashable, set[BrokerKey]] = {}

    def get(self, key: BrokerKey) -> LiveBroker | None:
        """Give what is known of a broker."""
        return self._live.get(key)

    def put(self, key: BrokerKey, live: LiveBroker) -> None:
        """Set what is known; a broker that comes back on another connection moves to it."""
        self.remove(key)
        self._live[key] = live
        self._by_connection.setdefault(live.connection, set()).add(key)

    def remove(self, key: BrokerKey) -> LiveBroker | None:
        """Forget a broker; give what was known."""
        live = self._live.pop(key, None)
        if live is not None:
            keys = self._by_connection[live.connection]
            keys.discard(key)
            if not keys:
                del self._by_connection[live.connection]
        return live

    def on(self, connection: Hashable) -> list[BrokerKey]:
        """Give the brokers that registered last on this connection."""
        return sorted(self._by_connection.get(connection, ()))

    def forget_digests(self, name: str) -> None:
        """Note that the table no longer holds just what the brokers of a name registered."""
        for live in self._live.values():
            if live.name == name:
                live.digests.clear()

    def silent(self, now: float) -> list[BrokerKey]:
        """Give those whose time is over."""
        return [key for key, live in self._live.items() if live.deadline <= now]

    def next_deadline(self) -> float | None:
        """Tell when the first of them will have been silent for too long."""
        return min((live.deadline for live in self._live.values()), default=None)
