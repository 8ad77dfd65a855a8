"""STICKY as a strategy: by name, for one topic without owners, and over all topics."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance import allocation
from pocketmq.balance.sticky import Sticky, assign, assign_mixed, minimum_moves
from pocketmq.balance.strategies import STRATEGY_NAMES, strategy_by_name
from pocketmq.errors import AllocationInputInvalid, StrategyUnknown
from pocketmq.model import MessageQueue, sort_queues

MEMBERS = st.lists(st.sampled_from(list("abcdefgh")), min_size=1, max_size=8, unique=True)
COUNTS = st.dictionaries(st.sampled_from("TUV"), st.integers(1, 9), min_size=1)


def topics_of(counts: dict[str, int]) -> dict[str, list[MessageQueue]]:
    return {topic: [MessageQueue(topic, "b", n) for n in range(m)] for topic, m in counts.items()}


def test_sticky_is_made_by_name_with_the_strategy_of_foreign_members() -> None:
    assert strategy_by_name("sticky") == Sticky(allocation.Average())
    settings = allocation.StrategySettings(mixed="avg_by_circle")
    assert strategy_by_name("STICKY", settings) == Sticky(allocation.AverageByCircle())
    rooms = allocation.StrategySettings(
        rooms=frozenset({"r"}), mixed="MACHINE_ROOM", virtual_nodes=3
    )
    assert strategy_by_name("STICKY", rooms) == Sticky(allocation.MachineRoom(frozenset({"r"})))
    hashed = allocation.StrategySettings(virtual_nodes=3, mixed="CONSISTENT_HASH")
    assert strategy_by_name("STICKY", hashed) == Sticky(allocation.ConsistentHash(3))


def test_sticky_is_a_name_but_not_one_of_javas() -> None:
    assert (*allocation.JAVA_STRATEGY_NAMES, "STICKY") == STRATEGY_NAMES
    with pytest.raises(StrategyUnknown):
        strategy_by_name("MACHINE_ROOM_NEARBY-STICKY")
    with pytest.raises(StrategyUnknown, match="did you mean STICKY"):
        strategy_by_name("STIKY")


def test_foreign_members_cannot_use_sticky() -> None:
    with pytest.raises(AllocationInputInvalid, match="`mixed` must be one of Java's strategies"):
        strategy_by_name("STICKY", allocation.StrategySettings(mixed="Sticky"))
    with pytest.raises(StrategyUnknown) as caught:
        strategy_by_name("STICKY", allocation.StrategySettings(mixed="STIKY"))
    assert caught.value.known == allocation.JAVA_STRATEGY_NAMES


def test_only_sticky_works_over_all_topics() -> None:
    settings = allocation.StrategySettings(rooms=frozenset({"r"}))
    groupwide = [
        name
        for name in STRATEGY_NAMES
        if allocation.is_group_strategy(strategy_by_name(name, settings))
    ]
    assert groupwide == ["STICKY"]


@given(COUNTS, MEMBERS)
def test_without_owners_every_member_gets_its_part_of_the_whole(
    counts: dict[str, int], members: list[str]
) -> None:
    sticky: allocation.Strategy = Sticky()
    for queues in map(sort_queues, topics_of(counts).values()):
        owners = assign({queues[0].topic: queues}, members, {})
        assert sticky.allocate_all(queues, members) == [owners[queue] for queue in queues]
        for member in members:
            share = [queue for queue in queues if owners[queue] == member]
            assert allocation.allocate(sticky, "g", member, queues, members) == share


def test_guards_are_those_of_the_other_strategies() -> None:
    queues = [MessageQueue("T", "b", 0)]
    with pytest.raises(AllocationInputInvalid, match="there are no queues"):
        Sticky().allocate("g", "a", [], ["a"])
    with pytest.raises(AllocationInputInvalid, match="there are no members"):
        Sticky().allocate_all(queues, [])
    assert Sticky().allocate("g", "x", queues, ["a"]) == []
    assert Sticky().allocate_all(queues, [""]) == [None]


@given(COUNTS, MEMBERS, st.sets(st.sampled_from("ijk")), st.data())
def test_what_moves_is_the_minimum_and_foreign_shares_are_java_s(
    counts: dict[str, int], ours: list[str], foreign: set[str], data: st.DataObject
) -> None:
    topics = topics_of(counts)
    everybody = st.sampled_from([None, *ours, *sorted(foreign), "gone"])
    previous = {queue: data.draw(everybody) for queues in topics.values() for queue in queues}
    sticky = Sticky(allocation.AverageByCircle())
    owners = sticky.assign(topics, ours, previous, sorted(foreign))
    assert owners == assign_mixed(
        topics, ours, foreign, previous, strategy=allocation.AverageByCircle()
    )
    moved = sum(previous[queue] not in {None, owner} for queue, owner in owners.items())
    assert sticky.minimum_moves(topics, ours, previous, sorted(foreign)) == moved
    for queues, member in product(topics.values(), foreign):
        share = [queue for queue in queues if owners[queue] == member]
        everyone = [*ours, *foreign]
        assert share == allocation.allocate(
            allocation.AverageByCircle(), "g", member, queues, everyone
        )


def test_absent_queues_count_unless_there_are_foreign_members() -> None:
    topics = topics_of({"T": 2})
    absent = [MessageQueue("T", "away", n) for n in range(2)]
    previous = dict.fromkeys(topics["T"], "a") | dict.fromkeys(absent, "b")
    assert Sticky().assign(topics, ["a", "b"], previous, absent=absent) == previous_of(previous)
    assert minimum_moves(topics, ["a", "b"], previous, absent) == 0
    assert Sticky().minimum_moves(topics, ["a", "b"], previous, absent=absent) == 0
    assert Sticky().minimum_moves(topics, ["a", "b"], previous) == 1
    beside = Sticky().assign(topics, ["a", "b"], previous, ["z"], absent)
    assert set(beside.values()) == {"a", "b"}


def previous_of(previous: dict[MessageQueue, str]) -> dict[MessageQueue, str]:
    return {queue: owner for queue, owner in previous.items() if queue.broker_name == "b"}
