"""A run of bytes in files: one position, files of any size, nothing missing between."""

import os
from pathlib import Path

import pytest

from pocketmq.errors import StoreCorrupt, StoreFull
from pocketmq.store.disk import Disk
from pocketmq.store.segments import Segments
from tests.store.faults import FullDisk


def segments(path: Path, size: int = 4096) -> Segments:
    return Segments(Disk(path), "log", size)


def names(path: Path) -> list[str]:
    return list(Disk(path).sizes("log"))


def test_files_are_named_after_their_first_position(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.grow(10)
    run.grow(10)
    assert names(tmp_path) == ["00000000000000000000", "00000000000000004096"]
    assert (run.first, run.end, len(run)) == (0, 8192, 2)
    run.close()


def test_a_position_is_found_in_its_file(tmp_path: Path) -> None:
    run = segments(tmp_path)
    one, two = run.grow(1), run.grow(1)
    assert run.at(0) is run.at(4095) is one
    assert run.at(4096) is two
    assert run.at(8192) is None
    assert run.at(-1) is None
    assert run.from_position(4096) == [two]
    assert run.from_position(4095) == [one, two]
    run.close()


def test_a_run_is_loaded_with_files_of_different_sizes(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.grow(1)
    run.grow(10_000)
    run.close()
    again = segments(tmp_path, 8192)
    again.load()
    again.grow(1)
    assert [(s.start, s.end) for s in again] == [(0, 4096), (4096, 14096), (14096, 22288)]
    again.close()


def test_a_missing_file_is_not_passed_over(tmp_path: Path) -> None:
    run = segments(tmp_path)
    for _ in range(3):
        run.grow(1)
    run.close()
    Disk(tmp_path).remove("log/00000000000000004096")
    with pytest.raises(StoreCorrupt, match="bytes 4096 to 8192 are missing"):
        segments(tmp_path).load()


def test_files_that_are_not_segments_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "notes.txt").write_text("x")
    run = segments(tmp_path)
    run.load()
    assert len(run) == 0
    assert names(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("size", [0, 5, 4095])
def test_a_file_that_was_not_finished_was_never_used(tmp_path: Path, size: int) -> None:
    run = segments(tmp_path)
    run.grow(1)
    run.close()
    (tmp_path / "log" / "00000000000000004096").write_bytes(bytes(size))
    again = segments(tmp_path)
    again.load()
    assert again.end == 4096
    assert names(tmp_path) == ["00000000000000000000"]


def test_a_short_file_that_holds_something_is_kept(tmp_path: Path) -> None:
    """Something else cut it short: what is left of its messages can be read."""
    run = segments(tmp_path)
    run.grow(1)
    run.grow(1).file.write(0, b"message")
    run.close()
    os.truncate(tmp_path / "log" / f"{4096:020d}", 1000)
    again = segments(tmp_path)
    again.load()
    assert [(each.start, each.end) for each in again] == [(0, 4096), (4096, 5096)]
    assert bytes(again.at(4096).view[:8]) == b"message\0"  # type: ignore[union-attr]


def test_the_oldest_file_goes_and_its_readers_go_on(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.grow(1).file.write(5, b"read me")
    run.grow(1)
    oldest = run.oldest
    assert oldest is not None
    piece = oldest.view[5:12]
    assert piece.readonly
    run.drop_first()
    assert (run.first, names(tmp_path)) == (4096, ["00000000000000004096"])
    assert bytes(piece) == b"read me"
    run.drop_first()
    assert (run.first, run.end, run.oldest) == (8192, 8192, None)


def test_what_lies_behind_a_position_is_dropped_for_good(tmp_path: Path) -> None:
    run = segments(tmp_path)
    for _ in range(3):
        run.grow(1).file.write(0, b"x" * 4096)
    assert run.drop_after(5000)
    assert names(tmp_path) == ["00000000000000000000", "00000000000000004096"]
    last = run.at(4096)
    assert last is not None
    assert last.view == b"x" * 904 + bytes(4096 - 904)
    assert not run.drop_after(5000)
    run.close()


def test_a_file_made_ahead_is_used_next(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.grow(1)
    run.prepare()
    run.prepare()
    assert len(names(tmp_path)) == 2
    assert run.end == 4096
    assert run.grow(1).start == 4096
    assert len(names(tmp_path)) == 2
    run.close()


def test_a_file_made_ahead_that_is_too_small_is_replaced(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.prepare()
    run.grow(9000)
    assert Disk(tmp_path).sizes("log") == {"00000000000000000000": 9000}
    run.close()


def test_a_file_made_ahead_but_not_used_goes_at_the_end(tmp_path: Path) -> None:
    run = segments(tmp_path)
    run.grow(1)
    run.prepare()
    run.close()
    assert names(tmp_path) == ["00000000000000000000"]


def test_growing_without_room_changes_nothing(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    run = Segments(disk, "log", 4096)
    run.grow(1)
    disk.full = True
    with pytest.raises(StoreFull):
        run.grow(1)
    assert (len(run), run.end) == (1, 4096)
    disk.full = False
    assert run.grow(1).start == 4096
    run.close()
