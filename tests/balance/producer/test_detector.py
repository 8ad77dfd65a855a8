"""The reachability detector: who is probed when."""

from pocketmq.balance.producer.detector import Probe, plan_round
from pocketmq.balance.producer.fault_table import FaultTable
from pocketmq.balance.profile import V4, V5, Profile

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
