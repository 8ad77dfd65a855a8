"""Adaptive producers against sick brokers, in simulated time: counts and shares, no clocks."""

import pytest

from pocketmq.balance.producer.plan import SendMode
from tests.client.producer import simulated

SICK = {
    "killed": simulated.killed, "stopped": simulated.stopped, "5 x slow": simulated.slower(5), "20 x slow": simulated.slower(20),
    "100 x slow": simulated.slower(100), "gray": simulated.gray, "hiccups": simulated.hiccups, "flapping": simulated.flapping,
}  # fmt: skip
faults = pytest.mark.parametrize("fault", SICK.values(), ids=SICK)
fleets = pytest.mark.parametrize("brokers", [2, 8])


@faults
@fleets
def test_no_send_fails_and_a_healed_broker_has_its_share_after_five_seconds(
    brokers: int, fault: simulated.Fault
) -> None:
    world = simulated.World(brokers, fault, rate=150.0, until=29.0).run()
    assert world.errors() == 0
    fair = 1 / brokers
    assert 0.7 * fair < world.share(2, 10) < 1.3 * fair
    assert world.share(10.5, 20) < 0.9 * fair
    assert 0.7 * fair < world.share(25, 29) < 1.3 * fair


@pytest.mark.parametrize(
    "fault",
    [simulated.slower(5), simulated.slower(20), simulated.gray],
    ids=["5 x", "20 x", "gray"],
)
@fleets
def test_the_slowest_hundredth_does_not_notice_a_sick_broker(
    brokers: int, fault: simulated.Fault
) -> None:
    world = simulated.World(brokers, fault, rate=400.0, until=18.0).run()
    assert world.slowest(0.99, 10, 18) < 3 * world.slowest(0.99, 2, 10)


def test_javas_choice_does_notice_it() -> None:
    """Otherwise the test before this one would prove nothing."""
    world = simulated.World(2, simulated.slower(5), rate=400.0, until=18.0, adaptive=False).run()
    assert world.slowest(0.99, 10, 18) > 3 * world.slowest(0.99, 2, 10)
    assert (
        simulated.World(2, simulated.stopped, rate=100.0, until=20.0, adaptive=False).run().errors()
        > 0
    )


@faults
def test_one_caller_after_another_is_served_as_well(fault: simulated.Fault) -> None:
    world = simulated.World(2, fault, callers=1, until=29.0, mean=0.006).run()
    assert world.errors() == 0
    assert 0.7 * 0.5 < world.share(25, 29) < 1.3 * 0.5


def test_a_stopped_broker_costs_one_caller_one_slow_message() -> None:
    world = simulated.World(2, simulated.stopped, callers=1, until=20.0).run()
    assert sum(each.took > 0.1 for each in world.during(10, 20)) == 1
    assert [change for _, *change in world.changes] == [["0", "avoided"], ["0", "used again"]]
    assert world.changes[1][0] > 20.0


def test_refusals_of_submitted_messages_are_tried_elsewhere_too() -> None:
    assert (
        simulated.World(2, simulated.gray, rate=300.0, until=20.0, mode=SendMode.ASYNC)
        .run()
        .errors()
        == 0
    )


def test_without_a_fault_nothing_is_given_up_stored_twice_or_avoided() -> None:
    world = simulated.World(8, simulated.none, rate=1000.0, producers=4, until=6.0).run()
    assert (world.errors(), world.twice(), world.changes) == (0, 0, [])
    assert all(len(each.brokers) == 1 for each in world.sent)


def test_when_all_brokers_are_overloaded_no_try_is_given_up() -> None:
    """More tries would be more load, and the load is what makes brokers slow."""
    world = simulated.World(2, simulated.none, rate=1100.0, producers=8, until=8.0, servers=1).run()
    assert world.slowest(0.5, 5, 8) > 0.5
    assert (world.twice(), world.errors()) == (0, 0)


def test_few_messages_are_stored_twice_because_a_try_was_given_up() -> None:
    world = simulated.World(2, simulated.slower(100), rate=500.0, until=20.0).run()
    assert 0 < world.twice() < 15
    given_up = sum(each.unanswered for each in world.fleets[0].snapshot(world.now))
    assert given_up >= world.twice()
