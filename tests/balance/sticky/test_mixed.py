"""Foreign members keep Java's shares, and ours are the exact complement."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance import allocation
from pocketmq.balance.sticky import assign, assign_mixed, divide, minimum_moves
from pocketmq.model import MessageQueue
from tests.balance.sticky.shapes import Group, groups, moves, spreads, topic

VECTORS = Path(__file__).parents[2] / "vectors" / "java-allocation.jsonl"
PLAIN: list[allocation.Strategy] = [
    allocation.Average(),
    allocation.AverageByCircle(),
    allocation.ConsistentHash(),
]
JAVA: dict[str, allocation.Strategy] = {strategy.name: strategy for strategy in PLAIN} | {
    "NEARBY": allocation.MachineRoomNearby(allocation.Average(), allocation.RoomInName())
}


def java_cases() -> list[dict[str, Any]]:
    """Return the vectors in which the member that Java was asked for is listed, and not alone."""
    lines = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    return [line for line in lines if line["cid"] in line["cids"] and len(set(line["cids"])) > 1]


@pytest.mark.parametrize("name", JAVA)
def test_on_javas_vectors_the_foreign_member_keeps_its_share_and_ours_the_rest(name: str) -> None:
    checked = 0
    for line in java_cases():
        if isinstance(line[name], dict):  # Java threw
            continue
        queues = [MessageQueue(line["topic"], *queue) for queue in line["mqs"]]
        foreign = [member for member in line["cids"] if member == line["cid"]]
        ours = [member for member in line["cids"] if member != line["cid"]]
        owners = assign_mixed({line["topic"]: queues}, ours, foreign, {}, strategy=JAVA[name])
        theirs = {queue for queue, owner in owners.items() if owner == line["cid"]}
        assert theirs == {MessageQueue(line["topic"], *queue) for queue in line[name]}
        assert owners.keys() == set(queues)
        rest = {queue: owner for queue, owner in owners.items() if queue not in theirs}
        assert set(rest.values()) <= set(ours)
        assert max(spreads(rest, set(ours)), default=0) <= 1
        checked += 1
    assert checked > 500


@pytest.mark.parametrize("strategy", PLAIN, ids=lambda strategy: strategy.name)
@settings(max_examples=40, deadline=None)
@given(group=groups(), data=st.data())
def test_foreign_members_have_javas_share_and_ours_divide_the_rest_with_fewest_moves(
    strategy: allocation.Strategy, group: Group, data: st.DataObject
) -> None:
    foreign = data.draw(st.lists(st.sampled_from(group.members), unique=True))
    ours = [member for member in group.members if member not in foreign]
    owners = assign_mixed(group.topics, ours, foreign, group.previous, strategy=strategy)
    for member in foreign:
        for queues in group.topics.values():
            share = (
                allocation.allocate(strategy, "g", member, queues, group.members) if queues else []
            )
            assert {q for q in queues if owners.get(q) == member} == set(share)
    if not ours:
        return
    assert owners.keys() == set(group.queues)
    rest = {queue: owner for queue, owner in owners.items() if owner in ours}
    assert max(spreads(rest, ours), default=0) <= 1
    division = divide(group.topics, ours, foreign, strategy=strategy)
    assert moves(group.previous, rest) == minimum_moves(division.rest, ours, group.previous)


@settings(max_examples=60, deadline=None)
@given(groups(), st.randoms(use_true_random=False))
def test_a_mixed_group_is_confluent(group: Group, random: Random) -> None:
    ours, foreign = group.members[::2], group.members[1::2]
    target = assign_mixed(group.topics, ours, foreign, group.previous)
    state = {q: random.choice([o, None, target[q]]) for q, o in group.previous.items()}
    stays = {q: o for q, o in group.previous.items() if o == target[q]}
    assert assign_mixed(group.topics, ours, foreign, state | stays) == target


def test_without_foreign_members_all_is_divided_by_the_sticky_rule() -> None:
    topics = {"orders": topic("orders", 7), "empty": []}
    assert assign_mixed(topics, ["a", "b"], [], {}) == assign(topics, ["a", "b"], {})


def test_without_members_of_ours_the_rest_stays_free() -> None:
    queues = topic("orders", 4)
    assert assign_mixed({"orders": queues}, [], ["java"], {}) == dict.fromkeys(queues, "java")
    assert assign_mixed({"orders": queues}, [], [], {}) == {}


def test_what_a_repeated_foreign_id_leaves_in_java_is_taken_by_ours() -> None:
    """Java deals to every position of the list, but a member finds only its first."""
    queues = topic("orders", 6, brokers=1)
    owners = assign_mixed({"orders": queues}, ["b"], ["a", "a"], {})
    assert [owners[queue] for queue in queues] == ["a", "a", "b", "b", "b", "b"]


def test_a_queue_that_the_strategy_gives_to_several_is_the_foreign_members() -> None:
    queues = topic("orders", 3)
    configured = allocation.Configured((queues[1], MessageQueue("orders", "elsewhere", 9)))
    owners = assign_mixed({"orders": queues}, ["a"], ["java"], {}, strategy=configured)
    assert owners == {queues[0]: "a", queues[1]: "java", queues[2]: "a"}
