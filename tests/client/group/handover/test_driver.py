"""The machine of a member, run: no event is lost, no broker forgotten."""

import asyncio

from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.handover import events
from tests.client.group.handover.test_queues import shell
from tests.loops import until


async def test_a_broker_that_refused_the_first_heartbeat_is_greeted_again() -> None:
    async with shell() as a:
        sticky, session = a.sticky, a.parts.session
        (place,) = session.addresses.places(masters_only=True)
        refused = asyncio.Event()

        async def beat() -> bool:
            await refused.wait()
            return False

        sticky.broker_lost(place.address)
        await until(lambda: "broker-0" in sticky._group.down, "the broker to be down")
        beating = session.heartbeats._beating
        beating[place.address] = in_flight = asyncio.create_task(beat())
        in_flight.add_done_callback(lambda _: beating.pop(place.address))
        sticky.tell(when.BrokerChannelActive(place.address))
        refused.set()
        await until(lambda: "broker-0" not in sticky._group.down, "the broker to be up", 3)


async def test_a_connection_that_was_replaced_before_it_closed_is_not_missed() -> None:
    async with shell() as a:
        sticky, session = a.sticky, a.parts.session
        (place,) = session.addresses.places(masters_only=True)
        connection = session.calls.connected(place.address)
        assert connection is not None
        session.connection_closed(connection, None)  # as of the one before
        assert events.Disconnected("broker-0") not in sticky._events
        connection.close()
        session.connection_closed(connection, None)
        assert events.Disconnected("broker-0") in sticky._events
