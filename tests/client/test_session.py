"""A session on a real cluster: members come and go, brokers and name servers do, too."""

import asyncio
import logging

import pytest

from pocketmq.client import ClientOptions, lease_session
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import ClientClosed, GroupTaken, NameServersUnreachable
from pocketmq.protocol.bodies.connections import ConsumerConnections, ProducerConnections
from pocketmq.protocol.bodies.groups import ConsumerIds
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.headers.membership import GetConsumerListRequest
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.peers import CURRENT_VERSION
from pocketmq.client.session import Session
from tests.client.members import Consuming, Producing
from tests.client.servers import session_on
from tests.loops import leap, leaping, until


async def members(session: Session, group: str, broker: str = "broker-0") -> list[str]:
    """Ask a broker for the client ids of a group; none if it has no members."""
    answer = await session.brokers.call(
        broker,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        GetConsumerListRequest(consumer_group=group),
        accept=frozenset({0, 1}),
    )
    return decode_body(answer.body, ConsumerIds).consumer_id_list if answer.code == 0 else []


async def test_a_member_is_known_to_every_broker_until_it_leaves() -> None:
    async with Cluster(brokers=2) as cluster, session_on(cluster.address) as session:
        topic = await cluster.create_topic("orders", queues=4)
        consumer = Consuming("billing", topic)
        session.add_consumer(consumer)
        await session.fetch_routes(consumer.topics())
        assert await session.heartbeats.beat()
        for broker in cluster.brokers:
            assert await members(session, "billing", broker) == [session.client_id]
        [known] = consumer.routes
        assert len(known.subscribe_queues) == 8
        assert len(known.publish_queues) == 8
        await session.remove_consumer(consumer)
        for broker in cluster.brokers:
            assert await members(session, "billing", broker) == []
