"""Live brokers: heartbeats, connections, and who owns a name, an id or an address.

Java replaces whatever was registered before: the last peer that claims a name gets its clients.
Here a broker that is alive keeps what it registered. Decides only; `route_registry` carries it out.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from pocketmq.errors import NoPermission, ResponseCode, ServerError
from pocketmq.nameserver.broker_sets import BrokerSet
from pocketmq.nameserver.registrations import Announcement, BrokerKey, LiveBroker

OWNER_SILENCE = 70.0
"""Seconds without a heartbeat after which a broker on an open connection can be replaced.

Brokers register every 60 s or more often. A machine that lost its power leaves its connection open.
"""


class LiveBrokers:
    """Every broker that has registered and has neither left nor been lost."""

    def __init__(self) -> None:
        self._live: dict[BrokerKey, LiveBroker] = {}
        self._by_connection: dict[Hashable, set[BrokerKey]] = {}

    def get(self, key: BrokerKey) -> LiveBroker | None:
        """Return a live broker."""
        return self._live.get(key)

    def put(self, key: BrokerKey, live: LiveBroker) -> None:
        """Add or replace a broker; one that registers on another connection moves to it."""
        self.remove(key)
        self._live[key] = live
        self._by_connection.setdefault(live.connection, set()).add(key)

    def remove(self, key: BrokerKey) -> LiveBroker | None:
        """Remove a broker and return it."""
        live = self._live.pop(key, None)
        if live is not None:
            keys = self._by_connection[live.connection]
            keys.discard(key)
            if not keys:
                del self._by_connection[live.connection]
        return live

    def on(self, connection: Hashable) -> list[BrokerKey]:
        """Return the brokers that registered last on this connection."""
        return sorted(self._by_connection.get(connection, ()))

    def forget_digests(self, name: str) -> None:
        """Note that the table no longer holds just what the brokers of a name registered."""
        for live in self._live.values():
            if live.name == name:
                live.digests.clear()

    def silent(self, now: float) -> list[BrokerKey]:
        """Return the brokers whose heartbeat deadline has passed."""
        return [key for key, live in self._live.items() if live.deadline <= now]

    def next_deadline(self) -> float | None:
        """Return the earliest heartbeat deadline; None without brokers."""
        return min((live.deadline for live in self._live.values()), default=None)


class RegisteringPeer(NamedTuple):
    """A peer that registers or unregisters a broker: its connection, and when."""

    connection: Hashable
    now: float


def host_of(connection: Hashable) -> str:
    """Return the host a connection comes from, as the socket or the load balancer reports it."""
    address: str = getattr(connection, "remote_address", "")
    return address.rpartition(":")[0].strip("[]")


def is_same_peer(owner: LiveBroker, connection: Hashable) -> bool:
    """Return whether a connection is an owner's own, or comes from the owner's host."""
    return owner.connection == connection or host_of(owner.connection) == host_of(connection)


def owner_of(live: LiveBrokers, clusters: Iterable[str], address: str) -> LiveBroker | None:
    """Return the live broker of an address that is registered in one of these clusters."""
    found = (live.get(BrokerKey(cluster, address)) for cluster in clusters)
    return next((each for each in found if each is not None), None)


def check_registration(
    live: LiveBrokers,
    known: BrokerSet | None,
    broker: Announcement,
    state_version: int,
    asker: RegisteringPeer,
) -> None:
    """Raise `ServerError` if a registration would take something from a live owner.

    A name and id can be taken over on the owner's own connection, by a master of a later term
    (`state_version`, which a controller counts from 1) and by a replica that becomes master; an
    address from the owner's own host. A master of an earlier term takes nothing and is not refused.
    """
    clusters = {broker.cluster} | (set() if known is None else known.clusters)
    holder = None if known is None else known.addresses.get(broker.broker_id)
    if holder is not None and holder != broker.address:
        owner = owner_of(live, clusters, holder)
        own = live.get(broker.key)
        if (
            _is_kept_from(owner, asker)
            and not _is_of_another_term(state_version, owner)
            and not _is_replica(own, broker, asker)
        ):
            raise _refused(
                f"broker {broker.name} with id {broker.broker_id} is registered by {holder}, which "
                "is alive; stop that broker first, or give this one another brokerName"
            )
    owner = owner_of(live, clusters, broker.address)
    if _is_kept_from(owner, asker) and not _same_host(owner, asker):
        raise _refused(
            f"broker address {broker.address} is registered from another host, and that broker is "
            "alive; stop it first, or set brokerIP1 to an address of this broker's own"
        )


def check_departure(
    live: LiveBrokers,
    clusters: Iterable[str],
    address: str,
    asker: RegisteringPeer,
) -> None:
    """Raise `ServerError` if a broker is unregistered by a peer that is not the broker."""
    owner = owner_of(live, clusters, address)
    if _is_kept_from(owner, asker) and not _same_host(owner, asker):
        raise _refused(
            f"broker {address} is alive; "
            "only itself or a super user's signed request unregisters it"
        )


def _is_kept_from(owner: LiveBroker | None, asker: RegisteringPeer) -> bool:
    """Return whether an owner is alive and is not the peer that registers."""
    if owner is None or owner.connection == asker.connection:
        return False
    return asker.now < owner.heard + OWNER_SILENCE


def _same_host(owner: LiveBroker | None, asker: RegisteringPeer) -> bool:
    return owner is not None and is_same_peer(owner, asker.connection)


def _is_of_another_term(state_version: int, owner: LiveBroker | None) -> bool:
    """Return whether a controller appointed both, and not for the same term."""
    term = 0 if owner is None else owner.version.state_version
    return state_version < term or 0 < term < state_version


def _is_replica(own: LiveBroker | None, broker: Announcement, asker: RegisteringPeer) -> bool:
    """Return whether a peer has been a broker of this name, with another id, for a while.

    DLedger's new leader may register before the old one has released the id.
    """
    if own is None or own.name != broker.name or own.connection != asker.connection:
        return False
    return asker.now >= own.since + OWNER_SILENCE


def _refused(reason: str) -> ServerError:
    return NoPermission(ResponseCode.NO_PERMISSION, reason)
