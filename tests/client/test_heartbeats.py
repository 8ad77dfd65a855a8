"""Heartbeats: to whom, how often, and what brokers are told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.client.heartbeats import fingerprint_of
from pocketmq.client.session import Session
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.model import ConsumerData, ProducerData, Subscription
from pocketmq.protocol import Command, RequestCode, decode_body
from pocketmq.protocol.requests.membership import Heartbeat, HeartbeatResponse
from tests.client.members import Consuming, Producing
from tests.client.servers import Directory, Scripted, broker, route, serving, session_on
from tests.loops import until

HEART_BEAT = int(RequestCode.HEART_BEAT)
UNREGISTER = int(RequestCode.UNREGISTER_CLIENT)


def beats(server: Scripted) -> list[Heartbeat]:
    return [decode_body(request.body, Heartbeat) for request in server.asked_for(HEART_BEAT)]


class Gate:
    """Answers heartbeats when it is open; as a broker of version 401."""

    def __init__(self, *, short: bool = False, differs: bool = False) -> None:
        self.held: list[Command] = []
        self.is_open = True
        self.header = HeartbeatResponse(is_support_heart_beat_v2=short, is_sub_change=differs)
        self.server = Scripted({HEART_BEAT: self._beat, UNREGISTER: lambda each: each.reply(0)})

    def _beat(self, request: Command) -> Command | None:
        if self.is_open:
            return request.reply(0, ext=self.header)
        self.held.append(request)
        return None

    def open(self) -> None:
        self.is_open = True
        held, self.held = self.held, []
        for request in held:
            self.server.opened[-1].write(request.reply(0, ext=self.header).encode())


@asynccontextmanager
async def on_brokers(*gates: Gate, **options: object) -> AsyncIterator[Session]:
    """A session that knows a master and slaves, and whose own timers keep still."""
    directory = Directory()
    async with serving(directory) as (_, names), _all_serving(gates) as addresses:
        directory.routes["orders"] = route(broker("a", *addresses))
        async with session_on(names, heartbeat_first_after=600.0, **options) as session:
            await session.fetch_routes(["orders"])
            yield session


@asynccontextmanager
async def _all_serving(gates: tuple[Gate, ...]) -> AsyncIterator[list[str]]:
    if not gates:
        yield []
        return
    async with serving(gates[0].server) as (_, address), _all_serving(gates[1:]) as rest:
        yield [address, *rest]


async def test_producers_tell_masters_and_consumers_tell_slaves_too() -> None:
    master, slave = Gate(), Gate()
    async with on_brokers(master, slave) as session:
        session.add_producer(Producing("shop"))
        assert await session.heartbeats.beat()
        assert (len(beats(master.server)), len(beats(slave.server))) == (1, 0)
        session.add_consumer(Consuming("billing", "orders"))
        assert await session.heartbeats.beat()
        assert (len(beats(master.server)), len(beats(slave.server))) == (2, 1)
        told = beats(master.server)[-1]
        assert told.client_id == session.client_id
        assert told.producer_data_set == [ProducerData(group_name="shop")]
        [data] = told.consumer_data_set
        assert (data.group_name, [each.topic for each in data.subscription_data_set]) == (
            "billing",
            ["orders"],
        )
        assert told.heartbeat_fingerprint == 0


async def test_a_client_without_members_says_nothing() -> None:
    master = Gate()
    async with on_brokers(master) as session:
        assert not await session.heartbeats.beat()
        assert master.server.requests == []


async def test_heartbeats_asked_for_during_a_round_become_one_round_after_it() -> None:
    """The round under way may have told the old state, so it is not enough."""
    master = Gate()
    async with on_brokers(master) as session:
        session.add_producer(Producing("shop"))
        master.is_open = False
        first = asyncio.create_task(session.heartbeats.beat())
        await until(lambda: len(master.held) == 1, "the first heartbeat")
        session.add_producer(Producing("depot"))
        others = [asyncio.create_task(session.heartbeats.beat()) for _ in range(10)]
        session.heartbeats.beat_soon()
        await asyncio.sleep(0)
        master.open()
        assert await first
        assert all(await asyncio.gather(*others))
        assert [len(each.producer_data_set) for each in beats(master.server)] == [1, 2]


async def test_a_silent_broker_keeps_nobody_waiting() -> None:
    silent, quick = Gate(), Gate()
    silent.is_open = False
    async with on_brokers(silent, quick, request_timeout=1.0) as session:
        session.add_consumer(Consuming("billing"))
        beating = asyncio.create_task(session.heartbeats.beat())
        await until(lambda: len(beats(quick.server)) == 1, "the other broker's heartbeat")
        assert not beating.done()
        assert await beating  # one broker took note
        [heard_of] = [p for p in session.addresses.places() if session.addresses.version(p.address)]
        assert heard_of.broker_id == 1


async def test_leaving_waits_for_the_heartbeat_under_way() -> None:
    """Otherwise the heartbeat could come second and bring the group back."""
    master = Gate()
    async with on_brokers(master) as session:
        producer = Producing("shop")
        session.add_producer(producer)
        master.is_open = False
        session.heartbeats.beat_soon()
        await until(lambda: len(master.held) == 1, "the heartbeat")
        leaving = asyncio.create_task(session.remove_producer(producer))
        for _ in range(5):
            await asyncio.sleep(0)
        assert master.server.asked_for(UNREGISTER) == []
        master.open()
        await leaving
        assert len(master.server.asked_for(UNREGISTER)) == 1


async def test_leaving_makes_no_connection_of_its_own() -> None:
    """A broker without a connection has taken the client out already."""
    master = Gate()
    async with on_brokers(master) as session:
        producer = Producing("shop")
        session.add_producer(producer)
        await session.remove_producer(producer)
        assert master.server.opened == []


async def test_a_broker_that_refuses_counts_as_not_told() -> None:
    master = Gate()
    master.server.script[HEART_BEAT] = lambda request: request.reply(16, "no")
    async with on_brokers(master) as session:
        session.add_producer(Producing("shop"))
        assert not await session.heartbeats.beat()


async def test_short_heartbeats_leave_out_what_a_broker_knows() -> None:
    knows, old = Gate(short=True), Gate()
    async with on_brokers(knows, old, heartbeat_v2=True) as session:
        consumer = Consuming("billing", "orders")
        session.add_consumer(consumer)
        for _ in range(2):
            assert await session.heartbeats.beat()
        assert [each.without_sub for each in beats(knows.server)] == [False, True]
        assert [each.without_sub for each in beats(old.server)] == [False, False]
        assert beats(knows.server)[1].consumer_data_set[0].subscription_data_set == []
        assert len({each.heartbeat_fingerprint for each in beats(knows.server)}) == 1
        consumer.expression = "paid"
        await session.heartbeats.beat()
        assert not beats(knows.server)[2].without_sub
        await session.heartbeats.beat(in_full=True)
        assert not beats(knows.server)[3].without_sub
        knows.header = HeartbeatResponse(is_support_heart_beat_v2=True, is_sub_change=True)
        await session.heartbeats.beat()
        assert beats(knows.server)[4].without_sub
        await session.heartbeats.beat()
        assert not beats(knows.server)[5].without_sub  # asked to say it again


async def test_a_broker_connected_to_anew_is_told_everything_again() -> None:
    knows = Gate(short=True)
    async with (
        serving(knows.server) as (_, address),
        FaultProxy(address) as proxy,
        serving(Directory({"orders": route(broker("a", proxy.address))})) as (_, names),
        session_on(names, heartbeat_first_after=600.0, heartbeat_v2=True) as session,
    ):
        session.add_consumer(Consuming("billing", "orders"))
        await session.fetch_routes(["orders"])
        await session.heartbeats.beat()
        await session.heartbeats.beat()
        proxy.cut(reset=True)
        await until(lambda: session.calls.connected(proxy.address) is None, "the end")
        await session.heartbeats.beat()
        assert [each.without_sub for each in beats(knows.server)] == [False, True, False]


@given(st.text(), st.text(), st.integers(0, 2**62), st.integers(0, 2**62))
def test_fingerprints_depend_on_what_is_subscribed_alone(
    one: str, other: str, version: int, later: int
) -> None:
    def told(client: str, sub_version: int, expression: str = "*") -> Heartbeat:
        each = Subscription(topic="orders", sub_string=expression, sub_version=sub_version)
        data = ConsumerData(group_name="billing", subscription_data_set=[each])
        return Heartbeat(client_id=client, consumer_data_set=[data])

    fingerprint = fingerprint_of(told(one, version))
    assert fingerprint == fingerprint_of(told(other, later))
    assert fingerprint != 0
    assert -(2**31) <= fingerprint < 2**31
    assert fingerprint != fingerprint_of(told(one, version, "paid"))
