"""Changed topics that go to the name servers one by one (`enableSingleTopicRegister`)."""

import json

import pytest

from pocketmq.nameserver import NameServer
from pocketmq.nameserver.config import NameServerConfig
from tests.broker.name_servers.test_registration import (
    CREATE_TOPIC,
    REGISTER,
    Listener,
    broker_at,
    route,
    topic_fields,
)
from tests.broker.running import client
from tests.loops import leap, leaping, until
from tests.net.peers import LOOPBACK

REGISTER_TOPIC = 217


async def test_changes_go_one_by_one_if_the_settings_say_so() -> None:
    """As Java's broker with `enableSingleTopicRegister`: the broker itself is not in it."""
    listener = Listener()
    settings = {"enable_single_topic_register": True, "broker_permission": 4}
    async with (
        listener as server,
        broker_at(server, **settings) as (broker, address),
        client(address) as peer,
    ):
        assert listener.topics(0) == set(broker.state.topics.entries)
        for topic in ("One", "Two"):
            assert (await peer.ask(CREATE_TOPIC, topic_fields(topic, topicSysFlag="2"))).code == 0
        assert [request.code for request in listener.requests[1:]] == [REGISTER_TOPIC] * 2
        assert [request.ext for request in listener.requests[1:]] == [
            {"topic": "One"},
            {"topic": "Two"},
        ]
        told = json.loads(listener.requests[1].body)
        assert told["queueDatas"] == [
            {
                "brokerName": "broker-a", "perm": 4, "readQueueNums": 5, "topicSysFlag": 2,
                "writeQueueNums": 3,
            }
        ]  # fmt: skip
        assert told["brokerDatas"] == []


@leaping
async def test_everything_is_still_registered_every_thirty_seconds() -> None:
    listener = Listener()
    settings = {"enable_single_topic_register": True}
    async with (
        listener as server,
        broker_at(server, **settings) as (broker, address),
        client(address) as peer,
    ):
        await peer.ask(CREATE_TOPIC, topic_fields("One"))
        await leap(31)
        await until(lambda: len(listener.requests) == 3, "the second registration")
        assert listener.topics(2) == set(broker.state.topics.entries)


@leaping
@pytest.mark.parametrize("answers", [True, False])
async def test_a_name_server_that_takes_no_single_topics_gets_all_with_each_change(
    answers: bool,
) -> None:
    """Those of 4.x do not even answer."""
    listener = Listener()
    (listener.unknown if answers else listener.silent_on).add(REGISTER_TOPIC)
    settings = {"enable_single_topic_register": True}
    async with (
        listener as server,
        broker_at(server, **settings) as (broker, address),
        client(address) as peer,
    ):
        number = peer.post(CREATE_TOPIC, topic_fields("One"))
        await until(lambda: len(listener.requests) >= 2, "the single topic")
        if not answers:
            await leap(3.1)
        assert (await peer.answer(number)).code == 0
        assert (await peer.ask(CREATE_TOPIC, topic_fields("Two"))).code == 0
        codes = [request.code for request in listener.requests]
        # A request without an answer costs its connection: then everything is registered anyhow.
        assert codes[:3] == [REGISTER, REGISTER_TOPIC, REGISTER]
        assert set(codes[3:]) == {REGISTER}
        assert listener.topics(2) == set(broker.state.topics.entries) - {"Two"}
        assert listener.topics(len(codes) - 1) == set(broker.state.topics.entries)


async def test_a_name_server_that_deletes_what_a_registration_lacks_keeps_every_topic() -> None:
    """The two settings belong together; otherwise each new topic would take the others' routes."""
    server = NameServer(NameServerConfig(delete_topic_with_broker_registration=True))
    known = await server.start(LOOPBACK, 0)
    settings = {"enable_single_topic_register": True}
    try:
        async with (
            broker_at(known, **settings) as (_, address),
            client(address) as peer,
            client(known) as asked,
        ):
            for topic in ("One", "Two"):
                assert (await peer.ask(CREATE_TOPIC, topic_fields(topic))).code == 0
            for topic in ("One", "Two", "DefaultCluster"):
                assert await route(asked, topic) is not None
    finally:
        await server.stop()
