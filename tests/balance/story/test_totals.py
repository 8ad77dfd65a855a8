"""Totals of hand-overs grow only, count each once and stay within their bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.balance.story.handed_over import MOST_APART
from pocketmq.balance.story.totals import BOUNDS, OTHER, HandoverCounter, PauseHistogram
from pocketmq.model import MessageQueue
from pocketmq.model.rebalance_event import Handover, RebalanceEvent
from tests.balance.story.test_handed_over import A, B, gave, told, took


def counted(*events: RebalanceEvent) -> HandoverCounter:
    counter = HandoverCounter()
    for event in events:
        counter.add(event)
    return counter


def test_a_hand_over_counts_once_whoever_tells_first() -> None:
    for events in ((told(A, gave()), told(B, took())), (told(B, took()), told(A, gave()))):
        totals = counted(*events).totals()
        assert totals.kinds == {("shop", "overlap"): 1}
        histogram = totals.pauses["shop"]
        assert sum(histogram.buckets) == histogram.buckets[2] == 1  # up to 25 ms
        assert histogram.seconds == pytest.approx(0.02)
        assert totals.two_owners == {}


def test_an_heir_that_started_first_adds_to_the_time_with_two_owners() -> None:
    totals = counted(told(A, gave()), told(B, took(at=99.9))).totals()
    assert totals.two_owners == {"shop": pytest.approx(0.1)}
    assert totals.pauses["shop"].buckets[0] == 1
    assert totals.pauses["shop"].seconds == 0.0


def test_first_owners_and_lost_locks_count_without_a_pause() -> None:
    first = took(giver=None, kind="orphan")
    lost = gave(None, kind="lost")
    totals = counted(told(B, first), told(A, lost)).totals()
    assert totals.kinds == {("shop", "orphan"): 1, ("shop", "lost"): 1}
    assert totals.pauses == {}


def test_what_givers_tell_again_when_they_are_done_is_not_counted_again() -> None:
    done = gave(drained=101.0)
    again = [told(A, gave(at=900.0)), told(B, took(at=900.02))]
    totals = counted(told(A, gave()), told(B, took()), told(A, done), *again).totals()
    assert totals.kinds == {("shop", "overlap"): 2}
    assert sum(totals.pauses["shop"].buckets) == 2
    assert totals.pauses["shop"].seconds == pytest.approx(0.04)


def test_times_too_far_apart_are_not_of_one_hand_over() -> None:
    late = 101.0 + MOST_APART
    counter = counted(told(A, gave()), told(B, took(at=late)))
    assert counter.totals().pauses == {}
    counter.add(told(A, gave(at=late - 0.5)))
    assert counter.totals().pauses["shop"].seconds == pytest.approx(0.5)


def test_what_anybody_may_write_to_a_topic_is_bounded() -> None:
    counter = HandoverCounter(most_waiting=10, most_groups=2)
    for number in range(100):
        queue = MessageQueue("orders", "a", number)
        counter.add(told(B, took(queue=queue, kind=f"kind {number}")))
        other = told(B, took(queue=queue))
        for group in ("second", f"more {number}"):
            counter.add(RebalanceEvent.from_json(other.to_json().replace(b"shop", group.encode())))
    totals = counter.totals()
    assert totals.kinds == {("shop", OTHER): 100, ("second", "overlap"): 100}
    counter.add(told(A, gave(queue=MessageQueue("orders", "a", 1))))
    assert counter.totals().pauses == {}  # long forgotten
    counter.add(told(A, gave(queue=MessageQueue("orders", "a", 99))))
    assert sum(counter.totals().pauses["shop"].buckets) == 1
    assert counter.totals().kinds == totals.kinds


def test_groups_without_hand_overs_take_no_place() -> None:
    counter = HandoverCounter(most_groups=1)
    plain = told(A)
    counter.add(RebalanceEvent.from_json(plain.to_json().replace(b"shop", b"other")))
    counter.add(told(B, took()))
    assert counter.totals().kinds == {("shop", "overlap"): 1}


@given(st.lists(st.floats(0, 1000)))
def test_every_pause_is_in_the_bucket_of_its_bound(pauses: list[float]) -> None:
    histogram = PauseHistogram()
    for pause in pauses:
        histogram = histogram.with_pause(pause)
    below = 0
    for bound, count in zip(BOUNDS, histogram.buckets, strict=False):
        below += count
        assert below == sum(pause <= bound for pause in pauses)
    assert sum(histogram.buckets) == len(pauses)


def test_a_record_that_names_neither_member_is_harmless() -> None:
    nobody = Handover(queue=MessageQueue("orders", "a", 1), kind="overlap", started=1.0)
    assert counted(told(A, nobody)).totals().kinds == {}
