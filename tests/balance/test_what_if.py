"""What-if: exact answers for small groups, and laws for all."""

from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance import allocation
from pocketmq.balance.what_if import (
    BrokerAdded,
    BrokerDown,
    Event,
    MemberJoined,
    MemberLeft,
    Movement,
    Ownership,
    QueuesAdded,
    Situation,
    StrategyChanged,
    WhatIf,
    WhatIfStep,
    preview,
    what_if,
)
from pocketmq.balance.what_if.movement import Move, fewest_moves
from pocketmq.balance.what_if.situation import Share, TopicBalance
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue


def queue(number: int, broker: str = "a", topic: str = "t") -> MessageQueue:
    return MessageQueue(topic, broker, number)


def situation(
    counts: dict[str, dict[str, int]],
    members: list[str],
    strategy: allocation.Strategy | None = None,
) -> Situation:
    topics = {
        topic: [queue(n, broker, topic) for broker, count in brokers.items() for n in range(count)]
        for topic, brokers in counts.items()
    }
    return Situation.of(topics, members, strategy or allocation.Average(), "g")


def test_a_preview_lists_members_in_order_with_totals_and_spread() -> None:
    found = preview(situation({"t": {"a": 3}, "u": {"a": 1}}, ["c2", "c1"]))
    assert found == Ownership(
        shares=[
            Share("c1", 3, [queue(0), queue(1), queue(0, topic="u")]),
            Share("c2", 1, [queue(2)]),
        ],
        unowned=[],
        topics=[TopicBalance("t", 3, 0, 2, 1, 1), TopicBalance("u", 1, 0, 1, 0, 1)],
        spread=2,
    )


def test_a_joiner_under_avg_moves_more_than_had_to_move() -> None:
    answer = what_if(situation({"t": {"a": 4}}, ["c1", "c2"]), [MemberJoined("c3")])
    assert answer.steps == [
        WhatIfStep(
            event="member_joined",
            subject="c3",
            strategy="AVG",
            after=Ownership(
                shares=[
                    Share("c1", 2, [queue(0), queue(1)]),
                    Share("c2", 1, [queue(2)]),
                    Share("c3", 1, [queue(3)]),
                ],
                unowned=[],
                topics=[TopicBalance("t", 4, 0, 2, 1, 1)],
                spread=1,
            ),
            movement=Movement(1, 1, [Move(queue(3), "c2", "c3")], [], []),
        )
    ]
    early = what_if(situation({"t": {"a": 4}}, ["c1", "c2"]), [MemberJoined("c0")]).overall
    assert (early.moved, early.minimum) == (3, 1)
    assert early.moves == [
        Move(queue(0), "c1", "c0"),
        Move(queue(1), "c1", "c0"),
        Move(queue(2), "c2", "c1"),
    ]


def test_a_broker_that_dies_takes_its_queues_along() -> None:
    answer = what_if(situation({"t": {"a": 2, "b": 2}}, ["c1", "c2"]), [BrokerDown("a")])
    assert answer.overall == Movement(
        moved=1,
        minimum=1,
        moves=[Move(queue(0, "b"), "c2", "c1")],
        added=[],
        removed=[Move(queue(0), "c1", None), Move(queue(1), "c1", None)],
    )


def test_a_topic_may_lose_its_last_queue_and_a_group_its_last_member() -> None:
    start = situation({"t": {"a": 2}}, ["c1"])
    gone = what_if(start, [BrokerDown("a")])
    assert gone.steps[0].after.topics == [TopicBalance("t", 0, 0, 0, 0, 0)]
    left = what_if(start, [MemberLeft("c1")])
    assert left.steps[0].after == Ownership(
        [], [queue(0), queue(1)], [TopicBalance("t", 2, 2, 0, 0, 0)], 0
    )
    assert left.overall.moves == [Move(queue(0), "c1", None), Move(queue(1), "c1", None)]
    assert left.overall.minimum == 2


def test_new_queues_are_numbered_on_and_a_new_broker_starts_at_zero() -> None:
    answer = what_if(
        situation({"t": {"a": 1}}, ["c1"]),
        [QueuesAdded("t", "a", 2), BrokerAdded("b", {"t": 1})],
    )
    assert [step.subject for step in answer.steps] == ["t:a*2", "b"]
    assert answer.steps[0].movement.added == [
        Move(queue(1), None, "c1"),
        Move(queue(2), None, "c1"),
    ]
    assert answer.steps[1].movement.added == [Move(queue(0, "b"), None, "c1")]
    assert (answer.overall.moved, answer.overall.minimum, len(answer.overall.added)) == (0, 0, 3)


def test_a_change_of_strategy_that_keeps_the_spread_had_to_move_nothing() -> None:
    answer = what_if(
        situation({"t": {"a": 4}}, ["c1", "c2"]), [StrategyChanged(allocation.AverageByCircle())]
    )
    assert answer.strategy == "AVG"
    assert answer.steps[0].strategy == "AVG_BY_CIRCLE"
    assert (answer.overall.moved, answer.overall.minimum) == (2, 0)


def test_a_second_process_with_a_known_id_leaves_queues_to_nobody() -> None:
    answer = what_if(situation({"t": {"a": 4}}, ["c1", "c2"]), [MemberJoined("c1")])
    after = answer.steps[0].after
    assert [(share.member, share.total) for share in after.shares] == [("c1", 2), ("c2", 1)]
    assert after.unowned == [queue(2)]
    back = what_if(situation({"t": {"a": 4}}, ["c1", "c2"]), [MemberJoined("c1"), MemberLeft("c1")])
    assert back.overall.moves == []


def test_steps_tell_every_move_and_the_whole_only_the_difference() -> None:
    answer = what_if(
        situation({"t": {"a": 4}}, ["c1", "c2"]), [MemberJoined("c0"), MemberLeft("c0")]
    )
    assert [step.movement.moved for step in answer.steps] == [3, 3]
    assert answer.overall == Movement(0, 0, [], [], [])


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (MemberJoined(""), "a member id must not be empty"),
        (MemberLeft("c9"), "c9 is not a member of the group"),
        (BrokerDown("z"), "broker z has no queues of these topics"),
        (BrokerAdded("a", {"t": 1}), "broker a already has queues"),
        (BrokerAdded("b", {"z": 1}), "the group does not subscribe to topic z"),
        (QueuesAdded("z", "a", 1), "the group does not subscribe to topic z"),
        (QueuesAdded("t", "z", 1), "broker z has no queues of these topics"),
        (QueuesAdded("t", "a", 0), "cannot add 0 queues of t to a; add at least 1"),
    ],
)
def test_an_event_that_cannot_happen_is_refused(event: Event, reason: str) -> None:
    with pytest.raises(AllocationInputInvalid) as caught:
        what_if(situation({"t": {"a": 2}}, ["c1"]), [event])
    assert caught.value.reason == reason


def test_a_situation_refuses_nameless_members_and_foreign_queues() -> None:
    with pytest.raises(AllocationInputInvalid, match="a member id must not be empty"):
        Situation.of({"t": [queue(0)]}, ["c1", ""], allocation.Average())
    with pytest.raises(AllocationInputInvalid, match="include one of another topic"):
        Situation.of({"t": [queue(0, topic="u")]}, ["c1"], allocation.Average())


def test_an_answer_travels_as_json() -> None:
    answer = what_if(situation({"t": {"a": 1}}, ["c1"]), [MemberJoined("c0")])
    text = msgspec.json.encode(answer)
    assert msgspec.json.decode(text, type=WhatIf) == answer
    assert msgspec.json.encode(answer.overall) == (
        b'{"moved":1,"minimum":0,"moves":[{"queue":{"topic":"t","brokerName":"a","queueId":0},'
        b'"from":"c1","to":"c0"}],"added":[],"removed":[]}'
    )


BROKERS = st.dictionaries(st.sampled_from("abr"), st.integers(1, 8), min_size=1)
COUNTS = st.dictionaries(st.sampled_from("tu"), BROKERS, min_size=1)
IDS = st.sampled_from([f"c{number}" for number in range(12)])
STRATEGIES: st.SearchStrategy[allocation.Strategy] = st.sampled_from(
    [
        allocation.Average(),
        allocation.AverageByCircle(),
        allocation.ConsistentHash(),
        allocation.ConsistentHash(1),
        allocation.MachineRoom(frozenset("r")),
    ]
)


@st.composite
def stories(draw: st.DrawFn) -> tuple[Situation, list[Event]]:
    """Draw a situation and events that can happen to it."""
    start = situation(draw(COUNTS), draw(st.lists(IDS, max_size=6)), draw(STRATEGIES))
    events: list[Event] = []
    now = start
    for _ in range(draw(st.integers(0, 4))):
        choices: list[st.SearchStrategy[Event]] = [
            st.builds(MemberJoined, IDS),
            st.builds(StrategyChanged, STRATEGIES),
        ]
        if now.members:
            choices.append(st.builds(MemberLeft, st.sampled_from(now.members)))
        if now.brokers():
            known = st.sampled_from(sorted(now.brokers()))
            choices.append(st.builds(BrokerDown, known))
            topic = st.sampled_from(sorted(now.topics))
            choices.append(st.builds(QueuesAdded, topic, known, st.integers(1, 5)))
        if "z" not in now.brokers():
            choices.append(st.just(BrokerAdded("z", dict.fromkeys(now.topics, 2))))
        events.append(draw(st.one_of(choices)))
        now = events[-1].apply(now)
    return start, events


def owner_of(ownership: Ownership) -> dict[MessageQueue, str | None]:
    owners: dict[MessageQueue, str | None] = dict.fromkeys(ownership.unowned)
    for share in ownership.shares:
        owners |= dict.fromkeys(share.queues, share.member)
    return owners


def check_movement(before: Ownership, after: Ownership, change: Movement) -> None:
    old, new = owner_of(before), owner_of(after)
    both = old.keys() & new.keys()
    moved = {(q, old[q], new[q]) for q in both if old[q] != new[q]}
    assert {(move.queue, move.previous, move.owner) for move in change.moves} == moved
    assert change.moved == len(change.moves) == len(moved)
    assert 0 <= change.minimum <= change.moved
    assert {(m.queue, m.previous, m.owner) for m in change.added} == {
        (q, None, new[q]) for q in new.keys() - both
    }
    assert {(m.queue, m.previous, m.owner) for m in change.removed} == {
        (q, old[q], None) for q in old.keys() - both
    }


def check_picture(now: Situation, picture: Ownership) -> None:
    queues = [q for share in picture.shares for q in share.queues] + picture.unowned
    expected = [q for topic in now.topics.values() for q in topic]
    assert sorted(map(str, queues)) == sorted(map(str, expected))
    totals = [share.total for share in picture.shares]
    assert totals == [len(share.queues) for share in picture.shares]
    assert picture.spread == (max(totals) - min(totals) if totals else 0)
    assert sum(topic.unowned for topic in picture.topics) == len(picture.unowned)


@settings(max_examples=150, deadline=None)
@given(stories())
def test_counts_and_lists_of_an_answer_agree_with_each_other(
    story: tuple[Situation, list[Event]],
) -> None:
    start, events = story
    answer = what_if(start, events)
    before, now = answer.before, start
    for event, step in zip(events, answer.steps, strict=True):
        now = event.apply(now)
        assert step.after == preview(now)
        check_movement(before, step.after, step.movement)
        before = step.after
        check_picture(now, before)
    check_movement(answer.before, before, answer.overall)


@settings(max_examples=150, deadline=None)
@given(
    kept=st.lists(st.sampled_from(["a", "b", "gone", None]), max_size=5),
    new_owners=st.lists(st.sampled_from(["a", "b", "c"]), min_size=5, max_size=6),
)
def test_fewest_moves_is_what_trying_every_allocation_finds(
    kept: list[str | None], new_owners: list[str]
) -> None:
    """Against all allocations whose sorted counts equal those of the new owners."""
    members = ["a", "b", "c"]
    wanted = sorted(new_owners.count(member) for member in members)
    best = min(
        sum(old != new for old, new in zip(kept, owners, strict=False))
        for owners in product(members, repeat=len(new_owners))
        if sorted(owners.count(member) for member in members) == wanted
    )
    assert fewest_moves(kept, new_owners, members) == best
