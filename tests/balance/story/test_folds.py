"""The folds over a group's events say what a look at the whole timeline says."""

import pickle
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.story.over_time import OwnersAt, OwnersOverTime
from pocketmq.balance.story.recorded import rebalances
from pocketmq.balance.story.timeline import (
    HELD,
    OwnershipFold,
    OwnershipTimeline,
    finished,
    timeline,
)
from pocketmq.balance.what_if.movement import moves_between
from pocketmq.model import MessageQueue, QueueName
from pocketmq.model.rebalance_event import RebalanceEvent

QUEUES = [MessageQueue("orders", broker, number) for broker in "ab" for number in range(2)]
MEMBERS = ["m1", "m2", "m3"]
some_queues = st.lists(st.sampled_from(QUEUES), unique=True).map(tuple)

events = st.lists(
    st.builds(
        RebalanceEvent,
        group=st.just("shop"),
        client_id=st.sampled_from(MEMBERS),
        topic=st.just("orders"),
        strategy=st.just("AVG"),
        trigger=st.sampled_from(["start", "timer", "stop"]),
        started=st.integers(0, 400).map(lambda tenths: 10 + tenths / 10),
        carried_out=st.sampled_from([0.0, 0.2, 1.5]),
        members=st.none() | st.lists(st.sampled_from(MEMBERS), unique=True).map(tuple),
        queues=st.none() | some_queues,
        before=some_queues,
        after=some_queues,
        revoked=some_queues,
    ),
    min_size=1,
    max_size=15,
)


def by_definition(story: OwnershipTimeline, time: float) -> tuple[OwnersAt, bool]:
    """Look through the whole timeline for who holds what at a time, and whether all is settled."""
    held = {
        queue: [
            one
            for one in story.owned[queue]
            if one.since <= time and (one.ended == HELD or time < one.until)
        ]
        for queue, (since, _) in story.known.items()
        if since <= time and not any(a <= time < b for a, b in story.absent.get(queue, ()))
    }
    owners = {queue: some[-1].member if some else None for queue, some in held.items()}
    return owners, all(len(some) == 1 for some in held.values())


@settings(max_examples=150)
@given(events, st.lists(st.integers(90, 560).map(lambda tenths: tenths / 10), max_size=12))
def test_one_pass_finds_the_holders_of_every_moment(
    told: list[RebalanceEvent], times: list[float]
) -> None:
    story = timeline(told, {"m2": 20.0})
    holders = OwnersOverTime(story)
    for time in sorted([*times, *(one.since for o in story.owned.values() for one in o)]):
        owners, settled = by_definition(story, time)
        assert holders.owners_at(time) == owners
        assert holders.settled_at(time) == settled


@settings(max_examples=60)
@given(events, st.integers(0, 15))
def test_a_fold_that_was_put_away_goes_on_where_it_was(
    told: list[RebalanceEvent], place: int
) -> None:
    ordered = sorted(told, key=finished)
    fold = OwnershipFold({})
    for event in ordered[:place]:
        fold.advance(event)
    fold = pickle.loads(pickle.dumps(fold))
    for event in ordered[place:]:
        fold.advance(event)
    assert fold.finish() == timeline(told, {})


@settings(max_examples=100)
@given(events)
def test_rebalances_follow_one_another_and_lead_to_the_last_picture(
    told: list[RebalanceEvent],
) -> None:
    story = timeline(told, {})
    found = rebalances(story, told)
    for earlier, later in pairwise(found):
        assert earlier.since <= earlier.until < later.since
    for one in found:
        assert 0 <= one.minimum <= one.moved
    if found:
        last, _ = by_definition(story, min(found[-1].until + 1e-6, story.ended))
        assert found[-1].after.unowned == sum(owner is None for owner in last.values())


def test_a_queue_whose_owner_is_gone_and_a_queue_unknown_before_have_not_moved() -> None:
    a, b, c = (QueueName("orders", "a", number) for number in range(3))
    before = {a: ("m1",), b: ("m1",)}
    after = {a: ("m1",), b: ("m2",), c: ("m2",)}
    assert moves_between(before, after, ["m1", "m2"]) == ([(b, "m1", "m2")], 0)
    assert moves_between(before, after, ["m1"]) == ([], 0)


def test_who_keeps_a_queue_beside_another_has_not_lost_it() -> None:
    a = QueueName("orders", "a", 0)
    assert moves_between({a: ("m1",)}, {a: ("m2", "m1")}, ["m1", "m2"]) == ([], 0)
