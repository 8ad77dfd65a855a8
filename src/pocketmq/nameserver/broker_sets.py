"""Brokers by name and cluster: which addresses a name has, and which brokers to notify of changes.

Independent of topics and heartbeats.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pocketmq.model import MASTER_ID, BrokerData
from pocketmq.nameserver.registrations import Announcement, NotifyMinBrokerId


class BrokerSet:
    """The brokers that share a name: a master (id 0) and slaves. `BrokerSets` alone changes it."""

    __slots__ = ("acting_master", "addresses", "cluster", "clusters", "name", "zone")

    def __init__(self, name: str, cluster: str) -> None:
        self.name = name
        self.cluster = cluster  # the first it named, as in Java
        self.clusters = {cluster}
        self.zone: str | None = None
        self.acting_master = False
        self.addresses: dict[int, str] = {}  # never empty while the set is registered

    def data(self) -> BrokerData:
        """Return it as routes carry it."""
        return BrokerData(
            cluster=self.cluster,
            broker_name=self.name,
            broker_addrs=dict(sorted(self.addresses.items())),
            zone_name=self.zone,
            enable_acting_master=self.acting_master,
        )

    def id_of(self, address: str) -> int | None:
        """Return the id an address has here."""
        return next((each for each, known in self.addresses.items() if known == address), None)

    @property
    def lowest(self) -> int:
        """The lowest id: the master's, or that of the slave that stands in for it."""
        return min(self.addresses)

    @property
    def lacks_master(self) -> bool:
        """Whether only slaves are left."""
        return self.lowest > MASTER_ID

    def notification(self, *, offline: str | None, ha_address: str | None) -> NotifyMinBrokerId:
        """Return the notification: to the others when one came, to all left when one went."""
        everyone = offline is not None or len(self.addresses) == 1
        return NotifyMinBrokerId(
            receivers=tuple(
                address
                for each, address in self.addresses.items()
                if everyone or each != self.lowest
            ),
            broker_id=self.lowest,
            address=self.addresses[self.lowest],
            offline_address=offline,
            ha_address=ha_address,
        )


class Entered(NamedTuple):
    """What changed when a broker registered."""

    brokers: BrokerSet
    first: bool  # no broker had its id before
    lowest: bool  # its id is lower than all that were there
    changed: bool  # an answer could show the difference


class BrokerSets:
    """Every broker name with its addresses, and every cluster with its broker names."""

    def __init__(self) -> None:
        self._sets: dict[str, BrokerSet] = {}
        self._clusters: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def get(self, name: str) -> BrokerSet | None:
        """Return the brokers of a name."""
        return self._sets.get(name)

    def all(self) -> Iterable[BrokerSet]:
        """Return all, in the order of their first registration."""
        return self._sets.values()

    def clusters(self) -> dict[str, list[str]]:
        """Return every cluster's broker names."""
        return {cluster: list(names) for cluster, names in self._clusters.items()}

    def in_cluster(self, cluster: str) -> list[str]:
        """Return a cluster's broker names, none for an unknown cluster."""
        return list(self._clusters.get(cluster, ()))

    def enter(self, broker: Announcement) -> Entered:
        """Set the address of a broker's id."""
        brokers = self._sets.get(broker.name)
        if brokers is None:
            brokers = self._sets[broker.name] = BrokerSet(broker.name, broker.cluster)
        before = _visible(brokers)
        lowest_before = min(brokers.addresses, default=MASTER_ID)
        self._clusters.setdefault(broker.cluster, {})[broker.name] = None
        brokers.clusters.add(broker.cluster)
        brokers.acting_master = bool(broker.acting_master)
        brokers.zone = broker.zone
        # A slave that became master moves: one address has one id.
        old_id = brokers.id_of(broker.address)
        if old_id is not None and old_id != broker.broker_id:
            del brokers.addresses[old_id]
        first = broker.broker_id not in brokers.addresses
        brokers.addresses[broker.broker_id] = broker.address
        return Entered(
            brokers,
            first=first,
            lowest=broker.broker_id < lowest_before,
            changed=before != _visible(brokers),
        )

    def leave(self, brokers: BrokerSet, address: str) -> None:
        """Remove an address; with the last one the name, with the last name the cluster."""
        own_id = brokers.id_of(address)
        if own_id is not None:
            del brokers.addresses[own_id]
        if brokers.addresses:
            return
        del self._sets[brokers.name]
        for cluster in brokers.clusters:
            names = self._clusters[cluster]
            del names[brokers.name]
            if not names:
                del self._clusters[cluster]


def _visible(brokers: BrokerSet) -> tuple[object, ...]:
    clusters = len(brokers.clusters)
    return (clusters, brokers.zone, brokers.acting_master, dict(brokers.addresses))
