"""A route as one client gets it: acting masters, brokers of its own zone, and the encoded body.

Views are pure functions over routes. Bodies are encoded once for all clients, in two forms: the
standard one (quoted keys, ASCII) for clients from 4.9.4 on and all that request it, and fastjson's
own with bare integer keys, which older clients were built with.
"""

import msgspec

from pocketmq.model import MASTER_ID, BrokerData, Permission, TopicRoute
from pocketmq.protocol import encode_body

MEMBER_GROUP_TOPIC_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Topics by whose routes brokers find their own replicas, so they show the true ids."""


def with_acting_masters(topic: str, route: TopicRoute) -> TopicRoute:
    """Show the slave with the lowest id as the master where there is none (5.x, if configured).

    Only for brokers that agree to it, and only while the topic cannot be written to there.
    """
    if topic.startswith(MEMBER_GROUP_TOPIC_PREFIX):
        return route
    permissions = {data.broker_name: data.perm for data in route.queue_datas}
    brokers = [_with_acting_master(each, permissions) for each in route.broker_datas]
    return msgspec.structs.replace(route, broker_datas=brokers)


def _with_acting_master(broker: BrokerData, permissions: dict[str, int]) -> BrokerData:
    addresses = broker.broker_addrs
    perm = permissions.get(broker.broker_name, int(Permission.WRITE))
    if MASTER_ID in addresses or not broker.enable_acting_master or perm & Permission.WRITE:
        return broker
    lowest = min(addresses)
    others = {each: address for each, address in addresses.items() if each != lowest}
    return msgspec.structs.replace(broker, broker_addrs={MASTER_ID: addresses[lowest], **others})


def in_zone(zone: str, route: TopicRoute) -> TopicRoute:
    """Leave out brokers of other zones, except those without a master: better far than none."""
    kept: list[BrokerData] = []
    removed: list[BrokerData] = []
    for broker in route.broker_datas:
        near = (broker.zone_name or "").lower() == zone.lower()
        (kept if near or MASTER_ID not in broker.broker_addrs else removed).append(broker)
    if not removed:
        return route
    names = {broker.broker_name for broker in removed}
    addresses = {address for broker in removed for address in broker.broker_addrs.values()}
    return msgspec.structs.replace(
        route,
        broker_datas=kept,
        queue_datas=[data for data in route.queue_datas if data.broker_name not in names],
        filter_server_table={
            address: servers
            for address, servers in route.filter_server_table.items()
            if address not in addresses
        },
    )


class RouteBodies:
    """Encoded bodies by topic. Routes are compared by identity: they are immutable."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def get(self, topic: str, route: TopicRoute, order: str | None, *, standard: bool) -> bytes:
        """Return a route's body; `order` is the topic's order configuration."""
        kept = self._kept.get(topic)
        if kept is None or kept.route is not route or kept.order != order:
            kept = self._kept[topic] = _Kept(route, order)
        body = kept.standard if standard else kept.legacy
        if body is None:
            body = encode_route(route, order, standard=standard)
            if standard:
                kept.standard = body
            else:
                kept.legacy = body
        return body

    def forget(self, topic: str) -> None:
        """Drop a topic that has no route any more."""
        self._kept.pop(topic, None)


class _Kept:
    __slots__ = ("legacy", "order", "route", "standard")

    def __init__(self, route: TopicRoute, order: str | None) -> None:
        self.route = route
        self.order = order
        self.standard: bytes | None = None
        self.legacy: bytes | None = None


def encode_route(route: TopicRoute, order: str | None, *, standard: bool) -> bytes:
    """Write a route in one of its forms."""
    if order is not None:
        route = msgspec.structs.replace(route, order_topic_conf=order)
    return encode_body(route, ascii_only=standard, bare_integer_keys=not standard)
