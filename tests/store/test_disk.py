"""Files: preallocated, cut for good, and safe to close under a reader."""

import gc
from pathlib import Path

import pytest

from pocketmq.errors import StoreFailed, StoreFull
from pocketmq.store.disk import Disk, FileSystem
from pocketmq.store.no_disk import NoDisk
from tests.store.faults import FullDisk


@pytest.fixture(params=["disk", "memory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> FileSystem:
    return Disk(tmp_path) if request.param == "disk" else NoDisk()


def test_what_is_written_can_be_read_through_the_view(disk: FileSystem) -> None:
    file = disk.create("folder/a", 8192)
    file.write(4090, b"across a page")
    assert bytes(file.view[4090:4103]) == b"across a page"
    assert file.map[4090:4103] == b"across a page"
    file.close()


def test_a_cut_leaves_only_zeros_behind_a_position(disk: FileSystem) -> None:
    file = disk.create("a", 3 << 20)
    file.write(10, b"x" * (2 << 20))
    file.cut(1000)
    assert file.view == b"\0" * 10 + b"x" * 990 + bytes((3 << 20) - 1000)
    file.close()


def test_data_ends_with_the_last_byte_that_is_not_zero(disk: FileSystem) -> None:
    file = disk.create("a", 5 << 20)
    assert file.data_end(0) == 0
    assert file.data_end(5 << 20) == 5 << 20
    file.write(10, b"x" + bytes(3_000_000))
    assert [file.data_end(position) for position in (0, 10, 11, 12)] == [11, 11, 11, 12]
    file.write(5_000_000, b"y\0")
    assert file.data_end(11) == 5_000_001
    file.close()


def test_a_reader_may_keep_a_view_of_a_file_that_is_gone(disk: FileSystem) -> None:
    file = disk.create("a", 8192)
    file.write(100, b"still here")
    piece = file.view[100:110]
    disk.remove("a")
    file.close()
    assert bytes(piece) == b"still here"


def test_a_mapping_goes_with_its_last_reader(tmp_path: Path) -> None:
    """Neither the mapping nor a descriptor is left when the reader is done."""
    gc.collect()  # what other tests left must not go in between
    before = len(list(Path("/proc/self/fd").iterdir()))
    file = Disk(tmp_path).create("a", 8192)
    piece = file.view[100:110]
    file.close()
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    del piece, file
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_closing_and_syncing_twice_does_no_harm(disk: FileSystem) -> None:
    file = disk.create("a", 8192)
    file.sync()
    file.rest()
    file.sync()
    file.write(0, b"x")
    file.close()
    file.sync()


def test_every_block_of_a_new_file_is_allocated(tmp_path: Path) -> None:
    Disk(tmp_path).create("a", 1 << 20).close()
    assert (tmp_path / "a").stat().st_blocks * 512 >= 1 << 20


def test_a_file_is_opened_at_its_size_and_written_to_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.create("x/a", 5000).close()
    disk.create("x/b", 4096).close()
    assert list(disk.sizes("x").items()) == [("a", 5000), ("b", 4096)]
    file = disk.open("x/a")
    assert len(file.view) == 5000
    file.write(10, b"again")
    file.close()
    assert (tmp_path / "x/a").read_bytes()[10:15] == b"again"
    disk.remove("x/a")
    assert list(disk.sizes("x")) == ["b"]
    assert disk.sizes("nowhere") == {}


def test_an_existing_file_is_never_made_anew(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.create("a", 4096).close()
    with pytest.raises(StoreFailed, match="File exists"):
        disk.create("a", 4096)
    assert disk.sizes("") == {"a": 4096}


def test_a_file_that_is_missing_or_empty_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        with pytest.raises(StoreFailed):
            Disk(tmp_path).open(name)


def test_no_room_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    disk.full = True
    with pytest.raises(StoreFull) as caught:
        disk.create("folder/a", 4096)
    assert caught.value.retryable
    assert disk.sizes("folder") == {}


def test_a_file_system_is_partly_free(tmp_path: Path) -> None:
    assert 0 < Disk(tmp_path).free_ratio() < 1
    assert NoDisk().free_ratio() == 1.0


def test_memory_keeps_nothing() -> None:
    disk = NoDisk()
    disk.create("x/a", 4096).close()
    assert disk.sizes("x") == {}
    with pytest.raises(StoreFailed):
        disk.open("x/a")
