"""Producers online: the connections of every producer group.

Transaction checks and replies to requests find their way to a client through here. Pure rules over
a table in memory with `now` as an argument. Belongs to the broker's loop.
"""

from collections.abc import Callable

from pocketmq.broker.core.peer import ClientPeer
from pocketmq.broker.members.consumers import ClientInfo, OnlineConsumer

MAX_MEMBERSHIPS = 65_536
"""Producer groups of all connections together, besides one that each connection may have."""
_OWN_SHARE = 16
_TRIES = 3
_WRITABLE_BELOW = 64 * 1024
"""Unsent bytes from which a connection counts as busy, as Netty's default has it."""


class OnlineProducers:
    """Connections by producer group."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[ClientPeer, OnlineConsumer]] = {}
        self._groups_of: dict[ClientPeer, dict[str, None]] = {}
        self._by_client: dict[str, ClientPeer] = {}
        self._memberships = 0
        self._turn = 0

    def register(
        self,
        group: str,
        connection: ClientPeer,
        client: ClientInfo,
        now: float,
        *,
        replaces: bool = True,
    ) -> None:
        """Record one producer group in a heartbeat.

        A connection stays the client it first was, as in Java. Unless it `replaces` another open
        connection with its client id, that one keeps receiving what is for this id. A new group is
        ignored if there are `MAX_MEMBERSHIPS` and the connection has some already.
        """
        member = self.groups.get(group, {}).get(connection)
        if member is not None:
            member.last_seen = now
            return
        if self._memberships >= MAX_MEMBERSHIPS and self.count_of(connection) >= _OWN_SHARE:
            return
        self.groups.setdefault(group, {})[connection] = OnlineConsumer(client, now)
        self._memberships += 1
        self._groups_of.setdefault(connection, {})[group] = None
        if replaces:
            self._by_client[client.client_id] = connection

    def count_of(self, connection: ClientPeer) -> int:
        """Return how many groups a connection is a member of."""
        return len(self._groups_of.get(connection, ()))

    def unregister(self, group: str, connection: ClientPeer) -> None:
        """Remove a connection from a group."""
        if connection in self.groups.get(group, ()):
            self._forget(group, connection)

    def closed(self, connection: ClientPeer) -> None:
        """Remove a closed connection from all its groups."""
        for group in tuple(self._groups_of.get(connection, ())):
            self._forget(group, connection)

    def expire(self, now: float, timeout: float) -> list[ClientPeer]:
        """Remove connections without a heartbeat for too long; return those to be closed."""
        silent: dict[ClientPeer, None] = {}
        for group, members in tuple(self.groups.items()):
            for connection, member in tuple(members.items()):
                if now - member.last_seen > timeout:
                    self._forget(group, connection)
                    silent[connection] = None
        return list(silent)

    def find(self, client_id: str) -> ClientPeer | None:
        """Return the connection on which a client last registered as a producer."""
        return self._by_client.get(client_id)

    def available(
        self, group: str, allowed: Callable[[ClientPeer], bool] | None = None
    ) -> ClientPeer | None:
        """Return a connection of a group that takes data, each time the next one.

        Three are tried, of those that are allowed. If all of them are busy, returns the last open
        one; None if all are closed.
        """
        connections = tuple(self.groups.get(group, ()))
        if allowed is not None:
            connections = tuple(filter(allowed, connections))
        if not connections:
            return None
        self._turn += 1
        last_open: ClientPeer | None = None
        for step in range(_TRIES):
            connection = connections[(self._turn + step) % len(connections)]
            if connection.closed:
                continue
            if connection.unsent < _WRITABLE_BELOW:
                return connection
            last_open = connection
        return last_open

    def _forget(self, group: str, connection: ClientPeer) -> None:
        members = self.groups[group]
        member = members.pop(connection)
        self._memberships -= 1
        if not members:
            del self.groups[group]
        names = self._groups_of[connection]
        del names[group]
        if names:
            return  # still in other groups, so replies still find it
        del self._groups_of[connection]
        client_id = member.client.client_id
        if self._by_client.get(client_id) is connection:
            del self._by_client[client_id]
