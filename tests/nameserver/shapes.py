"""Short ways to say what brokers say."""

from pocketmq.model import DataVersion, TopicConfig
from pocketmq.nameserver.registrations import Announcement, RegisteredTopics
from pocketmq.nameserver.route_registry import RouteRegistry
from pocketmq.protocol.requests.topics import TopicTableBody


def broker(
    name: str = "b",
    broker_id: int = 0,
    address: str = "",
    *,
    cluster: str = "c",
    acting: bool | None = False,
    zone: str | None = None,
    silence: float = 120.0,
    filter_servers: tuple[str, ...] | None = (),
) -> Announcement:
    address = address or f"{name}-{broker_id}:1"
    return Announcement(
        cluster=cluster,
        name=name,
        broker_id=broker_id,
        address=address,
        ha_address=f"ha-of-{address}",
        zone=zone,
        acting_master=acting,
        silence=silence,
        filter_servers=filter_servers,
    )


def config(name: str, queues: int = 4, perm: int = 6) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)


def topics(
    *names: str | TopicConfig, version: int = 1, state: int = 0, digest: bytes = b""
) -> RegisteredTopics:
    """Topics by name, each with four queues and permission 6, or as configured."""
    configs = [each if isinstance(each, TopicConfig) else config(each) for each in names]
    table = TopicTableBody(
        data_version=DataVersion(counter=version, timestamp=version, state_version=state),
        topic_config_table={each.topic_name: each for each in configs},
    )
    return RegisteredTopics(table=table, digest=digest)


def addresses(table: RouteRegistry, name: str = "b") -> dict[int, str]:
    known = table.brokers.get(name)
    return {} if known is None else dict(known.addresses)


def permissions(table: RouteRegistry, topic: str) -> dict[str, int]:
    route = table.routes.get(topic)
    return {} if route is None else {each.broker_name: each.perm for each in route.queue_datas}


def queue_counts(table: RouteRegistry, topic: str) -> dict[str, int]:
    route = table.routes.get(topic)
    if route is None:
        return {}
    return {each.broker_name: each.read_queue_nums for each in route.queue_datas}
