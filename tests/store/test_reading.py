"""Reading a queue: RocketMQ's statuses, limits and filters; damage is passed over."""

from itertools import accumulate
from operator import sub
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol import RecordView
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.record_scan import tags_code
from pocketmq.store import MessageStore, QueueRead, ReadStatus, StoreOptions
from pocketmq.store.reading import SCAN_LIMIT, _long_stretches, _stretches
from tests.store.faults import abandon
from tests.store.messages import NOW_MS, put, record

SMALL = StoreOptions(segment_size=4096)


def found(read: QueueRead) -> list[bytes]:
    return [RecordView(piece, 0).stored_body for piece in read.pieces]


def filled(count: int = 10) -> MessageStore:
    store = MessageStore.open(None)
    put(store, "T", *[b"%d" % n for n in range(count)])
    return store


def test_messages_come_in_order_with_where_to_go_on() -> None:
    store = filled()
    read = store.read(store.queue("T", 0), 3, 4, 10_000)
    assert read.status is ReadStatus.FOUND
    assert found(read) == [b"3", b"4", b"5", b"6"]
    assert (read.next_offset, read.min_offset, read.max_offset, read.count) == (7, 0, 10, 4)
    assert read.size == sum(len(piece) for piece in read.pieces)
    store.close()


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (-1, ReadStatus.OFFSET_TOO_SMALL, 0),
        (10, ReadStatus.OFFSET_OVERFLOW_ONE, 10),
        (11, ReadStatus.OFFSET_OVERFLOW_BADLY, 10),
        (1 << 62, ReadStatus.OFFSET_OVERFLOW_BADLY, 10),
    ],
)
def test_an_offset_outside_is_answered_as_in_rocketmq(
    offset: int, status: ReadStatus, next_offset: int
) -> None:
    store = filled()
    read = store.read(store.queue("T", 0), offset, 32, 10_000)
    assert (read.status, read.next_offset, read.max_offset) == (status, next_offset, 10)
    assert read.pieces == []
    store.close()


def test_a_queue_that_is_missing_or_empty_is_told_apart() -> None:
    store = MessageStore.open(None)
    read = store.read(None, 5, 32, 1000)
    assert (read.status, read.next_offset) == (ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0)
    read = store.read(store.make_queue("T", 0), 5, 32, 1000)
    assert (read.status, read.next_offset) == (ReadStatus.NO_MESSAGE_IN_QUEUE, 0)
    store.close()


def test_the_first_message_comes_however_large_and_the_rest_while_it_fits() -> None:
    store = MessageStore.open(None)
    put(store, "T", b"x" * 5000, b"y" * 100, b"z" * 100)
    queue = store.queue("T", 0)
    assert found(store.read(queue, 0, 32, 10)) == [b"x" * 5000]
    size = len(store.read(queue, 1, 1, 10).pieces[0])
    assert found(store.read(queue, 1, 32, 2 * size - 1)) == [b"y" * 100]
    read = store.read(queue, 1, 32, 2 * size)
    assert (found(read), read.size, read.next_offset) == ([b"y" * 100, b"z" * 100], 2 * size, 3)
    store.close()


def test_what_was_appended_in_this_turn_can_be_read() -> None:
    store = filled(0)
    queue = store.make_queue("T", 0)
    store.append(queue, [record("T", b"now")], [0], NOW_MS)
    assert found(store.read(queue, 0, 1, 1)) == [b"now"]
    store.close()


def test_a_read_goes_from_file_to_file(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s", SMALL)
    contents = [b"%d" % n * 500 for n in range(20)]
    for content in contents:
        put(store, "T", content)
    assert len(store.log.segments) > 4
    assert found(store.read(store.queue("T", 0), 0, 32, 1 << 20)) == contents
    store.close()


def test_views_are_read_only_and_outlive_their_file(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s", SMALL)
    for number in range(10):
        put(store, "T", b"%d" % number * 1000)
    store.checkpoint()
    queue = store.queue("T", 0)
    read = store.read(queue, 0, 1, 1)
    assert read.pieces[0].readonly
    assert store.drop_first_segment()
    assert found(read) == [b"0" * 1000]
    gone = store.read(queue, 0, 32, 1 << 20)
    assert (gone.status, gone.next_offset) == (ReadStatus.OFFSET_TOO_SMALL, gone.min_offset)
    assert 0 < gone.min_offset < 10
    store.close()
    assert found(read) == [b"0" * 1000]


def test_records_side_by_side_may_come_as_one_piece(tmp_path: Path) -> None:
    """Three queues are filled in turns, so that those of one lie apart; the bytes are the same."""
    store = MessageStore.open(tmp_path / "s", SMALL)
    for turn in range(20):
        put(store, "T", *[b"%d-%d" % (turn, n) for n in range(turn % 4)])
        put(store, "other", b"x" * 100)
    queue = store.queue("T", 0)
    for start in range(30):
        for most in (1, 2, 7, 32):
            apart = store.read(queue, start, most, 2000)
            joined = store.read(queue, start, most, 2000, joined=True)
            assert b"".join(joined.pieces) == b"".join(apart.pieces)
            assert (joined.count, joined.size) == (len(apart.pieces), apart.size)
            assert joined.next_offset == apart.next_offset
    assert len(store.read(queue, 0, 32, 10_000, joined=True).pieces) == 15
    store.close()


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 0, 0, 0, 0, 0, 0, 5])), min_size=1)
)
def test_long_stretches_are_found_where_a_look_at_each_finds_them(
    records: list[tuple[int, int]],
) -> None:
    ends = list(accumulate(size + gap for size, gap in records))
    sizes = [size for size, _ in records]
    positions = list(map(sub, ends, sizes))
    assert _long_stretches(positions, sizes) == _stretches(positions, sizes)
    begins, long = _long_stretches(positions, sizes)
    covered = [
        at for begin, size in zip(begins, long, strict=True) for at in range(begin, begin + size)
    ]
    assert covered == [
        at for end, size in zip(ends, sizes, strict=True) for at in range(end - size, end)
    ]


# Filters


def tagged(count: int) -> MessageStore:
    store = MessageStore.open(None)
    queue = store.make_queue("T", 0)
    for number in range(count):
        text = b"TAGS\x01odd\x02" if number % 2 else b"TAGS\x01even\x02"
        made = record("T", b"%d" % number, text=text)
        store.append(queue, [made], [tags_code(text)], NOW_MS)
    return store


ODD = tags_code(b"TAGS\x01odd\x02")


def test_a_set_of_codes_filters_by_the_index_alone() -> None:
    store = tagged(10)
    read = store.read(store.queue("T", 0), 0, 3, 10_000, tags={ODD})
    assert (found(read), read.next_offset) == ([b"1", b"3", b"5"], 6)
    store.close()


def test_a_filter_sees_code_and_record() -> None:
    store = tagged(10)

    def wanted(code: int, piece: memoryview) -> bool:
        return code == ODD and RecordView(piece, 0).stored_body > b"4"

    read = store.read(store.queue("T", 0), 0, 32, 10_000, wanted)
    assert (found(read), read.next_offset) == ([b"5", b"7", b"9"], 10)
    both = store.read(store.queue("T", 0), 0, 32, 10_000, lambda code, piece: True, tags={ODD})
    assert both.count == 5
    store.close()


def test_a_filter_stops_before_the_first_match_that_does_not_fit() -> None:
    store = tagged(10)
    read = store.read(store.queue("T", 0), 0, 32, 1, tags={ODD})
    assert (found(read), read.next_offset) == ([b"1"], 3)
    store.close()


def test_a_search_without_a_match_ends_after_a_while() -> None:
    store = tagged(SCAN_LIMIT + 10)
    read = store.read(store.queue("T", 0), 0, 32, 10_000, tags=set())
    assert (read.status, read.next_offset) == (ReadStatus.NO_MATCHED_MESSAGE, SCAN_LIMIT)
    store.close()


# Damage that recovery did not walk over


@pytest.mark.parametrize("at", [0, 4, 28])
@pytest.mark.parametrize("filtered", [False, True])
def test_a_record_damaged_before_the_checkpoint_is_passed_over(
    tmp_path: Path, at: int, filtered: bool
) -> None:
    store = MessageStore.open(tmp_path / "s")
    positions = put(store, "T", *[b"%d" % n for n in range(5)]).positions
    store.close()
    path = tmp_path / "s" / "commitlog" / f"{0:020d}"
    with path.open("r+b") as file:
        file.seek(positions[2] + at)
        file.write(b"\x55")
    again = MessageStore.open(tmp_path / "s")
    tags = {tags_code(b"TAGS\x01a\x02")} if filtered else None
    read = again.read(again.queue("T", 0), 0, 32, 10_000, tags=tags)
    assert (found(read), read.next_offset) == ([b"0", b"1", b"3", b"4"], 5)
    assert read.size == sum(len(piece) for piece in read.pieces)
    joined = again.read(again.queue("T", 0), 0, 32, 10_000, tags=tags, joined=True)
    assert (b"".join(joined.pieces), joined.count) == (b"".join(read.pieces), 4)
    assert again.record_at(positions[2]) is None
    alone = again.read(again.queue("T", 0), 2, 1, 10_000, tags=tags)
    assert (found(alone), alone.next_offset) == (([b"3"], 4) if filtered else ([], 3))
    again.close()


def test_index_entries_that_point_nowhere_are_passed_over(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s", SMALL)
    put(store, "T", b"1", b"2", b"3", b"4")
    store.close()
    with (tmp_path / "s" / "index" / "00000000").open("r+b") as file:
        file.write((4090).to_bytes(8, "little"))  # too near to the file's end
        file.write((1 << 50).to_bytes(8, "little"))
    again = MessageStore.open(tmp_path / "s", SMALL)
    queue = again.queue("T", 0)
    assert found(again.read(queue, 0, 1, 1)) == []
    assert found(again.read(queue, 1, 1, 1)) == []
    assert found(again.read(queue, 2, 9, 999)) == [b"3", b"4"]
    assert found(again.read(queue, 0, 9, 999, lambda code, piece: True)) == [b"3", b"4"]
    abandon(again)


def stored_at(times: list[int], store_host: bytes = bytes(8)) -> MessageStore:
    store = MessageStore.open(None, store_host=store_host)
    store.make_queue("T", 0)
    for time in times:
        put(store, "T", b"x", now_ms=time)
    return store


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=30).map(sorted), st.integers(-1, 21))
def test_the_bounds_of_a_moment(times: list[int], moment: int) -> None:
    store = stored_at(times)
    queue = store.make_queue("T", 0)
    lower = sum(time < moment for time in times)
    upper = sum(time <= moment for time in times) - 1
    assert store.offset_by_time(queue, moment) == lower
    assert store.offset_by_time(queue, moment, upper=True) == max(upper, 0)
    store.close()


@pytest.mark.parametrize("host", [bytes(8), encode_host("[::1]:10911")])
def test_the_time_of_a_message(host: bytes) -> None:
    store = stored_at([5, 7], host)
    queue = store.make_queue("T", 0)
    assert [store.store_time(queue, offset) for offset in (-1, 0, 1, 2)] == [-1, 5, 7, -1]
    assert store.earliest_time(queue) == 5
    store.close()


def test_a_queue_without_messages_has_no_times() -> None:
    store = stored_at([])
    queue = store.make_queue("T", 0)
    assert store.earliest_time(queue) == -1
    assert store.offset_by_time(queue, 5) == 0
    assert store.offset_by_time(queue, 5, upper=True) == 0
    store.close()
