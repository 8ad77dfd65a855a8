"""Requests about routes and topics: of clients, tools, and brokers that add a single topic."""

from collections.abc import Callable, Hashable, Iterable, Mapping

from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import QueueData, TopicRoute
from pocketmq.nameserver.route_answers import encode_route, in_zone, with_acting_masters
from pocketmq.nameserver.state import SUCCESS, Handler, NameServerState
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.peers import VersionGate
from pocketmq.protocol.requests import nameserver, topics

_ZONE_MODE = "__ZONE_MODE"
_ZONE = "__ZONE_NAME"
_UNIT = 1
_UNIT_SUBSCRIBED = 2


def route(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return a topic's brokers and queues."""
    header = request.header(nameserver.GetRouteRequest)
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
    """Return the route as this client sees it: mostly the route itself."""
    seen = found
    if state.config.support_acting_master:
        seen = with_acting_masters(topic, seen)
    zone = request.ext.get(_ZONE, "")
    if zone.strip() and request.ext.get(_ZONE_MODE, "").lower() == "true":
        seen = in_zone(zone, seen)
    return seen


def cluster_info(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return all brokers and clusters; always with bare keys, as in Java."""
    return request.reply(SUCCESS, body=state.body("cluster", lambda: _cluster_body(state)))


def _cluster_body(state: NameServerState) -> bytes:
    brokers = state.table.brokers
    info = nameserver.ClusterInfo(
        broker_addr_table={each.name: each.data() for each in brokers.all()},
        cluster_addr_table=brokers.clusters(),
    )
    return encode_body(info, bare_integer_keys=True)


def all_topics(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return every topic."""
    _check_enabled(allowed=state.config.enable_all_topic_list)
    body = state.body("topics", lambda: _names(state.table.routes.queues.topics()))
    return request.reply(SUCCESS, body=body)


def topics_of_cluster(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return the topics that some broker of a cluster holds; none for an unknown cluster."""
    _check_enabled(allowed=state.config.enable_topic_list)
    cluster = request.header(nameserver.GetTopicsByClusterRequest).cluster
    queues = state.table.routes.queues
    names = dict.fromkeys(
        topic
        for broker in state.table.brokers.in_cluster(cluster)
        for topic in queues.of_broker(broker)
    )
    return request.reply(SUCCESS, body=_names(names))


def system_topics(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Return the names of clusters and brokers, which are topics, too, and a broker's address."""
    brokers = state.table.brokers
    names = dict.fromkeys(
        name for cluster, members in brokers.clusters().items() for name in (cluster, *members)
    )
    first = next(iter(brokers.all()), None)
    address = None if first is None else first.addresses[first.lowest]
    body = encode_body(topics.TopicNames(topic_list=list(names), broker_addr=address))
    return request.reply(SUCCESS, body=body)


def _by_flag(wanted: Callable[[int], bool]) -> Handler:
    """Make the handler for topics whose system flag is of a kind."""

    def handler(state: NameServerState, _: Hashable, request: Command) -> Command:
        _check_enabled(allowed=state.config.enable_topic_list)
        queues = state.table.routes.queues
        names = [topic for topic in queues.topics() if wanted(_flag(queues.of_topic(topic)))]
        return request.reply(SUCCESS, body=_names(names))

    return handler


def _flag(datas: Mapping[str, QueueData]) -> int:
    """Return a topic's flag; brokers should agree, so the first one counts, as in Java."""
    return next(iter(datas.values())).topic_sys_flag


def _names(names: Iterable[str]) -> bytes:
    return encode_body(topics.TopicNames(topic_list=list(names)))


def _check_enabled(*, allowed: bool) -> None:
    if not allowed:
        raise server_error(ResponseCode.SYSTEM_ERROR, "disable")


def add_topic(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Add one topic; brokers of 5.x use this instead of registering all topics again."""
    topic = request.header(nameserver.RegisterTopicRequest).topic
    if request.body:
        route = decode_body(request.body, TopicRoute)
        state.table.add_topic(topic, [_bare(data) for data in route.queue_datas])
    return request.reply(SUCCESS)


def _bare(data: QueueData) -> QueueData:
    """Return queue data without unknown fields that a peer may have added."""
    return QueueData(
        broker_name=data.broker_name,
        read_queue_nums=data.read_queue_nums,
        write_queue_nums=data.write_queue_nums,
        perm=data.perm,
        topic_sys_flag=data.topic_sys_flag,
    )


def delete_topic(state: NameServerState, _: Hashable, request: Command) -> Command:
    """Remove a topic, everywhere or in one cluster. Brokers that still hold it add it again."""
    header = request.header(nameserver.DeleteTopicInNameServerRequest)
    brokers = None
    if header.cluster_name:
        brokers = state.table.brokers.in_cluster(header.cluster_name)
    state.table.remove_topic(header.topic, brokers)
    state.table.departures.forget(header.topic, header.cluster_name)
    return request.reply(SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
    RequestCode.GET_BROKER_CLUSTER_INFO: cluster_info,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: all_topics,
    RequestCode.GET_TOPICS_BY_CLUSTER: topics_of_cluster,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: system_topics,
    RequestCode.GET_UNIT_TOPIC_LIST: _by_flag(lambda flag: bool(flag & _UNIT)),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _by_flag(lambda flag: bool(flag & _UNIT_SUBSCRIBED)),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _by_flag(
        lambda flag: bool(flag & _UNIT_SUBSCRIBED) and not flag & _UNIT
    ),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: add_topic,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: delete_topic,
}
