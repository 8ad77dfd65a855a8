"""One group stands for all of its shape only where their names change no number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.allocation import Average, AverageByCircle, Strategy
from pocketmq.balance.sticky import Sticky
from pocketmq.pipelines.fleet import (
    AddBroker,
    AddQueues,
    Estate,
    FleetEvent,
    Group,
    Join,
    Leave,
    LoseBroker,
    SwitchTo,
    uniform_estate,
)
from pocketmq.pipelines.fleet.part import measure
from tests.pipelines.test_fleet import numbers_alone, possible

layouts = st.lists(
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 6), min_size=1),
    min_size=1,
    max_size=3,
)
events = st.lists(
    st.one_of(
        st.builds(Join, st.sampled_from(["new", "newer"])),
        st.builds(Leave, st.sampled_from([1, -1, "new"])),
        st.builds(LoseBroker, st.just("b")),
        st.builds(AddBroker, st.just("c"), st.integers(1, 4)),
        st.builds(SwitchTo, st.sampled_from([Average(), Sticky()])),
    ),
    max_size=4,
)


def same_shape(
    layout: list[dict[str, int]], members: int, prefixes: list[str], groups: int = 6
) -> Estate:
    """Return groups that differ in the names of their topics and members alone."""
    topics = [(f"{prefixes[n]}{'xyz'[n]}", brokers) for n, brokers in enumerate(layout)]
    return Estate(
        {f"{topic}-{n}": brokers for n in range(groups) for topic, brokers in topics},
        {
            f"g{n}": Group(
                tuple([f"{topic}-{n}" for topic, _ in topics]),
                tuple([f"m{m}.{n}" for m in range(members)]),
            )
            for n in range(groups)
        },
    )


@settings(max_examples=120)
@given(
    layout=layouts,
    members=st.integers(0, 5),
    prefixes=st.lists(st.sampled_from(["", "", "", "%RETRY%"]), min_size=3, max_size=3),
    happening=events,
    strategy=st.sampled_from([Sticky(), Sticky(), AverageByCircle()]),
)
def test_groups_of_one_shape_have_the_numbers_they_have_alone(
    layout: list[dict[str, int]],
    members: int,
    prefixes: list[str],
    happening: list[FleetEvent],
    strategy: Strategy,
) -> None:
    estate = same_shape(layout, members, prefixes)
    happening = possible(estate, happening)
    stories = measure(estate, strategy, happening)
    for name, story in zip(estate.groups, stories, strict=True):
        assert story == numbers_alone(estate, name, strategy, happening)


COMPUTED_ONCE: list[tuple[int, list[FleetEvent]]] = [
    (64, [Join("new")]),
    (64, [Join("new"), AddQueues(1), Join("newer")]),
    (64, [Leave(1), Join("new")]),
    (65, [Join("new"), AddBroker("more", 3), SwitchTo(Sticky())]),
]


@pytest.mark.parametrize(("queues", "happening"), COMPUTED_ONCE)
def test_sticky_is_computed_once_where_names_show_nowhere(
    queues: int, happening: list[FleetEvent]
) -> None:
    estate = even(queues)
    assert len({id(story) for story in measure(estate, Sticky(), happening)}) == 1


def even(queues: int) -> Estate:
    return uniform_estate(groups=40, queues=queues, members=16)


NAMES_SHOW: dict[str, tuple[Estate, list[FleetEvent]]] = {
    "who has one more leaves": (even(65), [Leave(1)]),
    "who got one more leaves": (even(64), [Join("new"), Leave(1)]),
    "a broker is lost": (even(64), [LoseBroker("broker-1")]),
    "another strategy follows": (even(64), [SwitchTo(Average())]),
    "extras of topics meet": (same_shape([{"a": 1}, {"a": 1}, {"a": 5}], 3, [""] * 3, 30), [Join("n")]),
    "pools add up": (same_shape([{"a": 5}, {"a": 5}], 4, ["", "%RETRY%"], 30), []),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES_SHOW)
def test_sticky_differs_between_groups_where_names_show(case: str) -> None:
    estate, happening = NAMES_SHOW[case]
    stories = measure(estate, Sticky(), happening)
    assert len({tuple(story) for story in stories}) > 1
    name, *_ = estate.groups
    assert stories[0] == numbers_alone(estate, name, Sticky(), happening)


def test_a_group_without_members_gets_and_loses_its_first() -> None:
    estate = same_shape([{"a": 3}, {"b": 2}], 0, ["", ""])
    happening: list[FleetEvent] = [Join("new"), AddBroker("c", 1), Leave("new"), AddBroker("d", 2)]
    stories = measure(estate, Sticky(), happening)
    assert stories == [numbers_alone(estate, name, Sticky(), happening) for name in estate.groups]
    assert [numbers.moved for numbers in stories[0]] == [0, 5, 0, 7, 0]
