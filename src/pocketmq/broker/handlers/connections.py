"""Who is connected as a member of a group, and what the group says of itself (203)."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.bodies.connections import ClientConnection, ConsumerConnections
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.headers.groups import GetConsumerConnectionsRequest
from pocketmq.protocol.json_values import encode_body


def consumer_connections(state: BrokerState, _: Connection, request: Command) -> Command:
    """Describe a consumer group as the latest heartbeats left it."""
    name = request.header(GetConsumerConnectionsRequest).consumer_group
    group = state.consumers.get(name)
    if group is None:
        remark = f"the consumer group[{name}] not online"
        return request.reply(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    body = ConsumerConnections(
        connection_set=[
            ClientConnection(
                client_id=member.client.client_id,
                client_addr=connection.remote_address,
                language=member.client.language,
                version=member.client.version,
            )
            for connection, member in group.members.items()
        ],
        subscription_table={
            topic: each.subscription for topic, each in group.subscriptions.items()
        },
        consume_type=group.consume_type,
        message_model=group.message_model,
        consume_from_where=group.consume_from_where,
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(body))


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
}
