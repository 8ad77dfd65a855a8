"""The machine of a member, run: no event is lost, no broker forgotten."""

import asyncio

import pytest

from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.messages import Hello
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
        await until(lambda: "broker-0" not in sticky._group.down, "the broker to be up")


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


async def test_an_instruction_that_fails_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The timer is the last one: without it the member would never do anything again."""

    def fail(_: object) -> None:
        raise RuntimeError("nobody expected this")

    async with shell() as a:
        sticky = a.sticky
        sticky._at_once[do.AskMembers] = fail
        for member in ("10.0.0.1@x@pm1", "10.0.0.1@y@pm1"):
            sticky._post(events.Heard("broker-0", member, member, Hello()))
        await until(lambda: "AskMembers" in caplog.text, "the failure")
        assert not sticky._events
        assert sticky._timer is not None
        assert sticky._timer.when() == sticky._group.wake_at
        sticky._at_once[do.AskMembers] = lambda _: sticky._listing.ask_soon()


async def test_an_event_that_fails_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with shell() as a:
        sticky = a.sticky
        sticky._post(None)  # type: ignore[arg-type] # as one that the machine does not bear
        sticky._post(events.Disconnected("broker-0"))
        await until(lambda: "broker-0" in sticky._group.down, "the second event")
        assert "hand-over event failed" in caplog.text
        sticky._post(events.Connected("broker-0"))


async def test_many_events_leave_others_their_turn_on_the_loop() -> None:
    async with shell() as a:
        sticky = a.sticky
        for _ in range(5000):
            sticky._post(events.Heard("broker-0", "10.0.0.1@x@pm1", "boot", Hello()))
        await asyncio.sleep(0)
        assert 0 < len(sticky._events) < 5000
        await until(lambda: not sticky._events, "all events")
