"""What the rebalance benchmark makes of the lines that members wrote."""

import pytest
from benchmarks._handovers import (
    Delivery,
    Figures,
    Happening,
    Hold,
    Record,
    examine,
    lost,
    owners_at,
    percentile,
    repeated,
)
from benchmarks._rebalance_group import Load, Way
from benchmarks.rebalance import JAVA_PAUSES, Told, row_of, table, ways

QUEUES = ("b:0", "b:1")


def deliveries(queue: str, member: str, first: float, last: float, offset: int) -> list[Delivery]:
    """Deliveries every 0.1 s."""
    count = round((last - first) / 0.1) + 1
    return [Delivery(first + 0.1 * n, queue, offset + n, member) for n in range(count)]


def joined(**changes: object) -> Record:
    """A member `new` joins `old` at 10 s and gets the second of two queues."""
    steady = deliveries("b:0", "old", 5.0, 15.0, 0)
    before, after = (
        deliveries("b:1", "old", 5.05, 10.05, 0),
        deliveries("b:1", "new", 10.5, 15.0, 51),
    )
    record = Record(
        QUEUES,
        [*after, *steady, *before],
        [
            *(Hold(1.0, queue, "old", taken=True) for queue in QUEUES),
            Hold(10.06, "b:1", "old", taken=False),
            Hold(10.3, "b:1", "new", taken=True),
        ],
        finished={(each.queue, each.offset) for each in (*steady, *before, *after)},
        sent={(each.queue, each.offset) for each in (*steady, *before, *after)},
        happenings=[Happening("join", 10.0, 15.0, ("old", "new"))],
    )
    return record._replace(**changes)  # type: ignore[arg-type]


def test_a_join_moves_a_queue_and_leaves_the_other_alone() -> None:
    (figures,) = examine(joined())
    assert (figures.kind, figures.moved, figures.minimum, figures.twice) == ("join", 1, 1, 0)
    assert figures.silence_moved == pytest.approx((0.45,))
    assert figures.silence_unmoved == pytest.approx((0.1,))
    assert figures.without_owner == pytest.approx((0.24,))
    assert figures.two_owners == (0.0,)
    assert lost(joined()) == set()


def test_messages_of_both_owners_are_counted_twice_for_as_long_as_both_begin_them() -> None:
    record = joined()
    late = deliveries("b:1", "old", 10.15, 10.85, 51)
    (figures,) = examine(record._replace(deliveries=[*record.deliveries, *late]))
    assert figures.twice == 8
    assert figures.two_owners == pytest.approx((0.35,))


def test_a_message_that_was_begun_twice_before_or_after_an_event_is_not_its_own() -> None:
    record = joined()
    early, after = Delivery(9.0, "b:0", 0, "old"), Delivery(16.0, "b:0", 1, "old")
    again = [*record.deliveries, early, after]
    (figures,) = examine(record._replace(deliveries=again))
    assert figures.twice == 0
    assert repeated(again) == [early, after]


def test_a_message_that_was_begun_but_never_finished_is_lost() -> None:
    record = joined()
    assert lost(record._replace(finished=set(record.finished) - {("b:1", 7)})) == {("b:1", 7)}


def test_a_queue_that_nobody_takes_is_silent_to_the_end() -> None:
    record = joined(
        holds=[
            *(Hold(1.0, queue, "old", taken=True) for queue in QUEUES),
            Hold(10.06, "b:1", "old", taken=False),
            Hold(14.9, "b:1", "new", taken=True),
        ],
        deliveries=deliveries("b:1", "old", 5.05, 10.05, 0),
    )
    (figures,) = examine(record)
    assert figures.silence_moved == pytest.approx((4.95,))
    assert figures.silence_unmoved == pytest.approx((5.0,))


def test_a_queue_that_comes_back_to_its_name_has_not_moved() -> None:
    holds = [
        *(Hold(1.0, queue, "old", taken=True) for queue in QUEUES),
        Hold(10.1, "b:1", "old", taken=False),
        Hold(10.4, "b:1", "old", taken=True),
    ]
    (figures,) = examine(joined(holds=holds, happenings=[Happening("rolling", 10, 15, ("old",))]))
    assert (figures.moved, figures.minimum) == (0, 0)
    assert len(figures.silence_moved) == 1


def test_a_queue_that_changes_hands_and_comes_back_has_moved_twice_without_two_owners() -> None:
    holds = [
        Hold(1.0, "b:1", "old", taken=True),
        Hold(10.1, "b:1", "new", taken=True),
        Hold(12.0, "b:1", "old", taken=True),
    ]
    told = [
        *deliveries("b:1", "old", 9.0, 10.0, 0),
        *deliveries("b:1", "new", 10.2, 11.9, 20),
        *deliveries("b:1", "old", 12.1, 15.0, 40),
    ]
    (figures,) = examine(joined(holds=holds, deliveries=told))
    assert figures.moved == 2
    assert figures.two_owners == (0.0,)


def test_the_fewest_moves_after_a_death_are_the_queues_of_the_dead() -> None:
    holds = [Hold(1.0, "b:0", "a", taken=True), Hold(1.0, "b:1", "b", taken=True)]
    dead = Happening("kill", 10.0, 15.0, ("a",))
    (figures,) = examine(joined(holds=holds, happenings=[dead]))
    assert (figures.moved, figures.minimum) == (0, 1)


def test_owners_are_those_who_took_a_queue_last() -> None:
    holds = joined().holds
    assert owners_at(holds, 10.2) == {"b:0": "old", "b:1": "old"}
    assert owners_at(holds, 11.0) == {"b:0": "old", "b:1": "new"}


@pytest.mark.parametrize(
    ("values", "part", "result"),
    [([], 0.5, 0.0), ([3.0], 0.99, 3.0), ([4.0, 1.0, 2.0, 3.0], 0.5, 3.0), (range(200), 0.99, 198)],
)
def test_percentiles(values: list[float], part: float, result: float) -> None:
    assert percentile(values, part) == result


def figures(kind: str, silence: float, twice: int = 0) -> Figures:
    return Figures(kind, 2, 1, (silence,), (0.01,), (0.0,), (0.0,), twice)


def test_rows_gather_what_events_of_a_kind_did() -> None:
    row = row_of([figures("join", 0.1, 3), figures("join", 0.3), figures("kill", 9.0)], "join")
    assert row is not None
    assert (row.events, row.moved, row.minimum, row.twice) == (2, 2.0, 1.0, 1.5)
    assert row.silence == pytest.approx((300.0, 300.0, 300.0))
    assert row_of([figures("join", 0.1)], "leave") is None


def test_the_table_has_ratios_to_the_first_way() -> None:
    slow, quick = (
        Told(JAVA_PAUSES, [figures("join", 1.5)], 0, 100),
        Told(Way("AVG", {}), [figures("join", 0.03)], 2, 100),
    )
    _, first, second = table([slow, quick])
    assert "1500 / 1500 / 1500" in first
    assert "1.00×" in first
    assert "30 / 30 / 30" in second
    assert "0.02×" in second
    assert second.endswith("2")


def test_ways_begin_with_javas_pauses() -> None:
    first, second = ways(["STICKY"], {"settle": 0.2})
    assert first.java_pauses
    assert second == Way("STICKY", {"strategy": "STICKY", "settle": 0.2})
    assert Load().rate == 100
