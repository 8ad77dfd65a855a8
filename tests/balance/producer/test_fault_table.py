"""The fault table: pauses, reachability, and what is shown of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.producer.fault_table import BrokerHealth, FaultTable, Probe, plan_round
from pocketmq.balance.profile import RULES, V4, V5, Profile, rules_of
from pocketmq.errors import InvalidInput

LINES = pytest.mark.parametrize("profile", [V4, V5], ids=["4.x", "5.x"])


@pytest.mark.parametrize(
    ("latency", "pause_4x", "pause_5x"),
    [
        (0.0, 0, 0),
        (0.049, 0, 0),
        (0.05, 0, 0),
        (0.1, 0, 0),
        (0.549, 0, 0),
        (0.55, 30, 2),
        (0.999, 30, 2),
        (1.0, 60, 2),
        (1.799, 60, 2),
        (1.8, 60, 5),
        (2.0, 120, 5),
        (2.999, 120, 5),
        (3.0, 180, 6),
        (5.0, 180, 10),
        (10.0, 180, 10),  # what a failure counts as in 5.x
        (14.999, 180, 10),
        (15.0, 600, 30),
        (30.0, 600, 30),  # what a failure counts as in 4.x
    ],
)
def test_a_slow_answer_earns_a_pause(latency: float, pause_4x: float, pause_5x: float) -> None:
    assert rules_of(V4).pause_for(latency) == pause_4x
    assert rules_of(V5).pause_for(latency) == pause_5x


@pytest.mark.parametrize(("profile", "pause"), [(V4, 600.0), (V5, 10.0)])
def test_a_failure_isolates_the_broker_however_quick_it_was(profile: Profile, pause: float) -> None:
    table = FaultTable(profile)
    table.update("b", 0.001, isolate=True, now=100.0)
    assert not table.is_available("b", 100.0 + pause - 0.001)
    assert table.is_available("b", 100.0 + pause)


@pytest.mark.parametrize(
    ("profile", "updates", "until"),
    [
        # updates are (now, latency, isolate)
        (V4, [(0, 0.6, False)], 30),
        (V4, [(0, 0.6, False), (1, 0.01, False)], 1),  # one quick answer brings it back
        (V4, [(0, 0.01, True), (1, 0.6, False)], 31),
        (V5, [(0, 0.6, False)], 2),
        (V5, [(0, 0.6, False), (1, 0.01, False)], 2),  # no pause never shortens one
        (V5, [(0, 0.01, True), (1, 0.6, False)], 10),
        (V5, [(0, 0.6, False), (1, 0.6, False)], 3),
        (V5, [(0, 20.0, False), (1, 0.01, True)], 30),
    ],
)
def test_4x_overwrites_a_pause_and_5x_only_extends_it(
    profile: Profile, updates: list[tuple[float, float, bool]], until: float
) -> None:
    table = FaultTable(profile)
    for now, latency, isolate in updates:
        table.update("b", latency, isolate=isolate, now=now)
    (health,) = table.snapshot(updates[-1][0])
    assert updates[-1][0] + health.available_in == until


@LINES
def test_an_unknown_broker_is_available_and_reachable(profile: Profile) -> None:
    table = FaultTable(profile)
    assert table.is_available("b", 0.0)
    assert table.is_reachable("b")
    assert table.snapshot(0.0) == ()
    assert table.least_bad(0.0) is None


@pytest.mark.parametrize(("profile", "reachable"), [(V4, True), (V5, False)])
def test_only_5x_remembers_that_a_broker_was_unreachable(profile: Profile, reachable: bool) -> None:
    table = FaultTable(profile)
    table.update("b", 0.0, isolate=True, reachable=False, now=0.0)
    assert table.is_reachable("b") is reachable
    table.mark_reachable("b")
    assert table.is_reachable("b")
    assert not table.is_available("b", 0.0)  # a probe does not end the pause


@LINES
def test_a_snapshot_says_what_the_table_decides_to_the_moment(profile: Profile) -> None:
    table = FaultTable(profile)
    table.update("b", 1.0, isolate=True, now=0.0)
    (health,) = table.snapshot(0.0)
    for now in (health.available_in - 0.001, health.available_in, health.available_in + 1.0):
        (then,) = table.snapshot(now)
        assert then.available is table.is_available("b", now)
        assert then.available is (then.available_in == 0.0)


def test_marking_an_unknown_broker_reachable_does_not_make_it_known() -> None:
    table = FaultTable(V5)
    table.mark_reachable("b")
    assert table.snapshot(0.0) == ()


def test_a_success_makes_a_broker_reachable_again() -> None:
    table = FaultTable(V5)
    table.update("b", 0.0, isolate=True, reachable=False, now=0.0)
    table.update("b", 0.01, isolate=False, now=1.0)
    assert table.is_reachable("b")
    assert not table.is_available("b", 1.0)


def test_the_better_half_take_turns_when_all_are_bad() -> None:
    table = FaultTable(V4, worst_index=-1)
    for broker, latency in (("d", 9.0), ("b", 2.0), ("a", 3.0), ("c", 4.0), ("e", 8.0)):
        table.update(broker, latency, isolate=True, now=0.0)
    # sorted by latency: b a c e d; half of five is two
    assert [table.least_bad(1.0) for _ in range(4)] == ["b", "a", "b", "a"]


def test_the_single_bad_broker_is_the_least_bad() -> None:
    table = FaultTable(V4)
    table.update("a", 1.0, isolate=True, now=0.0)
    assert [table.least_bad(1.0) for _ in range(2)] == ["a", "a"]


def test_available_brokers_are_better_than_quicker_ones_and_sooner_ones_than_later() -> None:
    table = FaultTable(V4)
    table.update("quick", 0.1, isolate=True, now=0.0)
    table.update("available", 0.5, isolate=False, now=0.0)
    assert table.least_bad(1.0) == "available"
    table = FaultTable(V4)
    table.update("later", 0.1, isolate=True, now=5.0)
    table.update("sooner", 0.1, isolate=True, now=4.0)
    assert table.least_bad(6.0) == "sooner"


def test_a_snapshot_says_who_is_avoided_why_and_for_how_long() -> None:
    table = FaultTable(V5)
    table.update("b", 0.7, isolate=False, now=10.0)
    table.update("a", 0.2, isolate=True, reachable=False, now=10.0)
    table.update("c", 0.003, isolate=False, now=10.0)
    assert table.snapshot(11.0) == (
        BrokerHealth(
            broker="a",
            latency=0.2,
            available=False,
            available_in=9.0,
            reachable=False,
            reason="a try failed: avoided for 10 s",
        ),
        BrokerHealth(
            broker="b",
            latency=0.7,
            available=False,
            available_in=1.0,
            reachable=True,
            reason="a try took 0.700 s: avoided for 2 s",
        ),
        BrokerHealth(
            broker="c", latency=0.003, available=True, available_in=0.0, reachable=True, reason=""
        ),
    )
    table.forget("a")
    table.forget("nobody")
    assert [health.broker for health in table.snapshot(11.0)] == ["b", "c"]


@LINES
def test_the_table_works_on_any_clock_that_does_not_run_backwards(profile: Profile) -> None:
    table = FaultTable(profile)
    table.update("b", 0.001, isolate=False, now=-5000.0)
    assert table.is_available("b", -5000.0)


def test_a_line_nobody_knows_has_no_rules() -> None:
    with pytest.raises(InvalidInput, match=r"unknown client line '6\.x'"):
        FaultTable(msgspec.structs.replace(V5, line="6.x"))


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 40), st.booleans()), max_size=12))
def test_in_5x_a_broker_never_comes_back_sooner_by_a_later_try(
    steps: list[tuple[float, float, bool]],
) -> None:
    table = FaultTable(V5)
    now, until = 0.0, 0.0
    for wait, latency, isolate in steps:
        now += wait
        table.update("b", latency, isolate=isolate, now=now)
        (health,) = table.snapshot(now)
        back = now + health.available_in
        assert back >= until - 1e-9
        until = back


@given(st.floats(0, 100), st.floats(0, 100))
def test_a_slower_answer_never_earns_a_shorter_pause(one: float, other: float) -> None:
    for rules in RULES.values():
        slow, quick = max(one, other), min(one, other)
        assert rules.pause_for(slow) >= rules.pause_for(quick)


ADDRESSES = {"a": "10.0.0.1:10911", "b": "10.0.0.2:10911"}


def table(profile: Profile = V5, *, detector: bool = True) -> FaultTable:
    made = FaultTable(profile, detector=detector)
    made.update("a", 0.1, isolate=True, reachable=False, now=0.0)
    made.update("b", 0.1, isolate=False, now=0.0)
    return made


def test_every_known_broker_is_probed_at_first_with_little_patience() -> None:
    assert plan_round(table(), ADDRESSES.get, 3.0) == [
        Probe("a", "10.0.0.1:10911", 0.2),
        Probe("b", "10.0.0.2:10911", 0.2),
    ]


def test_a_broker_is_due_again_after_two_seconds() -> None:
    faults = table()
    rounds = [(now, len(plan_round(faults, ADDRESSES.get, now))) for now in (3.0, 4.9, 5.0, 6.0)]
    assert rounds == [(3.0, 2), (4.9, 0), (5.0, 2), (6.0, 0)]


def test_a_broker_whose_address_is_unknown_is_forgotten() -> None:
    faults = table()
    assert plan_round(faults, {"b": "10.0.0.2:10911"}.get, 3.0) == [
        Probe("b", "10.0.0.2:10911", 0.2)
    ]
    assert [health.broker for health in faults.snapshot(3.0)] == ["b"]
    assert faults.is_reachable("a")


def test_silence_changes_nothing_and_an_answer_makes_reachable() -> None:
    faults = table()
    plan_round(faults, ADDRESSES.get, 3.0)
    assert not faults.is_reachable("a")
    faults.mark_reachable("a")
    assert faults.is_reachable("a")


def test_a_broker_that_failed_again_is_not_probed_sooner() -> None:
    faults = table()
    plan_round(faults, ADDRESSES.get, 3.0)
    faults.update("a", 0.1, isolate=True, reachable=False, now=3.5)
    assert plan_round(faults, ADDRESSES.get, 4.0) == []


def test_nothing_is_probed_unless_asked_for_and_never_in_4x() -> None:
    assert plan_round(table(detector=False), ADDRESSES.get, 3.0) == []
    assert plan_round(table(V4), ADDRESSES.get, 3.0) == []
