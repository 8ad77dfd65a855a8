"""One flipped bit costs at most the message that it hit, and never passes for a sound one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.protocol import RecordView
from pocketmq.protocol.record_scan import tags_code
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.commit_log import TRUSTED_FOR
from tests.store.faults import abandon
from tests.store.messages import NOW_MS, bodies, kept, put

OPTIONS = StoreOptions(segment_size=4096)
TEXT = b"KEYS\x01k\x02TAGS\x01a\x02"
CODE = tags_code(TEXT)
COUNT = 40
HIT = 17
"""The offset of the message that is damaged."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two queues whose messages take turns, in several files of the log."""
    store = MessageStore.open(tmp_path, OPTIONS)
    for number in range(COUNT):
        for queue_id in (0, 1):
            text = b"%d-%02d " % (queue_id, number) + b"x" * 70
            put(store, "T", text, queue_id=queue_id, text=TEXT, now_ms=NOW_MS + number)
    assert len(store.log.segments) > 3
    store.close()
    return tmp_path


def place(path: Path, offset: int) -> tuple[int, int]:
    """Return position and size of a message of queue 0."""
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    assert queue is not None
    (position,), (size,) = queue.entries(offset, 1)
    store.close()
    return position, size


def log_file(path: Path, position: int) -> tuple[Path, int]:
    """Return the file of the log with a position, and where in it that is."""
    starts = [int(file.name) for file in (path / "commitlog").iterdir()]
    start = max(each for each in starts if each <= position)
    return path / "commitlog" / f"{start:020d}", position - start


def flip(file: Path, at: int, mask: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        (byte,) = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte ^ mask]))


def offsets(pieces: list[memoryview]) -> Iterator[int]:
    for piece in pieces:
        yield RecordView(piece, 0).queue_offset


def assert_others_are_served(path: Path, *, lost: bool) -> None:
    """Read in every way: what comes is sound, and only the damaged message may be missing."""
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    expected = set(range(COUNT)) - ({HIT} if lost else set())
    found = kept(store, queue)
    for offset, body in found.items():
        assert body == b"0-%02d " % offset + b"x" * 70
    assert set(found) == expected
    read = store.read(queue, 0, 2 * COUNT, 1 << 20, tags={CODE})
    assert set(offsets(read.pieces)) >= expected - {HIT}
    read = store.read(queue, 0, 2 * COUNT, 1 << 20, lambda code, piece: True)
    assert set(offsets(read.pieces)) == expected
    count = offset = 0
    while offset < COUNT:  # a damaged size may look too large for one answer
        joined = store.read(queue, offset, 2 * COUNT, 1 << 20, joined=True)
        assert joined.size == sum(map(len, joined.pieces))
        assert joined.next_offset > offset
        count, offset = count + joined.count, joined.next_offset
    assert count == len(expected)
    by_key = store.find_by_key("T", "k", 0, NOW_MS * 2, 1000)
    assert set(map(len, by_key)) == {len(by_key[0])}
    assert len(by_key) >= 2 * COUNT - 1
    assert len(bodies(store, "T", 1)) == COUNT
    abandon(store)


UNPROTECTED = [*range(16, 20), *range(36, 84)]
"""Bytes of a record without a checksum: the application's flag, system flag, times, hosts."""


@pytest.mark.parametrize("mask", [1, 0x80])
def test_a_record_with_a_flipped_bit_is_passed_over(path: Path, mask: int) -> None:
    position, size = place(path, HIT)
    file, start = log_file(path, position)
    text_at = size - len(TEXT)
    for at in range(text_at):
        if at in UNPROTECTED:
            continue
        flip(file, start + at, mask)
        assert_others_are_served(path, lost=True)
        flip(file, start + at, mask)
    assert_others_are_served(path, lost=False)


@pytest.mark.parametrize("column", [0, 16])  # positions, sizes
def test_an_index_entry_with_a_flipped_bit_is_passed_over(path: Path, column: int) -> None:
    """The first run of a queue has 32 entries; that of queue 0 is the first of the file."""
    width = 8 if column == 0 else 4
    (file,) = (path / "index").iterdir()
    for bit in range(8 * width):
        at = 32 * column + HIT * width + bit // 8
        flip(file, at, 1 << bit % 8)
        assert_others_are_served(path, lost=True)
        flip(file, at, 1 << bit % 8)
    assert_others_are_served(path, lost=False)


def test_an_entry_that_names_a_sound_record_of_another_queue_is_passed_over(path: Path) -> None:
    """Both records have the same size, so that only what they say of themselves tells."""
    store = MessageStore.open(path, OPTIONS)
    other = store.queue("T", 1)
    assert other is not None
    wrong = other.entries(HIT, 1)[0][0]
    store.close()
    (file,) = (path / "index").iterdir()
    with file.open("r+b") as opened:
        opened.seek(HIT * 8)
        opened.write(wrong.to_bytes(8, "little"))
    assert_others_are_served(path, lost=True)


def test_an_entry_that_names_a_record_of_this_run_is_passed_over(path: Path) -> None:
    """What this process wrote needs no check, but an old entry may point there by mistake."""
    (file,) = (path / "index").iterdir()
    store = MessageStore.open(path, OPTIONS)
    position = put(store, "T", b"new" * 30, text=TEXT).positions[0]
    queue = store.queue("T", 0)
    with file.open("r+b") as opened:
        opened.seek(2 * 640 + (COUNT - 1 - 32) * 8)  # the last entry of the earlier run
        opened.write(position.to_bytes(8, "little"))
    assert list(offsets(store.read(queue, COUNT - 1, 1, 1000).pieces)) == []
    assert list(offsets(store.read(queue, COUNT - 1, 9, 1000).pieces)) == [COUNT]
    assert list(offsets(store.read(queue, COUNT - 1, 9, 1000, tags={CODE}).pieces)) == [COUNT]
    abandon(store)


def test_records_are_checked_again_after_a_while(path: Path) -> None:
    """The system may have dropped them from memory, and read them from the device again."""
    position, _ = place(path, HIT)
    file, start = log_file(path, position)
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    assert store.read(queue, 0, COUNT, 1 << 20).count == COUNT
    flip(file, start + 90, 1)  # seen through the mapping at once, as on a page that was read again
    store.maintain(2 * TRUSTED_FOR)
    assert store.read(queue, 0, COUNT, 1 << 20).count == COUNT - 1
    abandon(store)


def test_what_this_process_wrote_is_checked_after_a_while(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, OPTIONS)
    position = put(store, "T", *[b"%d" % n for n in range(9)]).positions[4]
    flip(tmp_path / "commitlog" / f"{0:020d}", position + 88, 1)
    for periods, count in [(1, 9), (2, 8)]:
        store.maintain(periods * TRUSTED_FOR)
        assert store.read(store.queue("T", 0), 0, 9, 1 << 20).count == count
    abandon(store)


def test_a_search_by_time_is_not_misled_by_a_damaged_entry(path: Path) -> None:
    (file,) = (path / "index").iterdir()
    for value in (0, 1 << 50, 100):
        for entry in (19, 20, 21):  # a search over 40 begins there
            with file.open("r+b") as opened:
                opened.seek(entry * 8)
                before = opened.read(8)
                opened.seek(entry * 8)
                opened.write(value.to_bytes(8, "little"))
            store = MessageStore.open(path, OPTIONS)
            queue = store.queue("T", 0)
            assert queue is not None
            for wanted in (3, 30):
                assert store.offset_by_time(queue, NOW_MS + wanted) == wanted
            abandon(store)
            with file.open("r+b") as opened:
                opened.seek(entry * 8)
                opened.write(before)


def test_deleting_old_files_keeps_what_lies_behind_a_damaged_entry(path: Path) -> None:
    """The lower end of a queue is searched for; entry 20 is the first that is looked at."""
    (file,) = (path / "index").iterdir()
    store = MessageStore.open(path, OPTIONS)
    assert store.drop_first_segment()
    queue = store.queue("T", 0)
    assert queue is not None
    low = queue.min_offset
    abandon(store)
    assert 0 < low < 19
    for entries in ([20], [19, 20, 21], range(low + 2, 30)):
        for entry in entries:
            with file.open("r+b") as opened:
                opened.seek(entry * 8)
                opened.write(bytes(8))
        store = MessageStore.open(path, OPTIONS)
        queue = store.queue("T", 0)
        assert queue is not None
        assert queue.min_offset == low
        assert set(kept(store, queue)) == set(range(low, COUNT)) - set(entries)
        abandon(store)
