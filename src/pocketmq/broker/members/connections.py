"""Connections: the members of a group (203, 204), and all producers (328)."""

from collections.abc import Mapping

from pocketmq.broker.core.peer import ClientPeer
from pocketmq.broker.members.consumers import OnlineConsumer
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.requests import groups


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
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    RequestCode.GET_ALL_PRODUCER_INFO: all_producers,
}
