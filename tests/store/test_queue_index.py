"""A queue's entries: appended, read, lost, trimmed, taken back."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import StoreError, StoreFull
from pocketmq.store.extents import LONGEST, SHORTEST, ExtentFiles
from pocketmq.store.no_disk import NoDisk
from pocketmq.store.queue_index import Index, QueueIndex


class FillingUp(NoDisk):
    """Has room for a number of files."""

    room = 1

    def create(self, name: str, size: int):  # type: ignore[no-untyped-def]
        if not self.room:
            raise StoreFull(size)
        self.room -= 1
        return super().create(name, size)


@pytest.fixture
def index() -> Iterator[Index]:
    files = ExtentFiles(NoDisk())
    yield Index(files)
    files.close()


def make(index: Index) -> QueueIndex:
    return QueueIndex(index, 1, "T", 0)


def fill(queue: QueueIndex, count: int, step: int = 100) -> None:
    for _ in range(count):
        offset = queue.next_offset
        queue.append(offset * step, 91 + offset, -offset)


def test_entries_come_back_in_order_across_extents(index: Index) -> None:
    queue = make(index)
    fill(queue, 500)
    assert [extent.entries for extent in queue.extents] == [32, 64, 128, 256, 512]
    assert queue.entries(0, 1000) == (
        [n * 100 for n in range(500)],
        [91 + n for n in range(500)],
    )
    assert queue.tags(0, 1000) == [-n for n in range(500)]
    assert queue.entries(90, 10) == (
        [n * 100 for n in range(90, 100)],
        [91 + n for n in range(90, 100)],
    )
    assert queue.tags(499, 5) == [-499]
    assert queue.entries(500, 5) == ([], [])
    assert (queue.position(31), queue.position(500)) == (3100, None)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 700), max_size=12))
def test_many_at_once_are_the_same_as_one_by_one(counts: list[int]) -> None:
    index = Index(ExtentFiles(NoDisk()))
    one, many = make(index), make(index)
    for count in counts:
        numbers = range(one.next_offset, one.next_offset + count)
        many.append_many(
            [n * 100 for n in numbers], [91 + n for n in numbers], [-n for n in numbers]
        )
        fill(one, count)
    assert one.next_offset == many.next_offset
    assert one.entries(0, 10_000) == many.entries(0, 10_000)
    assert one.tags(0, 10_000) == many.tags(0, 10_000)
    index.files.close()


def test_positions_may_be_as_large_as_a_log_ever_gets(index: Index) -> None:
    queue = make(index)
    queue.append(2**63 - 1, 2**32 - 1, -(2**63))
    assert queue.entries(0, 1) == ([2**63 - 1], [2**32 - 1])
    assert queue.tags(0, 1) == [-(2**63)]


def test_an_extent_is_never_longer_than_the_longest(index: Index) -> None:
    queue = make(index)
    count = 3 * LONGEST
    queue.append_many(range(count), [91] * count, [0] * count)
    assert {extent.entries for extent in queue.extents} == {LONGEST}


def test_without_room_nothing_of_several_is_added() -> None:
    disk = FillingUp()
    index = Index(ExtentFiles(disk))
    queue = make(index)
    fill(queue, 10)
    count = 60 * LONGEST
    with pytest.raises(StoreFull):
        queue.append_many(range(count), [91] * count, [0] * count)
    assert (queue.next_offset, len(queue.extents)) == (10, 1)
    fill(queue, 5)
    assert queue.entries(0, 100)[0] == [n * 100 for n in range(15)]
    index.files.close()


def test_taking_back_gives_space_back(index: Index) -> None:
    queue = make(index)
    fill(queue, 300)
    queue.truncate(40)
    assert (queue.next_offset, [extent.first for extent in queue.extents]) == (40, [0, 32])
    fill(queue, 20)
    assert queue.entries(0, 100)[0] == [n * 100 for n in range(60)]
    queue.truncate(0)
    assert queue.extents == []
    fill(queue, 1)
    assert queue.entries(0, 9) == ([0], [91])


# What recovery does


def test_a_gap_is_filled_with_lost_messages(index: Index) -> None:
    queue = make(index)
    fill(queue, 2)
    assert queue.place(5, 1000, 91, 7, losses=3)
    assert queue.entries(0, 9) == ([0, 100, 1000, 1000, 1000, 1000], [91, 92, 0, 0, 0, 91])
    assert queue.tags(5, 1) == [7]


def test_a_gap_wider_than_the_damage_is_no_gap(index: Index) -> None:
    queue = make(index)
    assert not queue.place(2**62, 0, 91, 0, losses=100)
    assert not queue.place(101, 0, 91, 0, losses=100)
    assert queue.next_offset == 0


def test_a_lost_message_that_turns_up_takes_its_place(index: Index) -> None:
    queue = make(index)
    fill(queue, 1)
    assert queue.place(3, 400, 91, 0, losses=2)
    assert queue.place(1, 300, 95, 9, losses=2)
    assert queue.entries(0, 9) == ([0, 300, 400, 400], [91, 95, 0, 91])
    assert queue.tags(1, 1) == [9]


def test_a_place_that_is_taken_stays(index: Index) -> None:
    queue = make(index)
    fill(queue, 3)
    assert not queue.place(1, 999, 91, 0, losses=10)
    assert queue.entries(0, 9)[0] == [0, 100, 200]


# What retention does


def test_the_lower_end_moves_when_it_is_looked_at(index: Index) -> None:
    queue = make(index)
    fill(queue, 300)
    assert queue.min_offset == 0
    index.first_kept = 10_050
    assert queue.min_offset == 101
    assert [extent.first for extent in queue.extents] == [96, 224]
    assert index.dirty == {queue}
    assert queue.entries(101, 1) == ([10_100], [192])
    assert queue.position(100) is None


def test_a_queue_without_messages_keeps_its_offsets_but_no_space(index: Index) -> None:
    queue = make(index)
    fill(queue, 40)
    index.first_kept = 1 << 40
    assert (queue.min_offset, queue.next_offset, queue.extents) == (40, 40, [])
    queue.append(1 << 40, 91, 0)
    assert (queue.min_offset, queue.next_offset) == (40, 41)
    assert queue.entries(40, 1) == ([1 << 40], [91])
    assert queue.extents[0].entries == SHORTEST


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=100), st.integers(0, 130))
def test_the_lower_end_is_the_first_message_still_kept(losses: list[int], kept: int) -> None:
    """Also with lost messages between."""
    index = Index(ExtentFiles(NoDisk()))
    queue = make(index)
    positions: list[int] = []
    for number, lost in enumerate(losses):
        assert queue.place(queue.next_offset + lost, number, 91, 0, losses=3)
        positions += [number] * (lost + 1)
    index.first_kept = kept
    assert queue.min_offset == sum(position < kept for position in positions)
    index.files.close()


# What a checkpoint and a deletion do


def test_a_queue_is_restored_from_its_extents(index: Index) -> None:
    queue = make(index)
    fill(queue, 200)
    again = make(index)
    again.restore(list(queue.extents), 5, 200)
    assert (again.min_offset, again.next_offset) == (5, 200)
    fill(again, 100)
    assert again.entries(150, 100)[0] == [n * 100 for n in range(150, 250)]


def test_a_deleted_queue_is_empty_and_takes_nothing(index: Index) -> None:
    queue = make(index)
    fill(queue, 40)
    index.dirty.add(queue)
    queue.forget()
    assert (queue.min_offset, queue.next_offset, queue.number) == (0, 0, 0)
    assert index.dirty == set()
    with pytest.raises(StoreError, match="queue 0 of T has been deleted"):
        queue.append(0, 91, 0)
    rows = index.files.take_changes().rows
    assert {row[1] for row in rows.values()} == {0}
