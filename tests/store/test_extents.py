"""Index space: given out, taken back, used again only when a checkpoint has forgotten it."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import StoreCorrupt, StoreFull
from pocketmq.store import extents
from pocketmq.store.disk import Disk
from pocketmq.store.no_disk import NoDisk
from tests.store.faults import FullDisk

LENGTHS = [extents.SHORTEST << n for n in range(10)]


def span(extent: extents.Extent) -> tuple[int, int, int]:
    return extent.file, extent.place, extent.place + extent.entries * extents.ENTRY_BYTES


def test_the_lengths_are_powers_of_two() -> None:
    assert (LENGTHS[0], LENGTHS[-1]) == (extents.SHORTEST, extents.LONGEST)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(LENGTHS) | st.integers(0, 30), max_size=120))
def test_runs_never_overlap(steps: list[int]) -> None:
    """Numbers below 32 take back the run at that place in the list, and sometimes checkpoint."""
    files = extents.ExtentFiles(NoDisk())
    held: list[extents.Extent] = []
    for step in steps:
        if step >= extents.SHORTEST:
            held.append(files.allocate(1, 0, step))
        elif step < len(held):
            files.free([held.pop(step)])
            if step % 2:
                files.checkpointed(files.take_changes())
    spans = sorted(map(span, held))
    for (file, _, end), (next_file, start, _) in pairwise(spans):
        assert file < next_file or end <= start
    assert all(end <= extents.FILE_BYTES for _, _, end in spans)
    files.close()


def test_space_is_used_again_only_after_a_checkpoint() -> None:
    files = extents.ExtentFiles(NoDisk())
    first = files.allocate(1, 0, 64)
    files.free([first])
    assert files.allocate(2, 0, 64) != first
    changes = files.take_changes()
    assert changes.rows[first.file, first.place] == (64, 0, 0)
    assert files.allocate(2, 0, 64) != first
    files.checkpointed(changes)
    assert files.allocate(2, 0, 64) == first
    files.close()


def test_a_longer_free_run_is_split() -> None:
    files = extents.ExtentFiles(NoDisk())
    long = files.allocate(1, 0, 256)
    files.free([long])
    files.checkpointed(files.take_changes())
    short = files.allocate(2, 7, 64)
    assert (short.first, short.file, short.place) == (7, long.file, long.place)
    half = files.allocate(2, 0, 128)
    assert half.place == long.place + 128 * extents.ENTRY_BYTES
    assert files.take_changes().rows == {
        (0, long.place): (64, 2, 7),
        (0, long.place + 64 * extents.ENTRY_BYTES): (64, 0, 0),
        (0, long.place + 128 * extents.ENTRY_BYTES): (128, 2, 0),
    }
    files.close()


def test_changes_that_could_not_be_recorded_come_again() -> None:
    files = extents.ExtentFiles(NoDisk())
    one = files.allocate(1, 0, 64)
    changes = files.take_changes()
    files.free([one])
    files.put_back(changes)
    again = files.take_changes()
    assert again.rows == {(one.file, one.place): (64, 0, 0)}
    assert again.freed == [(64, one.file, one.place)]
    files.close()


def test_the_end_of_a_file_serves_shorter_runs(tmp_path: Path) -> None:
    files = extents.ExtentFiles(Disk(tmp_path))
    held = [
        files.allocate(1, 0, extents.LONGEST)
        for _ in range(extents.FILE_BYTES // (extents.LONGEST * extents.ENTRY_BYTES) + 1)
    ]
    assert [extent.file for extent in held[-2:]] == [0, 1]
    assert files.allocate(1, 0, extents.SHORTEST).file == 0
    assert files.end == extents.FILE_BYTES + extents.LONGEST * extents.ENTRY_BYTES
    files.close()


def test_a_checkpoint_is_taken_up_again(tmp_path: Path) -> None:
    files = extents.ExtentFiles(Disk(tmp_path))
    kept, freed = files.allocate(1, 0, 64), files.allocate(1, 64, 128)
    files.file(kept.file).positions[kept.place // 8] = 1 << 40
    files.close()
    again = extents.ExtentFiles(Disk(tmp_path))
    again.load(files.end, [(freed.file, freed.place, 128)])
    assert again.file(kept.file).positions[kept.place // 8] == 1 << 40
    assert again.allocate(2, 0, 128)[1:] == freed[1:]
    assert again.allocate(2, 0, 64).place == files.end
    again.close()


def test_a_file_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    Disk(tmp_path).create("index/00000000", 100).close()
    files = extents.ExtentFiles(Disk(tmp_path))
    files.load(0, [])
    assert files.allocate(1, 0, 64).place == 0
    assert Disk(tmp_path).sizes("index") == {"00000000": extents.FILE_BYTES}
    files.close()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    files = extents.ExtentFiles(Disk(tmp_path))
    with pytest.raises(StoreCorrupt, match="index/00000000 is missing"):
        files.load(1280, [])


def test_no_room_for_a_file_changes_nothing(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    files = extents.ExtentFiles(disk)
    disk.full = True
    with pytest.raises(StoreFull):
        files.allocate(1, 0, 64)
    assert files.take_changes().rows == {}
    disk.full = False
    assert files.allocate(1, 0, 64).place == 0
    files.close()
