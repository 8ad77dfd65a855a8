"""What is concluded from looks at a group that are far apart: nothing about the time between."""

from pocketmq.admin.gathered import ServerPlace
from pocketmq.balance.story.observation import GroupObservation
from pocketmq.dashboard.assignment.observed import GAP, Lags, ObservedHistory
from pocketmq.dashboard.assignment.timeline_text import TimelineText, summary
from pocketmq.dashboard.remembered import REMEMBERED, BrokerRoll
from pocketmq.model import MessageQueue

QUEUES = [MessageQueue("orders", "a", number) for number in range(2)]


def seen(at: float, *owners: str | None, fits: str | None = "AVG") -> GroupObservation:
    """Return a look at two queues and who held them; None for nobody."""
    return GroupObservation(
        at=at,
        members=frozenset({"c1", "c2"}),
        untold={},
        brokers=frozenset({"a"}),
        unseen=frozenset(),
        owners={
            queue: () if owner is None else (owner,)
            for queue, owner in zip(QUEUES, owners, strict=True)
        },
        lags={},
        strategies={},
        fits=fits,
    )


def test_a_queue_found_without_owner_after_a_gap_was_not_without_one_all_the_time() -> None:
    history = ObservedHistory()
    assert not history.observe(seen(0.0, "c1", "c2"))
    assert history.observe(seen(89.0, "c1", None, fits=None))
    assert not history.observe(seen(90.0, "c1", "c2"))
    (entry,) = history.entries()
    (pause,) = entry.pauses
    assert (pause.began, pause.ended, pause.most) == (89.0, 90.0, None)
    assert "89 s" not in summary(entry)
    _, open_spans = TimelineText().rows(history.entries(), 90.0)
    assert open_spans == [(89.0, 90.0)]
    assert list(history.gaps) == [(0.0, 89.0)]


def test_who_moved_while_nobody_looked_is_no_rebalance_that_was_seen() -> None:
    history = ObservedHistory()
    history.observe(seen(0.0, "c1", "c2"))
    history.observe(seen(GAP + 1, "c2", "c1"))
    assert history.entries() == []
    history.observe(seen(GAP + 2, "c1", "c2"))
    assert [entry.moved for entry in history.entries()] == [2]


def test_looks_that_are_close_enough_are_one_history() -> None:
    history = ObservedHistory()
    history.observe(seen(0.0, "c1", "c2"))
    assert not history.observe(seen(GAP, "c2", "c1"))
    assert [entry.moved for entry in history.entries()] == [2]
    assert list(history.gaps) == []


def test_a_rebalance_that_nobody_saw_the_end_of_is_cut_off_where_looking_ended() -> None:
    history = ObservedHistory()
    history.observe(seen(0.0, "c1", "c2"))
    history.observe(seen(1.0, "c1", None, fits=None))
    history.observe(seen(3.0, "c1", None, fits=None))
    history.observe(seen(500.0, "c1", "c2"))
    history.observe(seen(501.0, "c2", "c1"))
    first, second = history.entries()
    assert (first.number, second.number) == (1, 2)
    assert first.ended == 3.0
    assert "its end was not observed" in first.why
    assert summary(first) == "1 queue moved, minimum 1 · 1 paused, longest at least 2 s"
    _, open_spans = TimelineText().rows([first], 600.0)
    assert open_spans == [(1.0, 3.0)]


def test_a_line_of_lag_is_broken_where_nobody_looked() -> None:
    lags = Lags()
    lags.lose_sight(0.0)
    assert lags.total() == []
    lags.add(1.0, {QUEUES[0]: 5}, QUEUES[:1])
    lags.lose_sight(1.0)
    lags.add(99.0, {QUEUES[0]: 7}, QUEUES[:1])
    assert lags.total() == lags.of(QUEUES[0]) == [(1.0, 5), (1.0, None), (99.0, 7)]


def place(broker: str, address: str) -> ServerPlace:
    return ServerPlace("DefaultCluster", broker, 0, address)


def test_a_broker_that_is_no_longer_listed_is_remembered_for_a_while() -> None:
    roll = BrokerRoll()
    a, b = place("a", "h:1"), place("b", "h:2")
    assert roll.call([a, b], 0.0) == [a, b]
    assert roll.call([b], 10.0) == [a, b]
    assert roll.call(None, REMEMBERED + 20.0) == [a, b], "nobody could be asked"
    assert roll.call([b], REMEMBERED + 20.0) == [b]


def test_a_broker_that_has_moved_is_not_down_at_its_old_address() -> None:
    roll = BrokerRoll()
    roll.call([place("a", "h:1")], 0.0)
    assert roll.call([place("a", "h:9")], 1.0) == [place("a", "h:9")]
    assert BrokerRoll().call(None, 0.0) == []
