"""A data directory is private, stays where it is, and what goes missing from it is noticed."""

import os
import resource
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq.broker.upkeep.stored_formats import FORMATS
from pocketmq.errors import StoreCorrupt, StoreFailed
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.check_values import Severity
from pocketmq.store.checking import check_store
from pocketmq.store.disk import Disk
from pocketmq.store.repair import repair_store
from tests.store.messages import bodies, kept, put

SMALL = StoreOptions(segment_size=4096)


def filled(path: Path, count: int = 60) -> None:
    store = MessageStore.open(path, SMALL)
    for number in range(count):
        put(store, "T", b"%d" % number * 100)
    store.find_by_key("T", "none", 0, 1 << 50, 1)
    store.close()


# Missing files


@pytest.mark.parametrize("content", [b"", None])
def test_empty_metadata_beside_a_log_is_refused(tmp_path: Path, content: bytes | None) -> None:
    filled(tmp_path)
    for name in ("meta.sqlite-wal", "meta.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    if content is None:
        (tmp_path / "meta.sqlite").unlink()
    else:
        (tmp_path / "meta.sqlite").write_bytes(content)
    for _ in range(2):  # the refusal itself must not make it look like a store
        with pytest.raises(StoreCorrupt, match="put back"):
            MessageStore.open(tmp_path, SMALL)
    assert not check_store(tmp_path, FORMATS).sound
    repair_store(tmp_path, FORMATS)
    store = MessageStore.open(tmp_path, SMALL)
    assert len(bodies(store, "T")) == 60
    store.close()


def test_empty_metadata_without_a_log_is_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "meta.sqlite").touch()
    store = MessageStore.open(tmp_path, SMALL)
    put(store, "T", b"1")
    store.close()


def test_first_files_that_are_gone_are_told_at_each_start_until_a_repair(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    files = sorted((tmp_path / "commitlog").iterdir())
    files[0].unlink()
    files[1].unlink()
    for _ in range(2):
        caplog.clear()
        store = MessageStore.open(tmp_path, SMALL)
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert record.message.startswith("commit log files are missing: bytes=8192 ")
        put(store, "T", b"more")
        store.close()
        (error,) = [
            each
            for each in check_store(tmp_path, FORMATS).findings
            if each.severity is Severity.ERROR
        ]
        assert error.text == (
            "bytes 0 to 8192 are missing: the first files are gone, "
            "and retention has not deleted them"
        )
    repair_store(tmp_path, FORMATS)
    caplog.clear()
    store = MessageStore.open(tmp_path, SMALL)
    assert caplog.messages == []
    store.close()
    assert check_store(tmp_path, FORMATS).sound


@pytest.mark.parametrize("clean", [True, False])
def test_files_that_retention_deleted_are_not_missing(
    tmp_path: Path, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the process was killed right after the deletion."""
    filled(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", SMALL)
    assert store.drop_first_segment()
    assert store.drop_first_segment()
    place = tmp_path / "s"
    if not clean:
        place = tmp_path / "killed"
        shutil.copytree(tmp_path / "s", place, ignore=shutil.ignore_patterns("lock"))
    store.close()
    store = MessageStore.open(place, SMALL)
    assert caplog.messages == []
    store.close()
    assert check_store(place, FORMATS).sound


# Who may read it


def modes(path: Path) -> dict[str, int]:
    return {
        str(each.relative_to(path)): stat.S_IMODE(each.stat().st_mode)
        for each in [path, *path.rglob("*")]
    }


def test_everything_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        filled(tmp_path / "data" / "store")
    finally:
        os.umask(before)
    found = modes(tmp_path / "data" / "store")
    assert {"commitlog", "index", "lock", "meta.sqlite", "."} < set(found)
    assert {name: mode for name, mode in found.items() if mode & 0o077} == {}


def test_a_store_that_others_could_read_is_closed_to_them_at_the_start(tmp_path: Path) -> None:
    filled(tmp_path / "s")
    for each in (tmp_path / "s").rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    (tmp_path / "s").chmod(0o755)
    MessageStore.open(tmp_path / "s", SMALL).close()
    found = modes(tmp_path / "s")
    assert found.pop(".") == 0o755  # its owner's choice
    assert {name: mode for name, mode in found.items() if mode & 0o077} == {}


# Moved away


@pytest.mark.parametrize("how", ["renamed", "deleted", "replaced"])
def test_a_directory_that_is_gone_takes_no_more_messages(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, aside = tmp_path / "s", tmp_path / "aside"
    store = MessageStore.open(path, SMALL)
    put(store, "T", b"1")
    store.maintain(1.0)
    path.rename(aside)
    if how == "deleted":
        shutil.rmtree(aside)
    if how == "replaced":
        shutil.copytree(aside, path)
    for moment in (2.0, 3.0):
        store.maintain(moment)
        with pytest.raises(StoreFailed, match="was moved or deleted"):
            put(store, "T", b"2")
    (error,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert f"the data directory {path} was moved or deleted" in error.message
    assert bodies(store, "T") == [b"1"]
    heard: list[Exception | None] = []
    store.request_sync(heard.append)
    assert isinstance(heard[0], StoreFailed)
    store.close()
    assert path.exists() == (how == "replaced")
    if how == "renamed":
        again = MessageStore.open(aside, SMALL)
        assert bodies(again, "T") == [b"1"]
        again.close()


def test_a_further_file_is_not_made_in_a_new_directory(tmp_path: Path) -> None:
    """Before anything is due that would notice."""
    path = tmp_path / "s"
    store = MessageStore.open(path, SMALL)
    put(store, "T", b"1")
    path.rename(tmp_path / "aside")
    with pytest.raises(StoreFailed, match="was moved or deleted"):
        put(store, "T", b"x" * 5000)  # more than the file has room for
    assert not path.exists()
    store.maintain(1.0)
    store.close()
    assert not path.exists()


# Descriptors


def open_files(folder: Path) -> int:
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists
            count += link.readlink().is_relative_to(folder)
    return count


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")


@needs_proc
def test_a_log_of_many_files_holds_few_descriptors(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.most_open = 5
    store = MessageStore.open(tmp_path, SMALL, disk=disk)
    for number in range(100):
        put(store, "T", b"%d" % number * 500)
        store.maintain(float(number))
    assert len(store.log.segments) > 30
    most = disk.most_open + 3  # the spare one, and a second descriptor of what is written to
    assert open_files(tmp_path / "commitlog") <= most
    held = store.read(store.queue("T", 0), 0, 1, 1)
    for _ in range(2):
        assert len(kept(store, store.queue("T", 0))) == 100
        assert open_files(tmp_path / "commitlog") <= most + 1
    assert b"0" * 500 in bytes(held.pieces[0])
    store.close()
    again = MessageStore.open(tmp_path, SMALL, disk=disk)
    assert len(bodies(again, "T")) == 100
    assert open_files(tmp_path / "commitlog") <= most
    again.close()


SCRIPT = """
import resource, socket, sys
from pathlib import Path
from pocketmq.store import MessageStore, StoreOptions
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
store = MessageStore.open(Path(sys.argv[1]), StoreOptions(segment_size=4096))
queue, offset = store.queue("T", 0), 0
while offset < queue.next_offset:
    offset = store.read(queue, offset, 32, 1 << 20).next_offset
sockets = [socket.socket() for _ in range(32)]
print(len(store.log.segments))
"""


def test_a_store_of_hundreds_of_files_leaves_descriptors_for_clients(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    for number in range(400):
        put(store, "T", b"%d" % (number % 10) * 3000)
    store.close()
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_the_limit_follows_that_of_the_process() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert Disk(Path()).most_open == 16
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
