"""The log's end: written once a turn, blank at the end of a file, unchanged when refused."""

from pathlib import Path

import pytest

from pocketmq.errors import StoreFailed, StoreFull
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import Disk
from tests.store.faults import FullDisk


def started(disk: Disk, size: int = 4096) -> CommitLog:
    log = CommitLog(disk, size)
    log.segments.load()
    log.begin(log.segments.end, 0)
    return log


def add(log: CommitLog, data: bytes) -> None:
    log.pending.append(data)
    log.tail += len(data)


def view(log: CommitLog, position: int, size: int) -> bytes:
    found = log.view(position, size)
    assert found is not None
    return bytes(found)


def test_pending_bytes_are_written_together(tmp_path: Path) -> None:
    log = started(Disk(tmp_path))
    log.make_room(6)
    add(log, b"one")
    add(log, b"two")
    assert (log.tail, log.written) == (6, 0)
    log.write()
    assert (log.tail, log.written, log.pending) == (6, 6, [])
    assert view(log, 0, 6) == b"onetwo"
    assert log.view(4090, 7) is None
    assert log.view(5000, 1) is None
    log.segments.close()


def test_the_rest_of_a_file_is_marked_blank(tmp_path: Path) -> None:
    log = started(Disk(tmp_path))
    log.make_room(4088)
    assert log.limit == 4088
    add(log, b"x" * 4000)
    log.write()
    log.make_room(100)
    assert (log.tail, log.limit) == (4096, 8184)
    assert view(log, 4000, 8).hex() == "00000060cbd43194"
    log.segments.close()


def test_a_record_larger_than_a_file_gets_a_larger_file(tmp_path: Path) -> None:
    log = started(Disk(tmp_path))
    log.make_room(10_000)
    assert log.limit == 10_000
    log.segments.close()


def test_a_refused_write_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    log = started(disk)
    log.make_room(1000)
    add(log, b"a" * 100)
    log.write()
    add(log, b"b" * 500)
    disk.full = True
    with pytest.raises(StoreFull) as caught:
        log.write()
    assert caught.value.wanted == 500
    assert (log.tail, log.written, log.pending) == (100, 100, [])
    log.write()  # there is nothing left to write


def test_what_a_refused_write_left_is_wiped_by_the_next(tmp_path: Path) -> None:
    """Half of the refused bytes are in the file; none may stay behind a shorter write."""
    disk = FullDisk(tmp_path)
    log = started(disk)
    log.make_room(1000)
    add(log, b"b" * 500)
    disk.full = True
    with pytest.raises(StoreFull):
        log.write()
    add(log, b"c" * 10)
    with pytest.raises(StoreFull):
        log.write()
    disk.full = False
    add(log, b"d" * 20)
    log.write()
    assert view(log, 0, 4096) == b"d" * 20 + bytes(4076)
    log.segments.close()


def test_no_room_for_a_new_file_leaves_the_log_usable(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    log = started(disk)
    log.make_room(1000)
    add(log, b"a" * 100)
    log.write()
    disk.full = True
    with pytest.raises(StoreFull):
        log.make_room(4000)
    assert (log.tail, log.limit) == (100, 4088)
    disk.full = False
    add(log, b"b" * 200)
    log.write()
    assert view(log, 0, 300) == b"a" * 100 + b"b" * 200
    log.segments.close()


def test_the_next_file_is_made_when_a_quarter_is_left(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = started(disk)
    log.make_room(1)
    add(log, b"x" * 3000)
    log.prepare()
    assert len(disk.sizes("commitlog")) == 1
    add(log, b"x" * 100)
    log.prepare()
    assert len(disk.sizes("commitlog")) == 2
    log.segments.close()


def test_files_wait_for_a_sync_from_where_the_last_one_ended(tmp_path: Path) -> None:
    log = started(Disk(tmp_path))
    log.make_room(4000)
    add(log, b"x" * 4000)
    log.write()
    files, position = log.unsynced()
    assert (len(files), position) == (1, 4000)
    log.make_room(100)
    add(log, b"x" * 100)
    log.write()
    files, position = log.unsynced()
    assert (len(files), position) == (2, 4196)
    log.was_synced(4196)
    assert log.unsynced() == ([], 4196)
    log.was_synced(4000)
    assert log.synced == 4196
    log.segments.close()


def test_a_failed_sync_is_remembered(tmp_path: Path) -> None:
    log = started(Disk(tmp_path))
    log.sync_failed(OSError(5, "Input/output error"))
    log.sync_failed(OSError(5, "again"))
    assert isinstance(log.failed, StoreFailed)
    assert "Input/output error" in str(log.failed)
