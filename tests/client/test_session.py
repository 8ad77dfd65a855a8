"""A session on a real cluster and on scripted servers: who is told what, and when."""

import asyncio
import os
import warnings
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from pocketmq import errors
from pocketmq.balance.profile import V4
from pocketmq.client.options import ClientOptions
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.sessions import lease_session
from pocketmq.embedded.aio import Cluster
from pocketmq.net import Server
from pocketmq.protocol import Command, RequestCode, decode_body
from pocketmq.protocol.peers import CURRENT_VERSION
from pocketmq.protocol.requests.membership import ConsumerIds, GetConsumerListRequest
from tests.client.members import Consuming, Producing
from tests.client.servers import Directory, Scripted, broker, route, serving, session_on
from tests.loops import leap, leaping, until
from tests.ports import free_port

HEART_BEAT = int(RequestCode.HEART_BEAT)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
UNREGISTER = int(RequestCode.UNREGISTER_CLIENT)


def taking(request: Command) -> Command:
    return request.reply(0)


def a_broker() -> Scripted:
    return Scripted({HEART_BEAT: taking, UNREGISTER: taking})


def heard(server: Scripted, count: int) -> bool:
    return len(server.asked_for(HEART_BEAT)) >= count


async def members(session: Session, group: str, name: str = "broker-0") -> list[str]:
    """Ask a broker for the client ids of a group; none if it has no members."""
    answer = await session.brokers.call(
        name,
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
        for name, info in cluster.brokers.items():
            assert await members(session, "billing", name) == [session.client_id]
            assert session.addresses.version(info.address) == CURRENT_VERSION
        [known] = consumer.routes
        assert len(known.subscribe_queues) == 8
        assert len(known.publish_queues) == 8
        await session.remove_consumer(consumer)
        for name in cluster.brokers:
            assert await members(session, "billing", name) == []


async def test_a_member_that_joins_or_leaves_wakes_the_others_of_its_group() -> None:
    async with (
        Cluster() as cluster,
        session_on(cluster.address) as one,
        session_on(cluster.address) as other,
    ):
        topic = await cluster.create_topic("orders")
        first, second = Consuming("billing", topic), Consuming("billing", topic)
        one.add_consumer(first)
        await one.heartbeats.beat()
        other.add_consumer(second)
        await other.heartbeats.beat()
        await until(lambda: first.ids_changed, "the first member to hear of the second")
        assert await members(one, "billing") == sorted([one.client_id, other.client_id])
        heard = first.ids_changed
        await other.remove_consumer(second)
        await until(lambda: first.ids_changed > heard, "the first member to hear it leave")


async def test_a_killed_broker_that_comes_back_is_greeted_on_the_new_connection() -> None:
    """The group's members hear of the fresh connection, and the broker knows them again."""
    async with Cluster() as cluster, session_on(cluster.address) as session:
        topic = await cluster.create_topic("orders")
        address = cluster.brokers["broker-0"].address
        consumer = Consuming("billing", topic)
        session.add_consumer(consumer)
        assert await session.heartbeats.beat()
        assert consumer.active == [address]
        await cluster.kill("broker-0")
        await until(lambda: session.calls.connected(address) is None, "the connection to end")
        assert not await session.heartbeats.beat()
        await cluster.restart("broker-0")
        # Any call makes the connection; nobody asks for a heartbeat.
        await session.brokers.call("broker-0", RequestCode.GET_BROKER_RUNTIME_INFO)
        assert consumer.active == [address, address]
        greeted = session.heartbeats.beat_to(address)  # joins the one under way
        assert await greeted
        assert await members(session, "billing") == [session.client_id]


async def test_a_5x_client_greets_every_fresh_connection_once() -> None:
    here = a_broker()
    here.script[1] = taking
    directory = Directory()
    async with serving(here) as (_, address), serving(directory) as (_, names):
        directory.routes["orders"] = route(broker("a", address))
        async with session_on(names, heartbeat_first_after=60.0) as session:
            session.add_producer(Producing("shop", "orders"))
            await session.fetch_routes(["orders"])
            await session.brokers.call("a", 1)
            await until(partial(heard, here, 1), "the heartbeat")
            await session.brokers.call("a", 1)
            assert sorted(request.code for request in here.requests) == [1, 1, HEART_BEAT]


async def test_a_4x_client_greets_no_connection_but_tells_its_consumers() -> None:
    here = a_broker()
    here.script[1] = taking
    directory = Directory()
    async with serving(here) as (_, address), serving(directory) as (_, names):
        directory.routes["orders"] = route(broker("a", address))
        async with session_on(names, profile=V4, heartbeat_first_after=60.0) as session:
            consumer = Consuming("billing", "orders")
            session.add_consumer(consumer)
            await session.fetch_routes(["orders"])
            await session.brokers.call("a", 1)
            await session.brokers.call("a", 1)
            assert consumer.active == [address]
            assert here.asked_for(HEART_BEAT) == []


@leaping
async def test_timers_beat_and_ask_for_routes_every_thirty_seconds() -> None:
    here, directory = a_broker(), Directory()
    async with serving(here) as (_, address), serving(directory) as (_, names):
        directory.routes["orders"] = route(broker("a", address))
        async with session_on(names) as session:
            producer = Producing("shop", "orders")
            session.add_producer(producer)
            await until(lambda: directory.topics_asked().count("orders") == 1, "the first poll")
            assert here.asked_for(HEART_BEAT) == []
            await leap(1.0)
            await until(lambda: len(here.asked_for(HEART_BEAT)) == 1, "the first heartbeat")
            await leap(28.5)
            assert directory.topics_asked().count("orders") == 1
            directory.routes["orders"] = route(broker("a", address), queues=8)
            await leap(0.5)
            await until(lambda: len(producer.routes) == 2, "the changed route")
            assert len(producer.routes[-1].publish_queues) == 8
            await leap(1.5)
            await until(lambda: len(here.asked_for(HEART_BEAT)) == 2, "the second heartbeat")


@leaping
async def test_a_broker_that_moved_is_followed_and_its_old_address_forgotten() -> None:
    old, new, directory = a_broker(), a_broker(), Directory()
    async with (
        serving(old) as (_, here),
        serving(new) as (_, there),
        serving(directory) as (_, names),
    ):
        directory.routes["orders"] = route(broker("a", here), broker("b", "127.0.0.1:1"))
        async with session_on(names) as session:
            producer = Producing("shop", "orders")
            session.add_producer(producer)
            await until(lambda: len(producer.routes) == 1, "the route")
            await leap(1.0)
            await until(lambda: len(old.asked_for(HEART_BEAT)) == 1, "the old one's heartbeat")
            directory.routes["orders"] = route(broker("a", there))
            await leap(29.5)
            await until(lambda: len(producer.routes) == 2, "the changed route")
            await leap(1.0)
            await until(lambda: len(new.asked_for(HEART_BEAT)) == 1, "the new one's heartbeat")
            assert session.brokers.address("a") == there
            assert [place.address for place in session.addresses.places()] == [there]
            assert len(old.asked_for(HEART_BEAT)) == 1


@leaping
async def test_without_name_servers_known_routes_go_on() -> None:
    here, directory = a_broker(), Directory()
    async with serving(here) as (_, address):
        async with serving(directory) as (_, names):
            directory.routes["orders"] = route(broker("a", address))
            lease = await lease_session(ClientOptions(name_servers=names))
            session = lease.session
            session.add_producer(Producing("shop", "orders"))
            await session.fetch_routes(["orders"])
        for count in (1, 2, 3):
            await leap(30.5)
            beats = partial(heard, here, count)
            await until(beats, "another heartbeat")
        assert (await session.routes.get("orders")).route == route(broker("a", address))
        with pytest.raises(errors.NameServersUnreachable):
            await session.routes.refresh("orders")
        await lease.release()


async def test_a_group_has_one_producer_and_one_consumer_in_a_session() -> None:
    async with serving(Directory()) as (_, names), session_on(names) as session:
        session.add_producer(Producing("shop"))
        session.add_consumer(Consuming("shop"))
        with pytest.raises(errors.GroupTaken, match="already has a producer in group 'shop'"):
            session.add_producer(Producing("shop"))
        with pytest.raises(errors.GroupTaken, match="already has a consumer in group 'shop'"):
            session.add_consumer(Consuming("shop"))
        await session.remove_producer(Producing("shop"))  # another one of the same name: not here
        assert len(session.roll) == 2


async def test_members_left_behind_are_unregistered_at_the_end() -> None:
    here, directory = a_broker(), Directory()
    async with serving(here) as (_, address), serving(directory) as (_, names):
        directory.routes["orders"] = route(broker("a", address))
        async with session_on(names) as session:
            session.add_producer(Producing("shop"))
            session.add_consumer(Consuming("billing"))
            await session.fetch_routes(["orders"])
            assert await session.heartbeats.beat()
        left = [request.ext for request in here.asked_for(UNREGISTER)]
        assert left == [
            {"clientID": session.client_id, "producerGroup": "shop"},
            {"clientID": session.client_id, "consumerGroup": "billing"},
        ]
        assert len(session.tasks) == 0


async def test_a_stopped_session_says_so() -> None:
    async with serving(Directory()) as (_, names):
        async with session_on(names) as session:
            pass
        with pytest.raises(errors.ClientClosed, match="is not running"):
            await session.routes.name_servers.ask(1, timeout=1.0)
        with pytest.raises(errors.ClientClosed):
            session.add_producer(Producing())


async def test_a_start_without_name_server_fails_and_leaves_nothing() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with pytest.raises(
        errors.NameServersUnreachable, match=f"no name server responds at {nowhere}"
    ):
        await lease_session(ClientOptions(name_servers=nowhere))


async def test_a_start_on_what_is_no_name_server_says_so() -> None:
    async with serving(Scripted({})) as (_, address):
        with pytest.raises(
            errors.RequestNotSupported, match=f"{address} refused GET_ROUTEINFO_BY_TOPIC"
        ):
            await lease_session(ClientOptions(name_servers=address))


@pytest.mark.parametrize("code", [1, 2, 16])
async def test_a_name_server_in_trouble_is_one_all_the_same(code: int) -> None:
    server = Scripted({ROUTE: lambda request: request.reply(code, "not now")})
    async with serving(server) as (_, address), session_on(address) as session:
        assert session.running


async def test_a_start_may_wait_for_a_name_server() -> None:
    port = free_port()
    options = ClientOptions(name_servers=f"127.0.0.1:{port}", start_wait=30.0)
    starting = asyncio.create_task(lease_session(options))
    await asyncio.sleep(0)
    server = Server(Directory())
    await server.listen("127.0.0.1", port)
    try:
        lease = await starting
        await lease.release()
    finally:
        await server.close(grace=0.2)


async def test_a_start_may_leave_name_servers_for_later() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    async with session_on(nowhere, start_wait=None) as session:
        with pytest.raises(errors.NameServersUnreachable):
            await session.fetch_routes(["orders"])


def is_refused(use: Coroutine[Any, Any, object]) -> bool:
    """Whether a coroutine ends with the clear error before it waits for anything."""
    try:
        use.send(None)
    except errors.ClientForked as error:
        return "create a new client after the fork" in str(error)
    return False


async def test_a_forked_child_cannot_use_the_session() -> None:
    """The child gets a clear error before anything is written to the parent's sockets."""
    async with serving(Directory()) as (_, names), session_on(names) as session:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
            child = os.fork()
        if child == 0:
            uses = [
                session.calls.ask(names, 1, timeout=1.0),
                session.routes.refresh("orders"),
                session.heartbeats.beat(),
                session.fetch_routes(["orders"]),
            ]
            os._exit(sum(not is_refused(use) for use in uses))
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        session.check()


async def test_members_hear_of_their_own_topics_even_if_another_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Producing):
        def on_route_changed(self, known: KnownRoute) -> None:
            raise ValueError("oh")

    directory = Directory({topic: route(broker("a", "h:1")) for topic in ("orders", "bills")})
    async with serving(directory) as (_, names), session_on(names) as session:
        first, consumer = Producing("one", "bills"), Consuming("two", "orders")
        for producer in (Broken("broken", "orders", "bills"), first):
            session.add_producer(producer)
        session.add_consumer(consumer)
        await session.fetch_routes(["orders", "bills", "orders"])
        assert [known.topic for known in first.routes] == ["bills"]
        assert [known.topic for known in consumer.routes] == ["orders"]
        assert caplog.text.count("handling a broker notification failed: group=broken") == 2
