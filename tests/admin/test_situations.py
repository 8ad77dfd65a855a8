"""A live group as a situation: who is foreign, and whose owners count."""

from typing import Any

import msgspec
import pytest

from pocketmq.admin.balance import foreign_members, settings_of, situation_of
from pocketmq.admin.facts import GroupFacts, balance_reports
from pocketmq.balance.allocation import Average, StrategySettings
from pocketmq.balance.sticky import Sticky
from pocketmq.errors import Absent
from pocketmq.model import MessageQueue
from tests.admin.test_findings import HEALTHY, QUEUES, info, view

A, B, JAVA = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1", "10.0.0.9@77"


def group(**held: list[MessageQueue]) -> GroupFacts:
    """Return a group in which members named A, B and JAVA own these queues."""
    names = {"A": A, "B": B, "JAVA": JAVA}
    running = {names[name]: info(*queues) for name, queues in held.items()}
    return msgspec.structs.replace(
        HEALTHY,
        views={"a": view(*running)},
        running=running,
        reports=balance_reports(running, HEALTHY.queues),
    )


def test_owners_count_for_sticky_alone() -> None:
    """A Java strategy does not see them, and its previews stay as they are."""
    facts = group(A=[QUEUES[3], MessageQueue("%RETRY%g", "a", 0)], B=[QUEUES[0], QUEUES[3]])
    sticky = situation_of(facts, Sticky())
    assert sticky.previous == {QUEUES[3]: A, QUEUES[0]: B}
    assert (sticky.members, sticky.group) == ((A, B), HEALTHY.group)
    assert situation_of(facts, Average()).previous == {}


def test_members_without_the_mark_are_foreign_beside_marked_ones() -> None:
    assert foreign_members([A, B, JAVA]) == [JAVA]
    assert foreign_members([A, B]) == []
    assert foreign_members([JAVA, "c1"]) == []
    found = situation_of(group(A=[], JAVA=[]), Sticky(), ["joiner"])
    assert found.foreign == {JAVA, "joiner"}
    assert situation_of(HEALTHY, Sticky()).foreign == set()


def test_the_strategy_of_foreign_members_is_read_off_what_they_own() -> None:
    """Of four queues and three members AVG gives the last member the last, the circle the third."""
    assert settings_of(HEALTHY) == StrategySettings()
    assert settings_of(group(A=[], B=[], JAVA=[])).mixed == "AVG"
    assert settings_of(group(A=[*QUEUES[:2]], B=[QUEUES[2]], JAVA=[QUEUES[3]])).mixed == "AVG"
    circle = group(A=[QUEUES[0], QUEUES[3]], B=[QUEUES[1]], JAVA=[QUEUES[2]])
    assert settings_of(circle).mixed == "AVG_BY_CIRCLE"


def test_a_group_without_members_has_no_situation() -> None:
    nobody: dict[str, Any] = {"views": {}, "running": {}}
    with pytest.raises(Absent, match="online member"):
        situation_of(msgspec.structs.replace(HEALTHY, **nobody), Sticky())
