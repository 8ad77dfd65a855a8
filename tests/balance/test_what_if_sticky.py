"""What-if with STICKY: owners go from event to event, and no more moves than must."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash, Strategy, allocate
from pocketmq.balance.sticky import Sticky, assign, minimum_moves
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
    numbers,
    owners_in,
    preview,
    what_if,
)
from pocketmq.balance.what_if.movement import Move, moves_between
from pocketmq.model import MessageQueue

STICKY = Sticky()
IDS = st.sampled_from([f"c{number}" for number in range(8)])
COUNTS = st.dictionaries(
    st.sampled_from("tuv"),
    st.dictionaries(st.sampled_from("ab"), st.integers(1, 6), min_size=1),
    min_size=1,
)
STRATEGIES: st.SearchStrategy[Strategy] = st.sampled_from(
    [STICKY, STICKY, Average(), ConsistentHash(2)]
)


def situation(
    counts: dict[str, dict[str, int]],
    members: list[str],
    strategy: Strategy = STICKY,
    previous: dict[MessageQueue, str] | None = None,
    foreign: tuple[str, ...] = (),
) -> Situation:
    topics = {
        topic: [MessageQueue(topic, broker, n) for broker, m in brokers.items() for n in range(m)]
        for topic, brokers in counts.items()
    }
    return Situation.of(topics, members, strategy, "g", previous=previous or {}, foreign=foreign)


def queue(number: int, topic: str = "t") -> MessageQueue:
    return MessageQueue(topic, "a", number)


def owner_of(ownership: Ownership) -> dict[MessageQueue, str]:
    return {queue: share.member for share in ownership.shares for queue in share.queues}


@st.composite
def stories(draw: st.DrawFn) -> tuple[Situation, list[Event]]:
    """Draw a situation, with or without owners, and events that can happen to it."""
    members = draw(st.lists(IDS, max_size=5, unique=True))
    start = situation(draw(COUNTS), members, draw(STRATEGIES))
    queues = [each for some in start.topics.values() for each in some]
    previous = draw(st.dictionaries(st.sampled_from(queues), IDS))
    start = Situation.of(start.topics, members, start.strategy, "g", previous=previous)
    events: list[Event] = []
    now = start
    for _ in range(draw(st.integers(1, 5))):
        joiners = sorted({f"c{number}" for number in range(8)} - set(now.members))
        choices: list[st.SearchStrategy[Event]] = [
            st.builds(MemberJoined, st.sampled_from(joiners)) if joiners else st.nothing(),
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


def set_of(now: Situation) -> set[MessageQueue]:
    return {each for some in now.topics.values() for each in some}


def check_even(now: Situation, after: Ownership) -> None:
    assert not after.unowned or not now.members
    assert after.spread <= 1
    assert after.worst_topic <= 1


@settings(max_examples=200, deadline=None)
@given(stories())
def test_every_event_moves_the_fewest_from_the_owners_before_it(
    story: tuple[Situation, list[Event]],
) -> None:
    start, events = story
    answer = what_if(start, events)
    now = start
    owners = owner_of(answer.before)
    if start.strategy == STICKY:
        assert owners == assign(start.topics, start.members, start.previous)
    for event, step in zip(events, answer.steps, strict=True):
        before, now = set_of(now), event.apply(now)
        later = owner_of(step.after)
        if now.strategy == STICKY:
            assert later == assign(now.topics, now.members, owners)
            check_even(now, step.after)
            assert step.movement.moved == step.movement.minimum
        else:
            assert step.after == preview(now)
            assert step.movement.moved >= step.movement.minimum
        moved = {each for each in before & set_of(now) if owners.get(each) != later.get(each)}
        assert {move.queue for move in step.movement.moves} == moved
        owners = later


@settings(max_examples=100, deadline=None)
@given(stories())
def test_the_minimum_is_that_of_all_topics_together(story: tuple[Situation, list[Event]]) -> None:
    start, events = story
    whole = what_if(start, [*events, StrategyChanged(STICKY)])
    last = whole.steps[-1].after
    [*_, end] = [start, *applied(start, events)]
    first = owner_of(whole.before)
    kept = set_of(start) & set_of(end)
    changed = sum((each in first) != (each in owner_of(last)) for each in kept)
    fewest = minimum_moves(end.topics, end.members, first)
    assert whole.overall.minimum == fewest + changed <= whole.overall.moved


def applied(now: Situation, events: list[Event]) -> list[Situation]:
    situations = []
    for event in events:
        now = event.apply(now)
        situations.append(now)
    return situations


@settings(max_examples=100, deadline=None)
@given(stories())
def test_numbers_alone_are_those_of_the_lists(story: tuple[Situation, list[Event]]) -> None:
    start, events = story
    answer = what_if(start, events)
    now, owned = start, owners_in(start)
    for event, step in zip(events, answer.steps, strict=True):
        later = event.apply(now).after(now, owned)
        dealt = owners_in(later)
        found = numbers(later, dealt, (now, owned))
        assert (found.moved, found.minimum) == (step.movement.moved, step.movement.minimum)
        assert (found.spread, found.topic_spread) == (step.after.spread, step.after.worst_topic)
        now, owned = later, dealt


def test_a_joiner_takes_one_queue_where_avg_shifts_three() -> None:
    """By name: the numbers of the page on previews."""
    events: list[Event] = [MemberJoined("c0")]
    sticky = what_if(situation({"t": {"a": 4}}, ["c1", "c2"]), events).overall
    assert (sticky.moved, sticky.minimum) == (1, 1)
    average = what_if(situation({"t": {"a": 4}}, ["c1", "c2"], Average()), events).overall
    assert (average.moved, average.minimum) == (3, 1)


def test_known_owners_are_kept_and_the_first_movement_is_told() -> None:
    previous = {queue(0): "c2", queue(1): "c2", queue(2): "gone"}
    answer = what_if(situation({"t": {"a": 4}}, ["c1", "c2"], previous=previous))
    assert owner_of(answer.before) == {
        queue(0): "c2", queue(1): "c2", queue(2): "c1", queue(3): "c1",
    }  # fmt: skip
    assert answer.start == Movement(
        2, 2, [Move(queue(2), "gone", "c1"), Move(queue(3), None, "c1")], [], []
    )
    java = what_if(situation({"t": {"a": 4}}, ["c1", "c2"], Average(), previous))
    assert java.start is not None
    assert (java.start.moved, java.start.minimum) == (4, 2)
    assert what_if(situation({"t": {"a": 4}}, ["c1"])).start is None


def test_after_avg_sticky_starts_from_what_avg_left() -> None:
    topics = {"t": {"a": 3}, "u": {"a": 3}}
    answer = what_if(situation(topics, ["c1", "c2"], Average()), [StrategyChanged(STICKY)])
    assert (answer.before.spread, answer.steps[0].after.spread) == (2, 0)
    assert answer.overall.moved == answer.overall.minimum == 1


def test_a_broker_that_comes_back_after_long_gets_owners_anew() -> None:
    start = situation({"t": {"a": 4, "b": 4}}, ["c1", "c2"])
    answer = what_if(start, [BrokerDown("b"), BrokerAdded("b", {"t": 4})])
    for step in answer.steps:
        assert step.movement.moved == step.movement.minimum
    assert len(answer.steps[1].movement.added) == 4


@given(COUNTS, st.integers(1, 4), st.integers(1, 3), st.data())
def test_foreign_members_keep_their_java_share_through_events(
    counts: dict[str, dict[str, int]], ours: int, foreign: int, data: st.DataObject
) -> None:
    mine = [f"c{number}" for number in range(ours)]
    theirs = tuple(f"j{number}" for number in range(foreign))
    strategy = Sticky(AverageByCircle())
    start = situation(counts, [*mine, *theirs], strategy, foreign=(*theirs, "j9"))
    left = data.draw(st.sampled_from(start.members))
    events: list[Event] = [MemberJoined("j9"), MemberJoined("c9"), MemberLeft(left)]
    answer = what_if(start, events)
    now = start
    for step, event in zip(answer.steps, events, strict=True):
        now = event.apply(now)
        owners = owner_of(step.after)
        assert not step.after.unowned
        for member in now.foreign & set(now.members):
            for topic, queues in now.topics.items():
                share = [each for each in queues if owners[each] == member]
                assert share == allocate(AverageByCircle(), "g", member, queues, now.members), topic
        ours_now = [share.total for share in step.after.shares if share.member not in now.foreign]
        assert sum(ours_now) + foreign_total(step.after, now.foreign) == len(owners)
        assert step.movement.moved == step.movement.minimum


def foreign_total(after: Ownership, foreign: frozenset[str]) -> int:
    return sum(share.total for share in after.shares if share.member in foreign)


def test_members_without_a_queue_are_idle() -> None:
    answer: WhatIf = what_if(situation({"t": {"a": 2}}, ["c1", "c2", "c3"]))
    assert answer.before.idle == 1
    totals = Counter(share.total for share in answer.before.shares)
    assert totals == {1: 2, 0: 1}


def test_last_known_owners_are_compared_over_all_topics_on_request() -> None:
    """Two topics of three queues: by topic nothing had to move, over all topics one."""
    last = {queue(n, topic): ("c1" if n < 2 else "c2",) for topic in "tu" for n in range(3)}
    after = last | {queue(1, "u"): ("c2",)}
    moves, minimum = moves_between(last, after, ["c1", "c2"])
    assert (moves, minimum) == ([(queue(1, "u"), "c1", "c2")], 0)
    assert moves_between(last, after, ["c1", "c2"], over_all=True) == (moves, 1)
    first = {queue(0): ("c1",), queue(1): ("c2",)}
    unowned: dict[MessageQueue, tuple[str, ...]] = {queue(0): ("c1",), queue(1): ()}
    assert moves_between(unowned, first, ["c1", "c2"], over_all=True)[1] == 1
