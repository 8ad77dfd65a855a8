"""The table of groups: made by themselves or by operators, and what they may not read."""

import pytest

from pocketmq.broker.groups.table import GroupConfigTable
from pocketmq.broker.topics.table import SYSTEM_GROUP_NAMES, system_groups
from pocketmq.errors import AttributeRefused
from pocketmq.model import DataVersion, GroupConfig


def group(name: str, **attributes: str) -> GroupConfig:
    return GroupConfig(group_name=name, attributes=attributes)


@pytest.fixture
def table() -> GroupConfigTable:
    return GroupConfigTable(system_groups(), now_ms=1)


def test_a_broker_knows_rocketmqs_own_groups(table: GroupConfigTable) -> None:
    assert tuple(table.entries) == SYSTEM_GROUP_NAMES
    assert table.unsaved() == {}


def test_a_group_is_made_when_it_is_first_asked_for(table: GroupConfigTable) -> None:
    assert table.find("g", auto_create=True, now_ms=2) == group("g")
    assert table.version == DataVersion(timestamp=2, counter=1)
    assert table.find("g", auto_create=False, now_ms=3) == group("g")
    assert table.version.counter == 1


def test_without_auto_creation_only_rocketmqs_own_groups_are_made(table: GroupConfigTable) -> None:
    assert table.find("g", auto_create=False, now_ms=2) is None
    assert table.find("CID_RMQ_SYS_x", auto_create=False, now_ms=2) == group("CID_RMQ_SYS_x")


@pytest.mark.parametrize("name", ["", " ", "a b", "é", "g" * 121])
def test_a_group_is_not_made_with_a_name_it_cannot_have(table: GroupConfigTable, name: str) -> None:
    assert table.find(name, auto_create=True, now_ms=2) is None
    assert name not in table


def test_a_full_table_makes_no_further_groups() -> None:
    table = GroupConfigTable(limit=1)

    assert table.find("g", auto_create=True, now_ms=1) is not None
    assert table.find("h", auto_create=True, now_ms=1) is None
    assert table.find("g", auto_create=True, now_ms=1) is not None


def test_an_update_replaces_everything_but_the_attributes(table: GroupConfigTable) -> None:
    table.update(group("g", **{"+priority.factor": "5"}), 2)
    table.update(GroupConfig(group_name="g", retry_max_times=3), 3)

    assert table.get("g") == GroupConfig(
        group_name="g", retry_max_times=3, attributes={"priority.factor": "5"}
    )


def test_a_refused_attribute_leaves_the_group_as_it_was(table: GroupConfigTable) -> None:
    with pytest.raises(AttributeRefused, match=r"value is not in range\(0, 100\)"):
        table.update(group("g", **{"+priority.factor": "101"}), 2)

    assert "g" not in table


def test_reading_is_forbidden_for_one_topic_and_allowed_again(table: GroupConfigTable) -> None:
    table.allow_reading("g", "T", allowed=False, now_ms=2)
    table.allow_reading("g", "U", allowed=False, now_ms=3)
    table.allow_reading("g", "U", allowed=True, now_ms=4)

    assert not table.may_read("g", "T")
    assert table.may_read("g", "U")
    assert table.may_read("h", "T")
    assert table.forbidden.entries == {"g": {"T": 4}}
    assert table.version.counter == 3
    table.allow_reading("g", "T", allowed=False, now_ms=5)
    assert table.version.counter == 3


def test_a_deleted_group_is_forbidden_nothing(table: GroupConfigTable) -> None:
    table.update(group("g"), 2)
    table.allow_reading("g", "T", allowed=False, now_ms=2)
    table.saved(table.unsaved())
    table.forbidden.saved(table.forbidden.unsaved())

    assert table.remove("g", 3)
    assert table.may_read("g", "T")
    assert table.unsaved() == {"g": None}
    assert table.forbidden.unsaved() == {"g": None}
    assert not table.remove("g", 4)


def test_documents_bring_groups_and_prohibitions_back(table: GroupConfigTable) -> None:
    table.update(GroupConfig(group_name="g", retry_queue_nums=3, consume_enable=False), 2)
    table.allow_reading("g", "T", allowed=False, now_ms=2)
    again = GroupConfigTable(system_groups())
    again.load((name, text) for name, text in table.unsaved().items() if text)
    again.forbidden.load((name, text) for name, text in table.forbidden.unsaved().items() if text)

    assert again.entries == table.entries
    assert again.forbidden.entries == {"g": {"T": 4}}
