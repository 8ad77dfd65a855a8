"""What a consumer asks brokers about its group: members, connections, assignments, filters.

Any broker of a topic can answer. Java asks one at random and stops if it fails; here the others are
asked, too, so that one lost broker does not keep a group from balancing.
"""

import logging

import msgspec

from pocketmq.balance.consumer.rebalance import BrokerAssignedQueue
from pocketmq.client.calls import Fields
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.errors import MQError, RouteNotFound, ServerError
from pocketmq.model import MessageModel, Subscription
from pocketmq.model.route import MASTER_ID
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import assignment, client_calls, groups, membership

logger = logging.getLogger("pocketmq.client")

_CONNECTIONS = RequestCode.GET_CONSUMER_CONNECTION_LIST


class ListedMembers(msgspec.Struct, frozen=True):
    """The client ids of a group, and the address of the broker that has them connected."""

    members: tuple[str, ...]
    address: str


async def group_members(session: Session, topic: str, group: str) -> ListedMembers | None:
    """Return the client ids of a group; None if no broker of the topic answers."""
    try:
        answer, address = await _ask_any(
            session,
            topic,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            membership.GetConsumerListRequest(consumer_group=group),
        )
        members = tuple(decode_body(answer.body, membership.ConsumerIds).consumer_id_list)
    except MQError as error:
        logger.warning(
            'listing group members failed: group=%s topic=%s error="%s"; keeping the assignment',
            group, topic, error,
        )  # fmt: skip
        return None
    return ListedMembers(members, address) if members else None


async def broker_assignment(
    session: Session, query: assignment.AssignmentQuery
) -> tuple[BrokerAssignedQueue, ...] | None:
    """Return the queues a broker assigned to this member; None if it did not answer, or null."""
    try:
        answer, _ = await _ask_any(
            session, query.topic, RequestCode.QUERY_ASSIGNMENT, None, encode_body(query)
        )
        assigned = decode_body(answer.body, assignment.Assignments).message_queue_assignments
    except MQError as error:
        logger.warning(
            'query for the assignment failed: group=%s topic=%s error="%s"; keeping the assignment',
            query.consumer_group, query.topic, error,
        )  # fmt: skip
        return None
    if assigned is None:
        return None
    return tuple(BrokerAssignedQueue(each.message_queue, each.mode) for each in assigned)


async def group_connections(
    session: Session, topic: str, group: str
) -> groups.ConsumerConnections | None:
    """Return a broker's description of a group; None without an answer, or permission."""
    header = groups.GetConsumerConnectionsRequest(consumer_group=group)
    try:
        answer, _ = await _ask_any(session, topic, _CONNECTIONS, header)
        return decode_body(answer.body, groups.ConsumerConnections)
    except MQError as error:
        logger.debug('describing the group failed: group=%s error="%s"', group, error)
        return None


async def connections_at(
    session: Session,
    address: str,
    group: str,
    timeout: float,  # noqa: ASYNC109 - of the request
) -> groups.ConsumerConnections | None:
    """Return the same from the broker at one address, within `timeout` seconds."""
    header = groups.GetConsumerConnectionsRequest(consumer_group=group)
    try:
        answer = await session.brokers.call_at(address, _CONNECTIONS, header, timeout=timeout)
        return decode_body(answer.body, groups.ConsumerConnections)
    except MQError as error:
        logger.debug('describing the group failed: group=%s error="%s"', group, error)
        return None


async def member_subscriptions(
    session: Session, topic: str, group: str, client_id: str
) -> list[Subscription] | None:
    """Return what another member subscribes, asked through a broker; None without an answer."""
    header = client_calls.GetConsumerRunningInfoRequest(consumer_group=group, client_id=client_id)
    try:
        answer, _ = await _ask_any(session, topic, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        return decode_body(answer.body, client_calls.RunningInfo).subscription_set
    except MQError as error:
        logger.debug(
            'asking a member failed: group=%s client=%s error="%s"', group, client_id, error
        )
        return None


async def check_filter(session: Session, group: str, subscription: Subscription) -> None:
    """Let a broker check a subscription's expression; raises the `ServerError` of a refusal.

    Also raises `RouteNotFound` and `TransportError`.
    """
    body = membership.ClientCheck(
        client_id=session.client_id,
        group=group,
        subscription_data=subscription,
    )
    await _ask_any(
        session, subscription.topic, RequestCode.CHECK_CLIENT_CONFIG, None, encode_body(body)
    )


def assignment_query(
    session: Session, topic: str, group: str, strategy: str, model: MessageModel
) -> assignment.AssignmentQuery:
    """Make the question for `broker_assignment`."""
    return assignment.AssignmentQuery(
        topic=topic,
        consumer_group=group,
        client_id=session.client_id,
        strategy_name=strategy,
        message_model=model,
    )


async def _ask_any(
    session: Session, topic: str, code: RequestCode, fields: Fields, body: bytes = b""
) -> tuple[Command, str]:
    """Ask a broker of a topic, chosen by chance; if it fails, the others. Return its address, too.

    A refusal other than a failure inside the broker is an answer: it is raised at once.
    """
    known = await session.routes.get(topic)
    failure: MQError = RouteNotFound(topic)
    for address in _addresses(session, known):
        try:
            answer = await session.brokers.call_at(address, code, fields, body)
        except ServerError as error:
            if not error.retryable:
                raise
            failure = error
        except MQError as error:
            failure = error
        else:
            return answer, address
    raise failure


def _addresses(session: Session, known: KnownRoute) -> list[str]:
    tables = [data.broker_addrs for data in known.route.broker_datas if data.broker_addrs]
    session.random.shuffle(tables)
    return [table[MASTER_ID if MASTER_ID in table else min(table)] for table in tables]
