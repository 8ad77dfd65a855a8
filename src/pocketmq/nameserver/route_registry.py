"""The name server's tables: registered brokers, their topics, and their last heartbeats.

The rules are those of RocketMQ 5.x (RouteInfoManager). Time and connections are arguments; nothing
is opened, sent or encoded here. What must be sent is returned as a value.

Three things differ from Java, which leaves stale entries behind: a refused registration changes
nothing, a lost connection removes all brokers that registered on it (Java: one of them), and an
address that registers under another broker name is removed from its old one.
"""

from collections.abc import Hashable

from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import MASTER_ID, DataVersion, Permission, QueueData
from pocketmq.nameserver import live_brokers, registrations
from pocketmq.nameserver.broker_sets import BrokerSet, BrokerSets, Entered
from pocketmq.nameserver.departures import Departures
from pocketmq.nameserver.topic_routes import Routes

_WRITE = int(Permission.WRITE)
_READ_WRITE = int(Permission.READ | Permission.WRITE)
_NO_VERSION = DataVersion()
_DIGESTS_KEPT = 256
"""Digests kept of a broker's registrations; one that splits its topics sends several."""


class RouteRegistry:
    """Brokers and topics of a name server. Belongs to one thread."""

    def __init__(self, limits: registrations.TableLimits | None = None) -> None:
        self.limits = limits or registrations.TableLimits()
        self.brokers = BrokerSets()
        self.routes = Routes(self.brokers)
        self.departures = Departures()
        self._live = live_brokers.LiveBrokers()

    # Registration

    def holds(self, broker: registrations.Announcement, digest: bytes) -> bool:
        """Return whether storing a registration's topics again would change nothing.

        Brokers repeat their registration every 30 s; one that is stored need not be parsed again.
        """
        live = self._live.get(broker.key)
        known = self.brokers.get(broker.name)
        return (
            live is not None
            and live.name == broker.name
            and known is not None
            and known.addresses.get(broker.broker_id) == broker.address
            and digest in live.digests
        )

    def register(
        self,
        broker: registrations.Announcement,
        topics: registrations.RegisteredTopics | None,
        connection: Hashable,
        now: float,
        *,
        delete_absent: bool = False,
        take_over: bool = True,
    ) -> registrations.Registered:
        """Register a broker; without topics, it keeps those it has (see `holds`).

        With `delete_absent` the broker's topics that are not among these are removed. Without
        `take_over` a live owner of the name or address keeps it (see `live_brokers`). Raises
        `ServerError` for what a name server refuses; nothing has changed then.
        """
        self._check(broker, topics)
        version = self._version(broker.key) if topics is None else topics.table.data_version
        if not take_over:
            known = self.brokers.get(broker.name)
            asker = live_brokers.RegisteringPeer(connection, now)
            live_brokers.check_registration(self._live, known, broker, version.state_version, asker)
        self._move(broker)
        if self._outdated(broker, version):
            self._unregister(broker.key, broker.name)  # as in Java it gets no error
            return registrations.Registered()
        entered = self.brokers.enter(broker)
        if entered.changed:
            self.routes.touch_broker(broker.name)
        digests = self._known_digests(broker.key, version)
        if topics is not None and _speaks_for_its_name(broker, entered.brokers):
            self._take(broker, topics, entered, delete_absent=delete_absent)
            if topics.digest and len(digests) < _DIGESTS_KEPT:
                digests.add(topics.digest)
        before = self._live.get(broker.key)
        same = before is not None and before.connection == connection
        live = registrations.LiveBroker(
            name=broker.name,
            connection=connection,
            since=before.since if before is not None and same else now,
            heard=now,
            silence=broker.silence,
            version=version,
            ha_address=broker.ha_address,
            digests=digests,
        )
        self._live.put(broker.key, live)
        if broker.filter_servers is not None:
            self.routes.set_filter_servers(broker.key, broker.name, broker.filter_servers)
        return self._registered(broker, entered)

    def _check(
        self, broker: registrations.Announcement, topics: registrations.RegisteredTopics | None
    ) -> None:
        registrations.check_announcement(broker, self.limits)
        known = self.brokers.get(broker.name)
        if known is None and len(self.brokers) >= self.limits.brokers:
            raise registrations.refused(f"more than {self.limits.brokers} broker names")
        unknown = known is None or broker.broker_id not in known.addresses
        if known is not None and unknown and len(known.addresses) >= self.limits.replicas:
            raise registrations.refused(
                f"more than {self.limits.replicas} brokers named {broker.name}"
            )
        if topics is None:
            return
        configs = topics.table.topic_config_table
        if unknown and len(configs) == 1:
            # Brokers of 5.x announce a new topic alone, with the version of their whole table. A
            # name server that has just started and accepted it from an unregistered broker would
            # report to that broker that it has the whole table (322), and never get the rest.
            raise server_error(ResponseCode.SYSTEM_ERROR, "register broker failed")
        registrations.check_topics(topics.table, self.limits)
        queues = self.routes.queues
        count = len(queues) + sum(each.topic_name not in queues for each in configs.values())
        mapped = self.routes.unmapped(topics.table.topic_queue_mapping_info_map or ())
        if max(count, mapped) > self.limits.topics:
            raise registrations.refused(f"more than {self.limits.topics} topics")

    def _version(self, key: registrations.BrokerKey) -> DataVersion:
        live = self._live.get(key)
        return _NO_VERSION if live is None else live.version

    def rival(self, broker: registrations.Announcement) -> str | None:
        """Return the address of another broker that has this name and id, and is alive."""
        known = self.brokers.get(broker.name)
        holder = None if known is None else known.addresses.get(broker.broker_id)
        return None if self._rival(broker) is None else holder

    def _rival(self, broker: registrations.Announcement) -> registrations.LiveBroker | None:
        known = self.brokers.get(broker.name)
        holder = None if known is None else known.addresses.get(broker.broker_id)
        if known is None or holder is None or holder == broker.address:
            return None
        return live_brokers.owner_of(self._live, {broker.cluster, *known.clusters}, holder)

    def _outdated(self, broker: registrations.Announcement, version: DataVersion) -> bool:
        """Return whether another address has this id with a later term as master."""
        rival = self._rival(broker)
        return rival is not None and rival.version.state_version > version.state_version

    def _move(self, broker: registrations.Announcement) -> None:
        """Remove an address from any other name or cluster it was registered under."""
        live = self._live.get(broker.key)
        if live is not None and live.name != broker.name:
            self._unregister(broker.key, live.name)
        known = self.brokers.get(broker.name)
        for cluster in known.clusters if known is not None else ():
            if cluster != broker.cluster:
                self._live.remove(registrations.BrokerKey(cluster, broker.address))

    def _known_digests(self, key: registrations.BrokerKey, version: DataVersion) -> set[bytes]:
        live = self._live.get(key)
        unchanged = live is not None and live.version == version != _NO_VERSION
        return live.digests if live is not None and unchanged else set()

    def _take(
        self,
        broker: registrations.Announcement,
        topics: registrations.RegisteredTopics,
        entered: Entered,
        *,
        delete_absent: bool,
    ) -> None:
        """Store topics. A table of the same version as before only adds what is missing here."""
        table, routes = topics.table, self.routes
        self.departures.come_back(broker.name)
        mappings = table.topic_queue_mapping_info_map or {}
        if delete_absent and not mappings:
            present = {config.topic_name for config in table.topic_config_table.values()}
            held = routes.queues.of_broker(broker.name)
            for topic in [each for each in held if each not in present]:
                self.remove_topic(topic, [broker.name])
        # Without a version everything counts as changed; Java puts the time in its place.
        versionless = table.data_version == _NO_VERSION
        changed = entered.first or versionless or self.changed(broker.key, table.data_version)
        stands_in = broker.broker_id != MASTER_ID and entered.brokers.acting_master
        for config in table.topic_config_table.values():
            if changed or not routes.queues.holds(config.topic_name, broker.name):
                data = QueueData(
                    broker_name=broker.name,
                    read_queue_nums=config.read_queue_nums,
                    write_queue_nums=config.write_queue_nums,
                    perm=_without_write(config.perm) if stands_in else config.perm,
                    topic_sys_flag=config.topic_sys_flag,
                )
                routes.put(config.topic_name, data)
        if changed and mappings:
            routes.put_mappings(broker.name, mappings)

    def _registered(
        self, broker: registrations.Announcement, entered: Entered
    ) -> registrations.Registered:
        known = entered.brokers
        notify = None
        if entered.lowest:
            notify = known.notification(offline=None, ha_address=broker.ha_address)
        master = known.addresses.get(MASTER_ID)
        if broker.broker_id == MASTER_ID or master is None:
            return registrations.Registered(first=entered.first, notify=notify)
        live = self._live.get(registrations.BrokerKey(broker.cluster, master))
        return registrations.Registered(
            first=entered.first,
            master_address=None if live is None else master,
            master_ha_address=None if live is None else live.ha_address,
            notify=notify,
        )

    # Heartbeats

    def heard(self, key: registrations.BrokerKey, connection: Hashable, now: float) -> None:
        """Note a heartbeat; ignored for unknown brokers, and if it comes from another host."""
        live = self._live.get(key)
        if live is not None and live_brokers.is_same_peer(live, connection):
            live.heard = now

    def data_version(self, key: registrations.BrokerKey) -> DataVersion | None:
        """Return the version of a broker's topics as it registered them last."""
        live = self._live.get(key)
        return None if live is None else live.version

    def changed(self, key: registrations.BrokerKey, version: DataVersion | None) -> bool:
        """Return whether a broker's topics are of another version than it registered last."""
        known = self.data_version(key)
        return known is None or known != version

    # Departure

    def check_departure(
        self, key: registrations.BrokerKey, name: str, connection: Hashable, now: float
    ) -> None:
        """Raise `ServerError` if the peer on a connection may not unregister this broker."""
        known = self.brokers.get(name)
        clusters = {key.cluster} | (set() if known is None else known.clusters)
        live_brokers.check_departure(
            self._live, clusters, key.address, live_brokers.RegisteringPeer(connection, now)
        )

    def unregister(
        self, key: registrations.BrokerKey, name: str, broker_id: int
    ) -> registrations.Departed:
        """Remove a broker that leaves."""
        return self._unregister(key, name, broker_id)

    def connection_lost(self, connection: Hashable) -> list[registrations.Departed]:
        """Remove every broker that registered last on this connection."""
        return self._lose(self._live.on(connection))

    def expire(self, now: float) -> list[registrations.Departed]:
        """Remove brokers whose heartbeat is overdue; the caller closes their connections."""
        return self._lose(self._live.silent(now))

    def next_deadline(self) -> float | None:
        """Return when `expire` is to be called next."""
        return self._live.next_deadline()

    def _lose(self, keys: list[registrations.BrokerKey]) -> list[registrations.Departed]:
        found = [(key, self._live.get(key)) for key in keys]
        return [self._unregister(key, live.name) for key, live in found if live is not None]

    def _unregister(
        self, key: registrations.BrokerKey, name: str, broker_id: int | None = None
    ) -> registrations.Departed:
        live = self._live.remove(key)
        self.routes.set_filter_servers(key, name, ())
        return registrations.Departed(
            key=key,
            name=name,
            connection=None if live is None else live.connection,
            notify=self._leave(key, name, broker_id, live),
        )

    def _leave(
        self,
        key: registrations.BrokerKey,
        name: str,
        broker_id: int | None,
        live: registrations.LiveBroker | None,
    ) -> registrations.NotifyMinBrokerId | None:
        known = self.brokers.get(name)
        if known is None:
            return None
        leaving = known.id_of(key.address) if broker_id is None else broker_id
        if leaving is None:
            return None  # another has taken its place meanwhile
        was_lowest = leaving == known.lowest
        self.brokers.leave(known, key.address)
        if not known.addresses:
            if live is not None:
                held = self.routes.queues.held_by(name)
                self.departures.leave(name, known.clusters, held, live.heard)
            self.routes.remove_broker(name)
            return None
        self.routes.touch_broker(name)
        if not known.acting_master:
            return None
        if known.lacks_master:
            self.routes.change_permissions(name, _without_write)
        if not was_lowest:
            return None
        return known.notification(offline=key.address, ha_address=None)

    # Single topics and permissions

    def add_topic(self, topic: str, datas: list[QueueData]) -> None:
        """Add a topic on registered brokers; do nothing if any of them is not registered.

        Raises `ServerError` for what a name server refuses.
        """
        if not datas or any(self.brokers.get(data.broker_name) is None for data in datas):
            return
        queues = self.routes.queues
        if topic not in queues and len(queues) >= self.limits.topics:
            raise registrations.refused(f"more than {self.limits.topics} topics")
        for data in datas:
            registrations.check_queue_data(topic, data, self.limits)
        for data in datas:
            if self.routes.put(topic, data):
                self._live.forget_digests(data.broker_name)

    def remove_topic(self, topic: str, brokers: list[str] | None = None) -> None:
        """Remove a topic from the routes, everywhere or on these brokers."""
        names = list(self.routes.queues.of_topic(topic)) if brokers is None else brokers
        if brokers is None:
            self.routes.forget_mappings(topic)
        for name in self.routes.remove(topic, names):
            self._live.forget_digests(name)

    def wipe_write_permission(self, broker: str) -> int:
        """Make all topics of a broker read-only; return how many they are."""
        return self.routes.change_permissions(broker, _without_write)

    def add_write_permission(self, broker: str) -> int:
        """Make all topics of a broker readable and writable (and nothing else, as in Java)."""
        return self.routes.change_permissions(broker, lambda _: _READ_WRITE)


def _without_write(perm: int) -> int:
    return perm & ~_WRITE


def _speaks_for_its_name(broker: registrations.Announcement, brokers: BrokerSet) -> bool:
    """Return whether a broker's topics count: a master's, or those of an acting master."""
    if broker.broker_id == MASTER_ID:
        return True
    return broker.acting_master is not None and broker.broker_id == brokers.lowest
