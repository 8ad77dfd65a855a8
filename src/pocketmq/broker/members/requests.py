"""Heartbeats and leaving: the members of each group, notifying them of changes, listing them.

Every way in and out of a group ends here: heartbeats (34), leaving (35), lost connections, silence.
Members are notified of changes with NOTIFY_CONSUMER_IDS_CHANGED (40), which makes them rebalance.
Tools list the members of a group (203, 204) and all producers (328).
"""

import logging
from collections.abc import Mapping

from pocketmq.broker.core.peer import ClientPeer
from pocketmq.broker.members.consumers import Change, ClientInfo, OnlineConsumer, expression_fault
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.errors import ResponseCode
from pocketmq.model import ConsumerData
from pocketmq.model.names import retry_topic
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.filter import is_tag_kind
from pocketmq.protocol.header import EmptyResponse
from pocketmq.protocol.requests import groups, membership

logger = logging.getLogger("pocketmq.broker")

_GROUPS_OF_CLIENT = 4096
"""Far more than any client has; one client must not fill the tables of topics and groups."""
_LONGEST_NAME = 1024
"""Characters of a client id or a producer group; real ones are far shorter."""
_UNIT_SUBSCRIBED = 2
"""Bit of a topic's system flag: it is subscribed by consumers of other units."""


def heartbeat(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Record a client's groups, creating what they need: the group and its retry topic."""
    beat = decode_body(request.body, membership.Heartbeat)
    fault = _excess(state, connection, beat)
    if fault is not None:
        return request.reply(ResponseCode.SYSTEM_ERROR, fault)
    client = ClientInfo(beat.client_id, request.language, request.version)
    wants_full = beat.heartbeat_fingerprint == 0
    for data in beat.consumer_data_set:
        if _register(state, connection, client, data, beat):
            wants_full = True
    now, replaces = state.steady(), _may_replace(state, connection, beat.client_id)
    for producer in beat.producer_data_set:
        state.producers.register(producer.group_name, connection, client, now, replaces=replaces)
    save_changes(state)
    header = membership.HeartbeatResponse(is_support_heart_beat_v2=True, is_sub_change=wants_full)
    return request.reply(ResponseCode.SUCCESS, None, header)


def _excess(state: BrokerState, connection: Connection, beat: membership.Heartbeat) -> str | None:
    """Return what is too much in a heartbeat.

    Any user may announce producer groups, so they count over all heartbeats of a connection.
    """
    producers = {producer.group_name for producer in beat.producer_data_set}
    known = state.producers.groups
    new = sum(connection not in known.get(name, ()) for name in producers)
    most = max(
        len(beat.consumer_data_set) + len(beat.producer_data_set),
        state.producers.count_of(connection) + new,
    )
    if most > _GROUPS_OF_CLIENT:
        return f"a client can be a member of {_GROUPS_OF_CLIENT} groups at most"
    if any(len(name) > _LONGEST_NAME for name in (beat.client_id, *producers)):
        return f"a client id or a producer group has more than {_LONGEST_NAME} characters"
    return None


def _may_replace(state: BrokerState, connection: ClientPeer, client_id: str) -> bool:
    """Return whether replies to a client id may go to a connection: not if another user has it."""
    known = state.producers.find(client_id)
    if known is None or known is connection or known.closed or state.gate is None:
        return True
    return state.gate.same_user(known, connection)


def _register(
    state: BrokerState,
    connection: ClientPeer,
    client: ClientInfo,
    data: ConsumerData,
    beat: membership.Heartbeat,
) -> bool:
    """Register one group; return whether the client shall send its subscriptions in full again.

    Besides Java's case, another member with other subscriptions, that is so when a short heartbeat
    (version 2) comes to a broker without the subscriptions, as after a restart: otherwise the
    group's pulls would be refused until a subscription changes.
    """
    name, now_ms = data.group_name, state.clock.now_ms()
    config = state.groups.find(
        name, auto_create=state.config.auto_create_subscription_group, now_ms=now_ms
    )
    if config is None:
        return False
    state.topics.create_for_group(
        retry_topic(name),
        config.retry_queue_nums,
        order=any(state.topics.is_order(each.topic) for each in data.subscription_data_set),
        sys_flag=_UNIT_SUBSCRIBED if data.unit_mode else 0,
        now_ms=now_ms,
    )
    differs = state.consumers.fingerprint(name, beat.heartbeat_fingerprint)
    known = state.consumers.get(name)
    lost = beat.without_sub and (known is None or not known.subscriptions)
    change = state.consumers.register(
        connection,
        client,
        data,
        notify=config.notify_consumer_ids_changed_enable,
        now=state.steady(),
        keep_subscriptions=beat.without_sub and beat.heartbeat_fingerprint != 0,
    )
    tell(state, change)
    return differs or lost


def unregister(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Remove a client from its groups, and notify the other members at once."""
    header = membership.UnregisterClientRequest.from_ext({"clientID": ""} | request.ext)
    if header.producer_group is not None:
        state.producers.unregister(header.producer_group, connection)
    if header.consumer_group is not None:
        config = state.groups.get(header.consumer_group)
        notify = config is None or config.notify_consumer_ids_changed_enable
        tell(state, state.consumers.unregister(header.consumer_group, connection, notify=notify))
        if state.pops is not None:
            state.pops.leave(connection, header.consumer_group)
    return request.reply(ResponseCode.SUCCESS, None, EmptyResponse())


def list_members(
    state: BrokerState, _: Connection, request: Command, header: membership.GetConsumerListRequest
) -> Command:
    """Return the client ids of a group; a client without them does not rebalance."""
    name = header.consumer_group
    group = state.consumers.get(name)
    if group is None:
        remark = f"no consumer for this group, {name}"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark, EmptyResponse())
    body = encode_body(membership.ConsumerIds(consumer_id_list=group.client_ids()))
    return request.reply(ResponseCode.SUCCESS, None, EmptyResponse(), body)


def check_client(state: BrokerState, _: Connection, request: Command) -> Command:
    """Accept or refuse a subscription before a consumer starts with it."""
    wanted = None
    if request.body:
        wanted = decode_body(request.body, membership.ClientCheck).subscription_data
    if wanted is None or is_tag_kind(wanted.expression_type):
        return request.reply(ResponseCode.SUCCESS)
    if not state.config.enable_property_filter:
        kind = wanted.expression_type
        remark = f"The broker does not support consumer to filter message by {kind}"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark)
    fault = expression_fault(wanted)
    if fault is not None:
        return request.reply(ResponseCode.SUBSCRIPTION_PARSE_FAILED, fault)
    return request.reply(ResponseCode.SUCCESS)


def connection_closed(state: BrokerState, connection: ClientPeer) -> None:
    """Remove a lost connection from everything, and notify the members that are left."""
    state.producers.closed(connection)
    for change in state.consumers.closed(connection):
        tell(state, change)


def expire(state: BrokerState) -> None:
    """Disconnect clients that no longer send heartbeats, and drop expired locks.

    By the steady clock: Java uses the machine's, and setting that forward disconnects everyone.
    """
    now, timeout = state.steady(), state.config.channel_expired_timeout / 1000
    silent = [*state.producers.expire(now, timeout), *state.consumers.expire(now, timeout)]
    for connection in dict.fromkeys(silent):
        logger.warning(
            "client disconnected: address=%s, no heartbeat for %g s",
            connection.remote_address,
            timeout,
        )
        connection.close()
    state.locks.expire(now)


def tell(state: BrokerState, change: Change) -> None:
    """Notify members of a change in their group."""
    if not change.notify or not state.config.notify_consumer_ids_changed_enable:
        return
    header = membership.NotifyConsumerIdsChangedRequest(consumer_group=change.group)
    code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    frame = Command.request(code, 0, header, oneway=True).encode()
    for connection in change.notify:
        connection.write(frame)


def consumer_connections(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: groups.GetConsumerConnectionsRequest,
) -> Command:
    """Describe a consumer group as the latest heartbeats left it."""
    name = header.consumer_group
    group = state.consumers.get(name)
    if group is None:
        remark = f"the consumer group[{name}] not online"
        return request.reply(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    body = groups.ConsumerConnections(
        connection_set=_connections(group.members),
        subscription_table={
            topic: each.subscription for topic, each in group.subscriptions.items()
        },
        consume_type=group.consume_type,
        message_model=group.message_model,
        consume_from_where=group.consume_from_where,
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


def producer_connections(
    state: BrokerState,
    _: Connection,
    request: Command,
    header: groups.GetProducerConnectionsRequest,
) -> Command:
    """List the connections of a producer group."""
    name = header.producer_group
    members = state.producers.groups.get(name)
    if members is None:
        remark = f"the producer group[{name}] not exist"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark)
    body = groups.ProducerConnections(connection_set=_connections(members))
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


def all_producers(state: BrokerState, _: Connection, request: Command) -> Command:
    """List every producer by its group."""
    since_ms = state.clock.now_ms() - int(state.steady() * 1000)  # steady to wall clock
    table = {
        group: [
            groups.ProducerInfo(
                client_id=member.client.client_id,
                remote_ip=f"/{connection.remote_address}",  # as Java writes a socket
                language=member.client.language,
                version=member.client.version,
                last_update_timestamp=since_ms + int(member.last_seen * 1000),
            )
            for connection, member in members.items()
        ]
        for group, members in state.producers.groups.items()
    }
    return request.reply(
        ResponseCode.SUCCESS, body=encode_body(groups.ProducerTableBody(data=table))
    )


def _connections(members: Mapping[ClientPeer, OnlineConsumer]) -> list[groups.ClientConnection]:
    return [
        groups.ClientConnection(
            client_id=member.client.client_id,
            client_addr=connection.remote_address,
            language=member.client.language,
            version=member.client.version,
        )
        for connection, member in members.items()
    ]


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.HEART_BEAT: heartbeat,
    RequestCode.UNREGISTER_CLIENT: unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: list_members,
    RequestCode.CHECK_CLIENT_CONFIG: check_client,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    RequestCode.GET_ALL_PRODUCER_INFO: all_producers,
}
