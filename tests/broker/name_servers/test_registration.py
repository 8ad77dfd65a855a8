"""The broker and its name servers: real ones of ours, up, down and late."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.nameserver import NameServer
from pocketmq.net import Address
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.registration import decode_registration
from pocketmq.protocol.requests.nameserver import RegisterBrokerRequest
from tests.broker.running import Client, LoopClock, client, send_fields
from tests.loops import leap, leaping, until
from tests.net.peers import LOOPBACK
from tests.ports import free_port

REGISTER, UNREGISTER, ROUTE, PUT_KV = 103, 104, 105, 100
SEND, CREATE_TOPIC, HEARTBEAT = 310, 17, 34


@asynccontextmanager
async def name_server(port: int = 0) -> AsyncIterator[Address]:
    server = NameServer()
    address = await server.start(LOOPBACK, port)
    try:
        yield address
    finally:
        await server.stop()


@asynccontextmanager
async def broker_at(
    *name_servers: Address, **settings: Any
) -> AsyncIterator[tuple[Broker, Address]]:
    standard: dict[str, Any] = {"listen_port": 0, "bind_address": LOOPBACK}
    servers = [str(each) for each in name_servers]
    broker = Broker(BrokerConfig(**standard | settings), None, servers, clock=LoopClock())
    address = await broker.start()
    try:
        yield broker, address
    finally:
        await broker.stop()


async def route(asked: Client, topic: str) -> dict[str, Any] | None:
    """Return a topic's route as JSON, or None if there is none."""
    answer = await asked.ask(ROUTE, {"topic": topic, "acceptStandardJsonOnly": "true"})
    assert answer.code in (0, 17)
    found: dict[str, Any] | None = json.loads(answer.body) if answer.code == 0 else None
    return found


def topic_fields(topic: str, **fields: str) -> dict[str, str]:
    return {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": "5", "writeQueueNums": "3",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    } | fields  # fmt: skip


async def routed(asked: Client, topic: str, step: float = 0.0) -> dict[str, Any]:
    """Return a topic's route as soon as there is one; each look lets `step` seconds pass."""
    for _ in range(5000):
        found = await route(asked, topic)
        if found is not None:
            return found
        if step:
            await leap(step)
    raise AssertionError(f"no route of {topic}")


async def test_a_started_broker_is_in_the_routes() -> None:
    """Tools make topics by the route of the cluster's name or the broker's."""
    async with (
        name_server() as server,
        broker_at(server, broker_name="b1") as (_, address),
        client(server) as asked,
    ):
        for topic, queues in (("DefaultCluster", 16), ("b1", 1), ("TBW102", 8)):
            found = await route(asked, topic)
            assert found is not None
            assert found["brokerDatas"][0]["brokerAddrs"] == {"0": str(address)}
            assert found["brokerDatas"][0]["cluster"] == "DefaultCluster"
            (data,) = found["queueDatas"]
            assert (data["readQueueNums"], data["perm"]) == (queues, 7)


async def test_a_topic_has_a_route_as_soon_as_making_it_is_answered() -> None:
    async with (
        name_server() as one,
        name_server() as two,
        broker_at(one, two) as (_, address),
        client(address) as peer,
    ):
        assert (await peer.ask(CREATE_TOPIC, topic_fields("Fresh"))).code == 0
        for server in (one, two):
            async with client(server) as asked:
                found = await route(asked, "Fresh")
                assert found is not None
                (data,) = found["queueDatas"]
                assert (data["readQueueNums"], data["writeQueueNums"]) == (5, 3)
        await peer.ask(CREATE_TOPIC, topic_fields("Fresh", perm="4"))
        async with client(one) as asked:
            found = await route(asked, "Fresh")
            assert found is not None
            assert found["queueDatas"][0]["perm"] == 4


async def test_topics_made_by_sends_and_heartbeats_are_announced() -> None:
    beat = {
        "clientID": "c",
        "consumerDataSet": [
            {
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "consumeType": "CONSUME_PASSIVELY",
                "groupName": "group",
                "messageModel": "CLUSTERING",
                "subscriptionDataSet": [],
                "unitMode": False,
            }
        ],
        "producerDataSet": [],
    }
    async with (
        name_server() as server,
        broker_at(server) as (_, address),
        client(address) as peer,
        client(server) as asked,
    ):
        await peer.ask(SEND, send_fields("Sent"), b"x")
        await peer.ask(HEARTBEAT, {}, json.dumps(beat).encode())
        for topic in ("Sent", "%RETRY%group"):
            await routed(asked, topic)


async def test_a_stopped_broker_is_in_no_route() -> None:
    async with name_server() as server, client(server) as asked:
        async with broker_at(server):
            assert await route(asked, "DefaultCluster") is not None
        assert await route(asked, "DefaultCluster") is None


@leaping
async def test_a_broker_works_without_its_name_server_and_registers_when_it_comes() -> None:
    port = free_port()
    async with name_server(port) as early:
        pass
    async with broker_at(early) as (_, address), client(address) as peer:
        assert (await peer.ask(SEND, send_fields("T"), b"x")).code == 0
        assert (await peer.ask(CREATE_TOPIC, topic_fields("Made"))).code == 0
        async with name_server(port) as late, client(late) as asked:
            assert late == early
            await leap(11)
            await routed(asked, "Made", 1.0)


@leaping
async def test_a_name_server_that_lost_everything_learns_it_again() -> None:
    first = NameServer()
    known = await first.start(LOOPBACK, free_port())
    async with broker_at(known) as (_, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T"), b"x")
        await first.stop()
        async with name_server(known.port) as second, client(second) as asked:
            await routed(asked, "T", 1.0)


async def test_name_servers_hear_of_permissions_within_the_brokers_own() -> None:
    async with (
        name_server() as server,
        broker_at(server, broker_permission=4) as (_, address),
        client(server) as asked,
        client(address) as peer,
    ):
        found = await route(asked, "DefaultCluster")
        assert found is not None
        assert found["queueDatas"][0]["perm"] == 4
        assert (await peer.ask(CREATE_TOPIC, topic_fields("T"))).code == 0
        found = await route(asked, "T")
        assert found is not None
        assert found["queueDatas"][0]["perm"] == 4


async def test_topics_the_name_server_says_are_ordered_become_so() -> None:
    async with name_server() as server, client(server) as asked:
        await asked.ask(
            PUT_KV, {"namespace": "ORDER_TOPIC_CONFIG", "key": "Ordered", "value": "broker-a:4"}
        )
        async with broker_at(server) as (broker, address), client(address) as peer:
            await peer.ask(CREATE_TOPIC, topic_fields("Ordered"))
            await until(lambda: broker.state.topics.is_order("Ordered"), "the topic's order")


# Seen from the other side


class Listener:
    """A name server that only listens and says yes, or what it is told to say."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.code = 0
        self.unknown: set[int] = set()  # codes of requests it does not know
        self.silent_on: set[int] = set()
        self.answering = asyncio.Event()
        self.answering.set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Address:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        return Address(*self._server.sockets[0].getsockname()[:2])

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for request in map(read_command, frames.feed(data)):
                self.requests.append(request)
                if request.code in self.silent_on:
                    continue
                await self.answering.wait()
                code = 3 if request.code in self.unknown else self.code
                writer.write(request.reply(code).encode())
        writer.close()

    def topics(self, number: int) -> set[str]:
        """The topics of one registration."""
        request = self.requests[number]
        assert request.code == REGISTER
        return set(decode_registration(request.body).topics.topic_config_table)


async def test_the_first_registration_has_everything_and_a_change_only_itself() -> None:
    listener = Listener()
    async with listener as server, broker_at(server) as (broker, address), client(address) as peer:
        assert listener.topics(0) == set(broker.state.topics.entries)
        await peer.ask(CREATE_TOPIC, topic_fields("New"))
        assert listener.topics(1) == {"New"}
        header = listener.requests[1].header(RegisterBrokerRequest)
        assert (header.broker_name, header.cluster_name) == ("broker-a", "DefaultCluster")
        assert (header.broker_addr, header.broker_id) == (str(address), 0)
        assert header.body_crc32 != 0


@leaping
async def test_everything_is_registered_again_every_thirty_seconds() -> None:
    listener = Listener()
    async with listener as server, broker_at(server) as (broker, _):
        await leap(0)
        await leap(25)
        assert len(listener.requests) == 1
        await leap(6)
        await until(lambda: len(listener.requests) == 2, "the second registration")
        assert listener.topics(1) == set(broker.state.topics.entries)


async def test_changes_gather_while_a_name_server_is_slow() -> None:
    listener = Listener()
    async with listener as server, broker_at(server) as (_, address), client(address) as peer:
        listener.answering.clear()
        numbers = [peer.post(CREATE_TOPIC, topic_fields(f"T{n}")) for n in range(20)]
        await until(lambda: len(listener.requests) == 2, "the first change")
        await peer.ask(30, {"topic": "T", "queueId": "0"})
        assert peer._answers == {}  # nobody is told before the name server knows
        listener.answering.set()
        for number in numbers:
            assert (await peer.answer(number)).code == 0
        assert len(listener.requests) < 6
        last = listener.requests[-1]
        assert last.code == REGISTER


@leaping
async def test_a_refused_registration_is_tried_again_with_everything() -> None:
    listener = Listener()
    listener.code = 1
    async with listener as server, broker_at(server) as (broker, address), client(address) as peer:
        assert (await peer.ask(CREATE_TOPIC, topic_fields("New"))).code == 0
        assert listener.topics(1) == set(broker.state.topics.entries)
        listener.code = 0
        before = len(listener.requests)
        await leap(10)
        await until(lambda: len(listener.requests) > before, "the next try")
        assert listener.topics(before) == set(broker.state.topics.entries)


async def test_a_broker_unregisters_only_where_it_is_registered() -> None:
    listener, refusing = Listener(), Listener()
    refusing.code = 1
    async with listener as one, refusing as two:
        async with broker_at(one, two):
            pass
        assert [request.code for request in listener.requests] == [REGISTER, UNREGISTER]
        assert {request.code for request in refusing.requests} == {REGISTER}


async def test_the_same_name_server_twice_is_one() -> None:
    listener = Listener()
    async with listener as server, broker_at(server, server):
        assert len(listener.requests) == 1


async def test_a_lost_connection_is_restored_at_once() -> None:
    """Name servers take a broker out of the routes when its connection ends."""
    async with name_server() as server, broker_at(server) as (broker, _), client(server) as asked:
        link = broker._dialer.known(str(server))
        assert link is not None
        link.abort()
        await until(lambda: broker._dialer.known(str(server)) is not None, "the next connection")
        await routed(asked, "DefaultCluster")


def rightly_signed(request: Command, secret: bytes) -> bool:
    """Look at a signature as a guarded name server does: all values by key, then the body."""
    fields = dict(request.ext)
    signature = fields.pop("Signature", "")
    content = "".join(fields[key] for key in sorted(fields)).encode() + request.body
    return base64.b64encode(hmac.digest(secret, content, "sha1")).decode() == signature


async def test_what_name_servers_are_asked_is_signed_if_the_settings_name_a_user() -> None:
    listener = Listener()
    user = {"accessKey": "inner", "secretKey": "hush-hush", "securityToken": "t"}
    settings = {"inner_client_authentication_credentials": json.dumps(user)}
    async with (
        listener as server,
        broker_at(server, **settings) as (broker, address),
        client(address) as peer,
    ):
        await peer.ask(CREATE_TOPIC, topic_fields("New"))
        told: list[object] = []
        broker.state.routes.fetch("New", told.append)
        await until(lambda: told, "the route")
    assert [each.code for each in listener.requests] == [REGISTER, REGISTER, ROUTE, UNREGISTER]
    for request in listener.requests:
        assert (request.ext["AccessKey"], request.ext["SecurityToken"]) == ("inner", "t")
        assert rightly_signed(request, b"hush-hush")
        assert not rightly_signed(request, b"another")


async def test_without_such_a_user_nothing_is_signed() -> None:
    listener = Listener()
    async with listener as server, broker_at(server):
        pass
    assert [each.code for each in listener.requests] == [REGISTER, UNREGISTER]
    assert not any({"AccessKey", "Signature"} & each.ext.keys() for each in listener.requests)
