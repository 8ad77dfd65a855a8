"""Opening, using and closing stores leaves no descriptor, thread or mapping behind."""

import gc
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq.errors import StoreCorrupt
from pocketmq.store import Flusher, MessageStore, StoreOptions
from tests.store.messages import bodies, put

SMALL = StoreOptions(segment_size=4096)


def in_use(path: Path) -> tuple[int, int, int]:
    gc.collect()
    mappings = Path("/proc/self/maps").read_text().count(str(path))
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), mappings


def assert_no_more(path: Path, before: tuple[int, int, int]) -> None:
    """Files and threads of tests before may end meanwhile."""
    now = in_use(path)
    assert all(each <= then for each, then in zip(now, before, strict=True)), (now, before)


def descriptors(folder: Path) -> int:
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists, or one that was closed meanwhile
            count += str(folder) in str(link.readlink())
    return count


def live(path: Path | None) -> None:
    store = MessageStore.open(path, SMALL, flusher=Flusher(lambda call: None))
    held = []
    for number in range(20):
        put(store, "T", b"%d" % number * 500)
        store.request_sync(lambda error: None)
        queue = store.make_queue("T", 0)
        held.append(store.read(queue, queue.min_offset, 1, 1))
        store.maintain(float(number))
    put(store, "U", b"x")
    store.delete_topic("U")
    while store.drop_first_segment():
        pass
    store.close()
    assert all(read.pieces[0][0] == 0 for read in held)


def test_a_store_leaves_nothing_behind(tmp_path: Path) -> None:
    live(tmp_path / "s")
    before = in_use(tmp_path)
    for _ in range(5):
        live(tmp_path / "s")
        live(None)
    assert_no_more(tmp_path, before)
    assert before[2] == 0


def test_a_store_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    live(tmp_path / "s")
    for file in (tmp_path / "s" / "commitlog").iterdir():
        file.rename(file.with_name("1" * 20))
    before = in_use(tmp_path)
    for _ in range(3):
        with pytest.raises(StoreCorrupt):
            MessageStore.open(tmp_path / "s")
    assert_no_more(tmp_path, before)


def test_a_slow_reader_delays_only_the_unmapping(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s", SMALL)
    for number in range(10):
        put(store, "T", b"%d" % number * 1500)
    store.checkpoint()
    queue = store.make_queue("T", 0)
    slow = store.read(queue, 0, 2, 1 << 20)
    while store.drop_first_segment():
        pass
    maps = Path("/proc/self/maps")
    gone = f"{tmp_path}/s/commitlog/00000000000000000000 (deleted)"  # others may have such, too
    assert maps.read_text().count(gone) == 1
    assert bytes(slow.pieces[0]).count(b"0" * 1500) == 1
    del slow
    gc.collect()
    assert maps.read_text().count(gone) == 0
    assert bodies(store, "T")[-1] == b"9" * 1500
    store.close()


def test_files_that_are_only_read_hold_one_descriptor_each(tmp_path: Path) -> None:
    """Those that are open: there are more of them than may be."""
    store = MessageStore.open(tmp_path / "s", SMALL)
    for number in range(40):
        put(store, "T", b"%d" % number * 1000)
    store.request_sync(lambda error: None)
    most = store.disk.most_open
    assert most < len(store.log.segments)
    assert descriptors(tmp_path / "s" / "commitlog") == most + 1
    store.close()
    again = MessageStore.open(tmp_path / "s", SMALL)
    assert descriptors(tmp_path / "s" / "commitlog") <= 2
    again.close()
