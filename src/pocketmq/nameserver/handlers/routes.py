"""Clients ask where a topic is; tools ask for the whole cluster."""

from collections.abc import Hashable

from pocketmq.errors import ResponseCode, server_error
from pocketmq.model.route import TopicRoute
from pocketmq.nameserver.route_answers import encode_route, in_zone, with_acting_masters
from pocketmq.nameserver.state import SUCCESS, Handler, NameServerState
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.peers import VersionGate
from pocketmq.protocol.requests.nameserver import ClusterInfo, GetRouteRequest

_ZONE_MODE = "__ZONE_MODE"
_ZONE = "__ZONE_NAME"


def route(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Give a topic's brokers and queues."""
    header = request.header(GetRouteRequest)
    config = state.config
    if config.need_wait_for_service:
        waited = state.clock() - state.started
        if waited < config.wait_seconds_for_service:
            raise server_error(ResponseCode.SYSTEM_ERROR, "name server not ready")
    found = state.route(header.topic)
    if found is None:
        state.route_bodies.forget(header.topic)
        raise server_error(ResponseCode.TOPIC_NOT_EXIST, _unknown(header.topic))
    standard = request.version >= VersionGate.STANDARD_JSON or bool(
        header.accept_standard_json_only
    )
    order = state.order_of(header.topic)
    seen = _as_seen(state, request, header.topic, found)
    if seen is found:
        body = state.route_bodies.get(header.topic, found, order, standard=standard)
    else:
        body = encode_route(seen, order, standard=standard)
    return request.reply(SUCCESS, body=body)


def _unknown(topic: str) -> str:
    return f"No topic route info in name server for the topic: {topic}"


def _as_seen(state: NameServerState, request: Command, topic: str, found: TopicRoute) -> TopicRoute:
    """Give the route as this client is to see it: mostly the route itself."""
    seen = found
    if state.config.support_acting_master:
        seen = with_acting_masters(topic, seen)
    zone = request.ext.get(_ZONE, "")
    if zone.strip() and request.ext.get(_ZONE_MODE, "").lower() == "true":
        seen = in_zone(zone, seen)
    return seen


def cluster_info(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Give all brokers and clusters; always with bare keys, as in Java."""
    return request.reply(SUCCESS, body=state.body("cluster", lambda: _cluster_body(state)))


def _cluster_body(state: NameServerState) -> bytes:
    brokers = state.table.brokers
    info = ClusterInfo(
        broker_addr_table={each.name: each.data() for each in brokers.all()},
        cluster_addr_table=brokers.clusters(),
    )
    return encode_body(info, bare_integer_keys=True)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
    RequestCode.GET_BROKER_CLUSTER_INFO: cluster_info,
}
