"""The table of offsets: commits, resets, whole groups and topics, and what is left to save."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.offsets.table import ConsumerOffsetTable, Unsaved


def test_what_is_committed_is_found() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 3, 42)

    assert table.query("g", "t", 3) == 42
    assert table.query("g", "t", 4) is None
    assert table.query("h", "t", 3) is None
    assert table.query("g", "u", 3) is None


def test_a_smaller_offset_overwrites_a_larger_one() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 42)
    table.commit("g", "t", 0, 7)

    assert table.query("g", "t", 0) == 7


def test_what_was_pulled_comes_before_what_was_committed() -> None:
    table = ConsumerOffsetTable()
    assert table.query_pull("g", "t", 0) is None
    table.commit("g", "t", 0, 5)
    assert table.query_pull("g", "t", 0) == 5
    table.record_pull("g", "t", 0, 9)
    table.record_pull("g", "t", 1, 2)

    assert table.query_pull("g", "t", 0) == 9
    assert table.query_pull("g", "t", 1) == 2
    assert table.query("g", "t", 0) == 5


def test_a_reset_is_committed_and_waits_for_the_next_pull() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 50)
    table.reset("g", "t", 0, 10)

    assert table.has_reset("g", "t", 0)
    assert not table.has_reset("g", "t", 1)
    table.commit("g", "t", 0, 51)  # a handler asks `has_reset` before it commits
    assert table.query("g", "t", 0) == 10
    assert table.take_reset("g", "t", 0) == 10
    assert table.take_reset("g", "t", 0) is None
    assert not table.has_reset("g", "t", 0)
    assert table.query("g", "t", 0) == 51


def test_a_reset_of_one_queue_leaves_the_others() -> None:
    table = ConsumerOffsetTable()
    table.reset("g", "t", 0, 1)
    table.reset("g", "t", 1, 2)

    assert table.take_reset("g", "t", 0) == 1
    assert table.take_reset("g", "u", 1) is None
    assert table.take_reset("g", "t", 1) == 2


def test_topics_and_groups_are_those_with_commits() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.commit("g", "u", 0, 1)
    table.commit("h", "t", 0, 1)
    table.record_pull("x", "y", 0, 1)

    assert sorted(table.topics_of("g")) == ["t", "u"]
    assert sorted(table.groups_of("t")) == ["g", "h"]
    assert table.groups_of("y") == []
    assert dict(table.offsets_of("g", "t")) == {0: 1}
    assert dict(table.offsets_of("g", "nope")) == {}


def test_a_removed_group_has_no_offsets_of_any_kind() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.record_pull("g", "t", 0, 4)
    table.reset("g", "u", 0, 2)
    table.commit("h", "t", 0, 3)
    table.remove_group("g")

    assert table.query_pull("g", "t", 0) is None
    assert table.query("g", "u", 0) is None
    assert table.query("h", "t", 0) == 3


def test_a_removed_topic_has_no_offsets_of_any_kind() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.record_pull("g", "t", 0, 4)
    table.commit("g", "u", 0, 3)
    table.remove_topic("t")

    assert table.query_pull("g", "t", 0) is None
    assert table.query("g", "u", 0) == 3


def test_a_clone_has_the_offsets_of_its_source_and_no_others() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.commit("g", "t", 1, 2)
    table.commit("h", "t", 5, 9)
    table.clone("g", "h", "t")
    table.clone("nobody", "h", "t")

    assert dict(table.offsets_of("h", "t")) == {0: 1, 1: 2}
    table.commit("h", "t", 0, 100)
    assert table.query("g", "t", 0) == 1


def test_a_group_cloned_onto_itself_stays_as_it_is() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.clone("g", "g", "t")

    assert dict(table.offsets_of("g", "t")) == {0: 1}


def test_only_changes_are_left_to_save() -> None:
    table = ConsumerOffsetTable()
    table.load([("t", "g", 0, 1), ("t", "g", 1, 2)])
    assert not table.take_unsaved()
    table.commit("g", "t", 1, 7)

    assert table.take_unsaved() == Unsaved([("t", "g", 1, 7)], [])
    assert not table.take_unsaved()


def test_an_offset_that_is_committed_again_is_not_saved_again() -> None:
    table = ConsumerOffsetTable()
    table.load([("t", "g", 0, 1)])
    table.commit("g", "t", 0, 1)
    assert not table.take_unsaved()

    table.commit("g", "t", 0, 2)
    table.commit("g", "t", 0, 2)
    lost = table.take_unsaved()
    table.commit("g", "t", 0, 2)
    assert lost == Unsaved([("t", "g", 0, 2)], [])
    assert not table.take_unsaved()

    table.not_saved(lost)
    table.commit("g", "t", 0, 2)
    assert table.take_unsaved() == lost
    table.remove_group("g")
    table.commit("g", "t", 0, 2)
    assert table.take_unsaved() == Unsaved([("t", "g", 0, 2)], [("t", "g")])


def test_what_could_not_be_saved_is_saved_the_next_time() -> None:
    table = ConsumerOffsetTable()
    table.commit("g", "t", 0, 1)
    table.commit("g", "t", 1, 1)
    table.commit("h", "t", 0, 1)
    lost = table.take_unsaved()
    table.commit("g", "t", 0, 2)
    table.remove_group("h")
    table.not_saved(lost)
    again = table.take_unsaved()

    assert sorted(again.rows) == [("t", "g", 0, 2), ("t", "g", 1, 1)]
    assert again.gone == [("t", "h")]


def test_the_version_moves_with_every_500_commits() -> None:
    table = ConsumerOffsetTable(now_ms=5)
    for _ in range(499):
        table.commit("g", "t", 0, 1)
    assert table.version(6).counter == 0
    table.commit("g", "t", 0, 1)
    moved = table.version(7)

    assert (moved.counter, moved.timestamp) == (1, 7)
    assert table.version(8) == moved


NAMES = st.sampled_from(["a", "b", "c"])
QUEUE = st.integers(0, 2)
OFFSET = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("commit"), NAMES, NAMES, QUEUE, OFFSET),
    st.tuples(st.just("reset"), NAMES, NAMES, QUEUE, OFFSET),
    st.tuples(st.just("clone"), NAMES, NAMES, NAMES),
    st.tuples(st.just("remove_group"), NAMES),
    st.tuples(st.just("remove_topic"), NAMES),
    st.tuples(st.just("save"), st.booleans()),
)


@given(st.lists(STEPS, max_size=30))
def test_what_is_saved_is_what_is_in_memory(steps: list[tuple[object, ...]]) -> None:
    """However commits, removals and failed saves mix, a last save leaves nothing behind."""
    table = ConsumerOffsetTable()
    disk: dict[tuple[str, str, int], int] = {}

    def save(unsaved: Unsaved) -> None:
        for key in [key for key in disk if key[:2] in set(unsaved.gone)]:
            del disk[key]
        for topic, group, queue_id, offset in unsaved.rows:
            disk[topic, group, queue_id] = offset

    for name, *arguments in steps:
        if name == "save":
            unsaved = table.take_unsaved()
            if arguments[0]:
                save(unsaved)
            else:
                table.not_saved(unsaved)
        else:
            action: Callable[..., object] = getattr(table, str(name))
            action(*arguments)
    save(table.take_unsaved())

    assert disk == {
        (topic, group, queue_id): offset
        for (topic, group), offsets in table.committed.items()
        for queue_id, offset in offsets.items()
    }


@pytest.mark.parametrize("kind", ["committed", "pulled"])
def test_a_commit_touches_one_queue_alone(kind: str) -> None:
    table, choice = ConsumerOffsetTable(), random.Random(7)
    act = table.commit if kind == "committed" else table.record_pull
    expected: dict[tuple[str, str], dict[int, int]] = {}
    for _ in range(300):
        topic, group = choice.choice("tuv"), choice.choice("ghi")
        queue_id, offset = choice.randrange(4), choice.randrange(99)
        act(group, topic, queue_id, offset)
        expected.setdefault((topic, group), {})[queue_id] = offset

    assert getattr(table, kind) == expected
