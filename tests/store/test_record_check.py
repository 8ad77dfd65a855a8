"""Each damaged record is found by its row, and no sound one is suspected."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.store import MessageStore, QueueIndex
from pocketmq.store.record_check import suspect_rows
from pocketmq.store.segments import Segment
from tests.store.faults import abandon
from tests.store.messages import put

COUNT = 6
LONG = b"KEYS\x01" + b"k" * 700 + b"\x02"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    store = MessageStore.open(tmp_path)
    yield store
    abandon(store)


def filled(store: MessageStore, body: bytes, text: bytes) -> tuple[Segment, QueueIndex]:
    for _ in range(COUNT):
        put(store, "T", body, text=text)
    segment, queue = store.log.segments.at(0), store.queue("T", 0)
    assert segment is not None
    assert queue is not None
    return segment, queue


@pytest.mark.parametrize("text", [b"", b"TAGS\x01a\x02", LONG], ids=["none", "short", "long"])
@pytest.mark.parametrize("body", [b"", b"x", b"x" * 2000], ids=len)
def test_rows_of_damaged_records_are_suspect_and_no_others(
    store: MessageStore, body: bytes, text: bytes
) -> None:
    segment, queue = filled(store, body, text)
    positions, sizes = queue.entries(0, COUNT)
    assert suspect_rows(segment, queue, 0, positions, sizes) == []
    size = sizes[0]
    places = [0, 4, 8, 12, 20, 28, 39, 84, size - len(text) - 3, *([88] if body else [])]
    for at in places:
        for row in (1, COUNT - 1):
            segment.file.map[positions[row] + at] ^= 0x20
        found = suspect_rows(segment, queue, 0, positions, sizes)
        assert found == [1, COUNT - 1], at
        for row in (1, COUNT - 1):
            segment.file.map[positions[row] + at] ^= 0x20


def test_rows_count_from_the_first_entry_asked_for(store: MessageStore) -> None:
    segment, queue = filled(store, b"body", b"")
    positions, sizes = queue.entries(2, COUNT)
    segment.file.map[positions[1] + 88] ^= 1
    assert suspect_rows(segment, queue, 2, positions, sizes) == [1]
    assert suspect_rows(segment, queue, 3, positions, sizes) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "zero_at"), [(b"TAGS\x01a\x02", -1), (LONG, -1), (LONG, -300)], ids=repr
)
def test_properties_that_a_crash_tore_are_suspect(
    store: MessageStore, text: bytes, zero_at: int
) -> None:
    segment, queue = filled(store, b"x" * 600, text)
    positions, sizes = queue.entries(0, COUNT)
    segment.file.map[positions[2] + sizes[2] + zero_at] = 0
    assert suspect_rows(segment, queue, 0, positions, sizes) == [2]


def test_entries_that_lead_out_of_the_file_make_all_rows_suspect(store: MessageStore) -> None:
    segment, queue = filled(store, b"body", b"")
    positions, sizes = queue.entries(0, COUNT)
    assert suspect_rows(segment, queue, 0, positions, [*sizes[:-1], 2**31]) == list(range(COUNT))
