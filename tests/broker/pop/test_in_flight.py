"""What a group has out of a queue, and what is due when."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop.all_in_flight import AllInFlight
from pocketmq.broker.pop.changes import MessagesPopped
from pocketmq.broker.pop.in_flight import Deadlines, QueueInFlight


class Thing:
    bucket = 0


def test_the_first_offset_not_done_with_is_the_lowest_that_is_out() -> None:
    in_flight = QueueInFlight("T", "G", 0)
    first = in_flight.take([5, 6, 9], 12, (1, 100))
    second = in_flight.take([12], 13, (2, 100))
    assert in_flight.low == 5
    assert in_flight.settle([6, 12], 1) == ([6], [])  # 12 is of the other pop
    assert in_flight.low == 5
    assert in_flight.settle([5], 1) == ([5], [])
    assert in_flight.low == 9
    assert in_flight.settle([9], 1) == ([9], [first])
    assert in_flight.low == 12
    assert in_flight.settle([12], 2) == ([12], [second])
    assert (in_flight.low, in_flight.held) == (13, {})


@given(
    st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 3), st.lists(st.integers(0, 6), unique=True)), max_size=4),
)
def test_messages_that_are_settled_together_are_settled_as_one_by_one(
    pops: list[set[int]], acks: list[tuple[int, list[int]]]
) -> None:
    together, singly = QueueInFlight("T", "G", 0), QueueInFlight("T", "G", 0)
    whole = [(time_ms, sorted(popped)) for time_ms, popped in enumerate(pops, 1)]
    for time_ms, offsets in whole:
        for in_flight in (together, singly):
            in_flight.take(offsets, 7, (time_ms, 60_000))
    for time_ms, offsets in [*acks, *whole]:
        settled, done = together.settle(offsets, time_ms)
        each = [singly.settle([offset], time_ms) for offset in offsets]
        assert settled == [offset for found, _ in each for offset in found]
        assert [(taken.offsets, taken.left) for taken in done] == [
            (taken.offsets, taken.left) for _, ended in each for taken in ended
        ]
        assert [(at, taken.left) for at, taken in together.held.items()] == [
            (at, taken.left) for at, taken in singly.held.items()
        ]
        assert together.low == singly.low
    assert together.low == 7


def test_an_acknowledgement_of_as_many_other_messages_settles_none_of_them() -> None:
    in_flight = QueueInFlight("T", "G", 0)
    taken = in_flight.take([1, 2], 3, (1, 100))
    assert in_flight.settle([1, 3], 1) == ([1], [])
    assert (in_flight.held, taken.left, in_flight.low) == ({2: taken}, 1, 2)


def test_a_changed_message_belongs_to_a_pop_of_its_own() -> None:
    in_flight = QueueInFlight("T", "G", 0)
    first = in_flight.take([0, 1], 2, (1, 100))
    both = in_flight.change(0, 1, (7, 900))
    assert both is not None
    old, new = both
    assert (old, old.left, old.out()) == (first, 1, [1])
    assert (new.out(), new.until_ms) == ([0], 900)
    assert in_flight.change(0, 1, (8, 900)) is None
    assert in_flight.settle([0], 1) == ([], [])
    assert in_flight.settle([0], 7) == ([0], [new])
    assert in_flight.low == 1


@given(st.lists(st.integers(0, 10_000)), st.sets(st.integers(0, 99)), st.integers(0, 10_000))
def test_what_is_due_comes_by_its_moment_and_what_was_discarded_does_not(
    moments: list[int], gone: set[int], now_ms: int
) -> None:
    deadlines: Deadlines[Thing] = Deadlines()
    things = [Thing() for _ in moments]
    for thing, moment in zip(things, moments, strict=True):
        deadlines.add(thing, moment)
    for number in gone:
        if number < len(things):
            deadlines.discard(things[number])
    taken: list[Thing] = []
    while due := deadlines.take_due(now_ms):
        taken += due
    left = [(m, t) for n, (m, t) in enumerate(zip(moments, things, strict=True)) if n not in gone]
    rounded = {t: max(1, -(-m // 100)) * 100 for m, t in left}
    assert set(taken) == {t for t, moment in rounded.items() if moment <= now_ms}
    assert [rounded[t] for t in taken] == sorted(rounded[t] for t in taken)
    later = [moment for moment in rounded.values() if moment > now_ms]
    assert deadlines.next_ms == min(later, default=None)


def test_many_settled_pops_leave_nothing_behind() -> None:
    all_in_flight = AllInFlight(ConsumerOffsetTable())
    for n in range(5000):
        all_in_flight.take(MessagesPopped("T", "G", 0, n, n + 1, n, 60_000 + 100 * n))
        in_flight = all_in_flight.find("T", "G", 0)
        assert in_flight is not None
        assert all_in_flight.settle(in_flight, n, [n]) == [n]
    assert all_in_flight.by_group == {}
    assert all_in_flight.deadlines.next_ms is None
    assert len(all_in_flight.deadlines._heap) <= 1025
    assert all_in_flight.offsets.query("G", "T", 0) == 5000


def test_a_commit_never_goes_back_nor_against_a_reset() -> None:
    offsets = ConsumerOffsetTable()
    all_in_flight = AllInFlight(offsets)
    all_in_flight.take(MessagesPopped("T", "G", 0, 0, 10, 1, 100))
    offsets.commit("G", "T", 0, 50)  # a member that pulls
    in_flight = all_in_flight.find("T", "G", 0)
    assert in_flight is not None
    all_in_flight.settle(in_flight, 1, [0])
    assert offsets.query("G", "T", 0) == 50
    offsets.reset("G", "T", 0, 3)
    all_in_flight.commit("T", "G", 0, 90)
    assert offsets.query("G", "T", 0) == 3
