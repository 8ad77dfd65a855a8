"""Topics: names, routes, settings, offsets of queues, consumers."""

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, Missing, ServerPlace
from pocketmq.admin.logical_queues import logical_offsets, mapped_configs
from pocketmq.admin.name_servers import ORDER_NAMESPACE, NameServers
from pocketmq.admin.wire import AdminWire
from pocketmq.client.questions.asking import route_of
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import MASTER_ID, BrokerData, MessageQueue, TopicConfig, TopicRoute, sort_queues
from pocketmq.model.names import AUTO_CREATE_TOPIC, check_topic
from pocketmq.protocol.requests import nameserver, reading
from pocketmq.protocol.requests import topics as rows
from pocketmq.protocol.requests.stats import OffsetRange


class TopicStatus(msgspec.Struct, frozen=True):
    """The offsets of each queue of a topic; queues of brokers in `missing` are not listed."""

    queues: dict[MessageQueue, OffsetRange]
    put_tps: float
    missing: tuple[Missing, ...]


class ConsumedTopic(msgspec.Struct, frozen=True):
    """A topic, and the groups that consume it, of the brokers that answered."""

    topic: str
    cluster: str
    groups: tuple[str, ...]
    missing: tuple[Missing, ...] = ()


class PermissionChange(msgspec.Struct, frozen=True):
    """The permission of a topic on one broker, before and after a change."""

    before: int
    after: int
    config: TopicConfig


class Topics:
    """Queries and changes all brokers of a topic at once."""

    def __init__(self, wire: AdminWire, brokers: Brokers, name_servers: NameServers) -> None:
        self._wire = wire
        self._brokers = brokers
        self._name_servers = name_servers

    async def names(self, cluster: str | None = None) -> list[str]:
        """Return the topics of a name server, of one cluster or of all, sorted."""
        if cluster is None:
            names = await self._wire.look_up(nameserver.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        else:
            header = nameserver.GET_TOPICS_BY_CLUSTER.header(cluster=cluster)
            names = await self._wire.look_up(nameserver.GET_TOPICS_BY_CLUSTER, header)
        return sorted(names.topic_list)

    async def route(self, topic: str) -> TopicRoute:
        """Return a topic's route, fresh from a name server; raises `RouteNotFound`."""
        return await self._wire.run(route_of(topic))

    async def places(self, topic: str) -> list[ServerPlace]:
        """Return one process for each broker of a topic: the master, else a slave.

        Raises `RouteNotFound`.
        """
        return places_of(await self.route(topic))

    async def clusters(self, topic: str) -> list[str]:
        """Return the clusters of a topic. Raises `RouteNotFound`."""
        return sorted({data.cluster for data in (await self.route(topic)).broker_datas})

    async def create(
        self, config: TopicConfig, cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create a topic on brokers, or change it; attributes are changes such as `+k: v`, `-k`.

        The order of an ordered topic goes to name servers, too. Raises `NameInvalid`, `Absent`.
        """
        check_topic(config.topic_name)
        places = await self._brokers.targets(cluster, address)
        done = await self._wire.each(places, lambda place: self._create(place, config))
        if config.order:
            await self._set_order(
                config, [each.place.broker for each in done], whole=address is None
            )
        return done

    async def create_many(
        self, configs: list[TopicConfig], cluster: str | None = None, address: str | None = None
    ) -> Gathered[None]:
        """Create or change many topics with one request to each broker (5.x)."""
        for config in configs:
            check_topic(config.topic_name)
        body = rows.TopicConfigs(topic_config_list=configs)
        places, header = (
            await self._brokers.targets(cluster, address),
            rows.UPDATE_AND_CREATE_TOPIC_LIST.header(),
        )
        return await self._wire.tell_each(places, rows.UPDATE_AND_CREATE_TOPIC_LIST, header, body)

    async def delete(self, topic: str, cluster: str) -> Gathered[None]:
        """Delete a topic and its messages: on all masters of a cluster, then on name servers.

        Name servers keep it until every broker has deleted it. Raises `Absent`.
        """
        header = rows.DELETE_TOPIC_IN_BROKER.header(topic=topic)
        places = await self._brokers.masters(cluster)
        done = await self._wire.tell_each(places, rows.DELETE_TOPIC_IN_BROKER, header)
        if done.complete:
            forget = nameserver.DELETE_TOPIC_IN_NAMESRV.header(topic=topic)
            for address in self._name_servers.addresses:
                await self._wire.call(address, nameserver.DELETE_TOPIC_IN_NAMESRV, forget)
            (await self._name_servers.delete(ORDER_NAMESPACE, topic)).all()
        return done

    async def set_permission(
        self,
        topic: str,
        permission: int,
        cluster: str | None = None,
        address: str | None = None,
    ) -> Gathered[PermissionChange]:
        """Change a topic's permission on brokers that have it: 2 write, 4 read, 6 both.

        Raises `RouteNotFound`, `Absent`, `InvalidInput`.
        """
        if permission not in (0, 2, 4, 6):
            raise InvalidInput(
                f"invalid permission {permission}; it must be 2 (write), 4 (read) or 6 (both)"
            )
        route = await self.route(topic)
        queues = {data.broker_name: data for data in route.queue_datas}
        targets = await self._brokers.targets(cluster, address)

        async def change(place: ServerPlace) -> PermissionChange:
            data = queues[place.broker]
            config = TopicConfig(
                topic_name=topic,
                read_queue_nums=data.read_queue_nums,
                write_queue_nums=data.write_queue_nums,
                topic_sys_flag=data.topic_sys_flag,
                perm=permission,
            )
            await self._create(place, config)
            return PermissionChange(data.perm, permission, config)

        return await self._wire.each((t for t in targets if t.broker in queues), change)

    async def status(self, topic: str) -> TopicStatus:
        """Return the offsets of each queue; of a static topic those of logical queues, too.

        Raises `RouteNotFound`, or the error if no broker answers.
        """
        header = rows.GET_TOPIC_STATS_INFO.header(topic=topic)
        route = await self.route(topic)
        places = places_of(route)
        gathered = (await self._wire.read_each(places, rows.GET_TOPIC_STATS_INFO, header)).some()
        found = {
            queue: held for stats in gathered.values() for queue, held in stats.offset_table.items()
        }
        if route.topic_queue_mapping_by_broker:
            found |= logical_offsets(topic, await mapped_configs(self._wire, topic, places), found)
        tps = sum(stats.topic_put_tps for stats in gathered.values())
        ordered = {queue: found[queue] for queue in sort_queues(set(found))}
        return TopicStatus(ordered, tps, gathered.missing)

    async def configs(
        self, cluster: str | None = None, address: str | None = None
    ) -> Gathered[dict[str, TopicConfig]]:
        """Return the settings of every topic, of each master."""
        places = await self._brokers.targets(cluster, address)
        found = await self._wire.read_each(places, rows.GET_ALL_TOPIC_CONFIG)
        return found.map(lambda table: table.topic_config_table)

    async def system_names(self, address: str) -> list[str]:
        """Return the system topics of a broker."""
        names = await self._wire.read(address, rows.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, None)
        return sorted(names.topic_list)

    async def index(
        self,
        topic: str,
        address: str,
        queue_id: int,
        first: int,
        count: int = 10,
        *,
        group: str | None = None,
    ) -> reading.ConsumeQueuePage:
        """Return entries of a queue's index, and how a group's filter treats them."""
        header = reading.QUERY_CONSUME_QUEUE.header(
            topic=topic, queue_id=queue_id, index=first, count=count, consumer_group=group
        )
        return await self._wire.read(address, reading.QUERY_CONSUME_QUEUE, header)

    async def consumers(self, topic: str) -> Gathered[list[str]]:
        """Return the groups that consume a topic, for each of its brokers."""
        return await self.consumers_at(topic, await self.places(topic))

    async def with_consumers(self, topics: list[str]) -> list[ConsumedTopic]:
        """Return the clusters and consumers of many topics, without those that have no route."""

        async def one(topic: str) -> ConsumedTopic:
            places = await self.places(topic)
            found = await self.consumers_at(topic, places)
            groups = sorted({group for names in found.values() for group in names})
            cluster = places[0].cluster if places else ""
            return ConsumedTopic(topic, cluster, tuple(groups), found.missing)

        outcomes = await self._wire.together(topics, one)
        return [each for each in outcomes if not isinstance(each, MQError)]

    async def consumers_at(self, topic: str, places: list[ServerPlace]) -> Gathered[list[str]]:
        """Return the groups that consume a topic, for some brokers."""
        header = rows.QUERY_TOPIC_CONSUME_BY_WHO.header(topic=topic)
        found = await self._wire.read_each(places, rows.QUERY_TOPIC_CONSUME_BY_WHO, header)
        return found.map(lambda names: sorted(names.group_list))

    async def _create(self, place: ServerPlace, config: TopicConfig) -> None:
        attributes = ",".join(
            f"{key}={value}" if key.startswith("+") else key
            for key, value in config.attributes.items()
        )
        header = rows.UPDATE_AND_CREATE_TOPIC.header(
            topic=config.topic_name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type.value,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
            attributes=attributes or None,
        )
        await self._wire.call(place.address, rows.UPDATE_AND_CREATE_TOPIC, header)

    async def _set_order(self, config: TopicConfig, brokers: list[str], *, whole: bool) -> None:
        """Store the order of a topic's queues on name servers; other brokers' part stays."""
        order = {broker: f"{broker}:{config.write_queue_nums}" for broker in brokers}
        if not whole:
            known = await self._name_servers.get(ORDER_NAMESPACE, config.topic_name) or ""
            parts = [part for part in known.split(";") if part]
            order = {part.partition(":")[0]: part for part in parts} | order
        value = ";".join(order.values())
        (await self._name_servers.put(ORDER_NAMESPACE, config.topic_name, value)).all()


def places_of(route: TopicRoute) -> list[ServerPlace]:
    """Return one process for each broker of a route: the master, else the first slave."""
    return [
        ServerPlace(data.cluster, data.broker_name, *_chosen(data))
        for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
        if data.broker_addrs
    ]


def _chosen(data: BrokerData) -> tuple[int, str]:
    chosen = MASTER_ID if MASTER_ID in data.broker_addrs else min(data.broker_addrs)
    return chosen, data.broker_addrs[chosen]
