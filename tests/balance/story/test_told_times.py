"""Owners over time from events of version 2: the times are those that members told."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.balance.story.handed_over import handed_over
from pocketmq.balance.story.recorded import handovers, rebalances
from pocketmq.balance.story.timeline import HELD, RELEASED, timeline
from pocketmq.model import MessageQueue, QueueName
from pocketmq.model.rebalance_event import Handover, RebalanceEvent

FIRST, SECOND = MessageQueue("orders", "a", 0), MessageQueue("orders", "a", 1)
NAME = QueueName("orders", "a", 1)
A, B = "10.0.0.1@1@pm1", "10.0.0.1@2@pm1"
BOTH = (FIRST, SECOND)


def event(by: str, at: float, after: tuple[MessageQueue, ...], *records: Handover, **more: object
          ) -> RebalanceEvent:  # fmt: skip
    """Write an event as its member does, and read it as a pipeline does."""
    fields: dict[str, object] = {
        "group": "shop", "client_id": by, "topic": "orders", "strategy": "STICKY", "started": at,
        "trigger": "members changed", "carried_out": 0.1, "queues": BOTH, "after": after,
        "mode": "sticky", "handovers": records, "assigned": {"a:1": 7},
    }  # fmt: skip
    made = msgspec.convert(msgspec.to_builtins(fields | more), RebalanceEvent)
    return RebalanceEvent.from_json(made.to_json())


def overlap(*, stopped: float | None = None, started: float | None = None, drained: float | None =
            None) -> Handover:  # fmt: skip
    return Handover(
        queue=SECOND, kind="overlap", giver=A, heir=B, offset=7,
        stopped=stopped, started=started, drained=drained,
    )  # fmt: skip


STARTED = event(A, 1.0, BOTH, trigger="start")
GAVE = event(A, 10.0, (FIRST,), overlap(stopped=10.01), before=BOTH, revoked=(SECOND,))
TOOK = event(B, 10.0, (SECOND,), overlap(started=10.03))


def owners(*events: RebalanceEvent) -> list[tuple[str, float, float, str]]:
    story = timeline(events, {}, 20.0)
    return [(one.member, one.since, one.until, one.ended) for one in story.owned[NAME]]


def test_an_ownership_ends_when_the_giver_stopped_and_begins_when_the_heir_started() -> None:
    assert owners(STARTED, GAVE, TOOK) == [(A, 1.1, 10.01, RELEASED), (B, 10.03, 20.0, HELD)]


def test_a_member_that_drains_a_queue_does_not_own_it_any_more() -> None:
    draining = event(A, 10.0, BOTH, overlap(stopped=10.01), before=BOTH)
    still = event(A, 12.0, BOTH, before=BOTH, trigger="timer")
    done = event(A, 14.0, (FIRST,), overlap(stopped=10.01, drained=14.0), before=BOTH)
    expected = [(A, 1.1, 10.01, RELEASED), (B, 10.03, 20.0, HELD)]
    assert owners(STARTED, draining, TOOK) == expected
    assert owners(STARTED, draining, TOOK, still, done) == expected


def test_a_queue_that_came_back_is_not_ended_by_news_of_its_first_giving() -> None:
    back = Handover(queue=SECOND, kind="overlap", giver=B, heir=A, offset=9, started=12.0)
    again = event(A, 12.0, BOTH, back, before=(FIRST,))
    news = event(A, 13.0, BOTH, overlap(stopped=10.01, drained=12.5), before=BOTH)
    assert owners(STARTED, GAVE, again, news) == [(A, 1.1, 10.01, RELEASED), (A, 12.0, 20.0, HELD)]
    released = event(A, 14.0, (FIRST,), overlap(stopped=10.01), before=BOTH)
    assert owners(STARTED, GAVE, again, released)[1:] == [(A, 12.0, 14.1, RELEASED)]


def test_an_end_that_was_told_before_its_heir_was_known_is_dated_back() -> None:
    """The last message may be finished just before the heir is known, and the event between."""
    first = event(A, 10.0, (FIRST,), before=BOTH, revoked=(SECOND,))
    news = event(A, 10.2, (FIRST,), overlap(stopped=10.01, drained=10.09), before=(FIRST,))
    assert owners(STARTED, first, TOOK)[0] == (A, 1.1, 10.1, RELEASED)
    assert owners(STARTED, first, TOOK, news) == [(A, 1.1, 10.01, RELEASED), (B, 10.03, 20.0, HELD)]


def test_it_comes_back_while_it_still_drained() -> None:
    draining = event(A, 10.0, BOTH, overlap(stopped=10.01), before=BOTH)
    back = Handover(queue=SECOND, kind="overlap", giver=B, heir=A, offset=9, started=12.0)
    again = event(A, 12.0, BOTH, back, before=BOTH)
    assert owners(STARTED, draining, again)[1:] == [(A, 12.0, 20.0, HELD)]


def test_version_1_counts_from_the_ends_of_events() -> None:
    plain = [
        msgspec.structs.replace(each, version=1, mode="java", handovers=())
        for each in (STARTED, GAVE, TOOK)
    ]
    assert owners(*plain) == [(A, 1.1, 10.1, RELEASED), (B, 10.1, 20.0, HELD)]


def test_a_change_of_hands_has_what_its_members_told() -> None:
    done = event(A, 14.0, (FIRST,), overlap(stopped=10.01, drained=14.0), before=(FIRST,))
    events = [STARTED, GAVE, TOOK, done]
    [move] = handovers(timeline(events, {}), handed_over(events))
    assert (move.left, move.took, move.at, move.kind, move.offset) == (A, B, 10.03, "overlap", 7)
    assert move.pause == pytest.approx(0.02)
    assert move.draining == pytest.approx(3.99)
    assert move.one_clock
    assert move.overlap == 0.0
    early = event(B, 10.0, (SECOND,), overlap(started=9.9))
    [move] = handovers(timeline([STARTED, GAVE, early], {}))
    assert (move.pause, move.kind) == (0.0, None)
    assert move.overlap == pytest.approx(0.11)


def test_a_rebalance_has_the_minimum_that_members_told_but_not_beyond_what_moved() -> None:
    # Two members swap their queues, which no topic needs for its own balance.
    for told, minimum in ((None, 0), (0, 0), (1, 1), (2, 2), (5, 2)):
        events = [
            event(A, 1.0, (FIRST,), trigger="start"),
            event(B, 1.0, (SECOND,), trigger="start"),
            event(A, 10.0, (SECOND,), before=(FIRST,), revoked=(FIRST,), minimum=told),
            event(B, 10.0, (FIRST,), before=(SECOND,), revoked=(SECOND,)),
        ]
        found = rebalances(timeline(events, {}, 20.0), events)
        assert [(one.moved, one.minimum) for one in found] == [(0, 0), (2, minimum)]


def test_what_had_to_move_is_counted_over_all_topics_where_members_hand_over() -> None:
    one, other = MessageQueue("bills", "a", 0), MessageQueue("orders", "a", 0)
    for mark, minimum in (("@pm1", 1), ("", 0)):
        first, second = f"10.0.0.1@1{mark}", f"10.0.0.1@2{mark}"
        events = [
            event(first, 1.0, (one,), topic="bills", queues=(one,)),
            event(first, 1.0, (other,), queues=(other,)),
            event(first, 10.0, (), before=(other,), queues=(other,)),
            event(second, 10.0, (other,), queues=(other,)),
        ]
        found = rebalances(timeline(events, {}, 20.0), events)
        assert [(each.moved, each.minimum) for each in found] == [(0, 0), (1, minimum)]


def test_the_trigger_is_that_of_the_event_in_which_the_hand_over_happened() -> None:
    late = msgspec.structs.replace(GAVE, carried_out=1.2)  # it waited for its last messages
    events = [STARTED, late, msgspec.structs.replace(TOOK, trigger="start")]
    found = rebalances(timeline(events, {}, 20.0), events)
    assert [sorted(one.triggers) for one in found] == [["start"], ["members changed", "start"]]
    events = [STARTED, GAVE, TOOK]
    found = rebalances(timeline(events, {}, 20.0), events)
    assert [one.triggers for one in found] == [["start"], ["members changed"]]


times = st.integers(0, 300).map(lambda tenths: tenths / 10)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([A, B]), times, st.sampled_from([(), (FIRST,), (SECOND,), BOTH]),
            st.none() | times, st.none() | times, st.sampled_from([A, B]),
        ),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_whatever_is_told_spans_never_run_backwards(
    told: list[tuple[str, float, tuple[MessageQueue, ...], float | None, float | None, str]],
) -> None:
    events = [
        event(by, at, after, Handover(queue=SECOND, kind="overlap", giver=giver,
              heir=A if giver == B else B, stopped=stopped, started=started))
        for by, at, after, stopped, started, giver in told
    ]  # fmt: skip
    story = timeline(events, {}, 40.0)
    assert all(one.since <= one.until for spans in story.owned.values() for one in spans)
    assert rebalances(story, events) is not None
    assert len(handed_over(events)) <= len(events)


JAVA = "10.0.0.9@7"
TO_FOREIGN = Handover(queue=SECOND, kind="foreign", giver=A, offset=7, stopped=10.01)
FROM_FOREIGN = Handover(queue=SECOND, kind="foreign", heir=B, offset=90, started=15.0)
AWAY = event(A, 10.0, (FIRST,), TO_FOREIGN, before=BOTH, revoked=(SECOND,), mode="mixed")
BACK = event(B, 15.0, (SECOND,), FROM_FOREIGN)


def test_at_a_foreign_member_that_records_nothing_the_owner_is_unknown() -> None:
    story = timeline([STARTED, AWAY, BACK], {}, 20.0)
    assert story.untold == {NAME: [(10.01, 15.0)]}
    assert handovers(story) == []
    assert timeline([STARTED, AWAY], {}, 20.0).untold == {NAME: [(10.01, 20.0)]}
    assert timeline([STARTED, GAVE, TOOK], {}, 20.0).untold == {}


def test_a_foreign_member_that_records_tells_its_own_time() -> None:
    plain = event(JAVA, 11.0, (SECOND,), strategy="AVG", mode="java")
    left = event(JAVA, 14.0, (), before=(SECOND,), strategy="AVG", mode="java", trigger="stop")
    story = timeline([STARTED, AWAY, plain, left, BACK], {}, 20.0)
    assert story.untold == {}
    assert [(m.left, m.took) for m in handovers(story)] == [(A, JAVA), (JAVA, B)]
    assert [m.pause for m in handovers(story)] == [pytest.approx(1.09), pytest.approx(0.9)]
