"""One sync for all who wait; after a failed one nobody is told that anything is safe."""

import errno
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pocketmq.errors import StoreFailed
from pocketmq.store import Flusher, MessageStore, StoreOptions
from pocketmq.store.disk import Disk, DiskFile
from tests.store.faults import FullDisk, abandon
from tests.store.messages import bodies, put


class ByHand(Flusher):
    """Runs jobs when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []

    def submit(self, job: Callable[[], None], outcome: Callable[[Exception | None], None]) -> None:
        self.waiting.append((job, outcome))

    def run(self) -> None:
        super().submit(*self.waiting.pop(0))

    def close(self) -> None:
        while self.waiting:
            self.run()


def test_everyone_who_came_before_a_sync_began_shares_it(tmp_path: Path) -> None:
    flusher = ByHand()
    store = MessageStore.open(tmp_path / "s", flusher=flusher)
    heard: list[str] = []
    put(store, "T", b"1")
    store.request_sync(lambda error: heard.append("first"))
    put(store, "T", b"2")
    store.request_sync(lambda error: heard.append("second"))
    store.request_sync(lambda error: heard.append("third"))
    assert len(flusher.waiting) == 1
    flusher.run()
    assert heard == ["first"]
    assert store.synced < store.log.written
    assert len(flusher.waiting) == 1
    flusher.run()
    assert heard == ["first", "second", "third"]
    assert store.synced == store.log.written
    assert flusher.waiting == []
    abandon(store)


def test_one_who_asks_again_in_the_call_back_is_served(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    heard: list[int] = []

    def again(error: Exception | None) -> None:
        heard.append(len(heard))
        if len(heard) < 3:
            put(store, "T", b"x")
            store.request_sync(again)

    store.request_sync(again)
    assert heard == [0, 1, 2]
    store.close()


def test_after_a_failed_sync_the_store_takes_nothing_until_it_is_opened_again(
    tmp_path: Path,
) -> None:
    disk = FullDisk(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", disk=disk)
    put(store, "T", b"1")
    disk.broken = True
    heard: list[Exception | None] = []
    store.request_sync(heard.append)
    disk.broken = False
    store.request_sync(heard.append)
    assert [type(error) for error in heard] == [StoreFailed, StoreFailed]
    for count in (1, 2):
        with pytest.raises(StoreFailed, match="Input/output error"):
            put(store, "T", *[b"2"] * count)
    assert bodies(store, "T") == [b"1"]
    store.checkpoint(heard.append)
    assert isinstance(heard[-1], StoreFailed)
    store.close()
    again = MessageStore.open(tmp_path / "s")
    assert again.recovered.records == 1
    put(again, "T", b"2")
    assert bodies(again, "T") == [b"1", b"2"]
    again.close()


def test_without_sync_the_log_is_synced_now_and_then(tmp_path: Path) -> None:
    options = StoreOptions(sync_interval=0.5, checkpoint_interval=1000)
    store = MessageStore.open(tmp_path / "s", options)
    store.maintain(10.0)
    put(store, "T", b"1")
    store.maintain(10.4)
    assert store.synced == 0
    store.maintain(10.5)
    assert store.synced == store.log.written
    store.close()


def test_with_sync_only_those_who_ask_wait_for_the_device(tmp_path: Path) -> None:
    options = StoreOptions(sync=True, checkpoint_interval=1000)
    store = MessageStore.open(tmp_path / "s", options)
    put(store, "T", b"1")
    store.maintain(10.0)
    assert store.synced == 0
    store.close()


class Device(Disk):
    """Syncs at once, takes a millisecond for it, or fails."""

    slow = broken = False
    failed = 0

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return DeviceFile(self, path, size, create=create)


class DeviceFile(DiskFile):
    __slots__ = ("_device",)

    def __init__(self, device: Device, path: Path, size: int, *, create: bool) -> None:
        self._device = device
        super().__init__(path, size, create=create)

    def sync(self) -> None:
        if self._device.slow:
            time.sleep(0.001)
        if self._device.broken:
            self._device.failed += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def syncs_until_quick(store: MessageStore) -> int:
    """Sync one message after another until the caller may do it itself; return how many before."""
    heard: list[Exception | None] = []
    for number in range(100_000):
        put(store, "T", b"x")
        if store.sync_if_quick():
            assert store.synced == store.log.written
            return number
        store.request_sync(heard.append)
        assert len(heard) == number + 1
    raise AssertionError("no sync was expected to be quick")


def test_the_caller_syncs_itself_once_many_syncs_in_a_row_were_quick(tmp_path: Path) -> None:
    device = Device(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", disk=device)
    assert syncs_until_quick(store) >= 16
    device.slow = True
    put(store, "T", b"x")
    store.sync_if_quick()
    put(store, "T", b"x")
    assert not store.sync_if_quick()
    assert store.synced < store.log.written
    device.slow = False
    assert syncs_until_quick(store) >= 16
    store.close()


def test_syncs_of_a_slow_device_are_never_expected_to_be_quick(tmp_path: Path) -> None:
    device = Device(tmp_path / "s")
    device.slow = True
    store = MessageStore.open(tmp_path / "s", disk=device)
    for _ in range(40):
        put(store, "T", b"x")
        assert not store.sync_if_quick()
        store.request_sync(lambda error: None)
    store.close()


def test_a_quick_sync_that_fails_is_reported_to_the_one_who_asks_next(tmp_path: Path) -> None:
    device = Device(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", disk=device)
    while not device.failed:  # again, if the quick sync before that took long by chance
        syncs_until_quick(store)
        put(store, "T", b"lost")
        device.broken = True
        assert not store.sync_if_quick()
        device.broken = False
    heard: list[Exception | None] = []
    store.request_sync(heard.append)
    assert [type(error) for error in heard] == [StoreFailed]
    assert store.synced < store.log.written
    store.close()


def test_no_caller_syncs_while_another_sync_runs(tmp_path: Path) -> None:
    flusher = ByHand()
    store = MessageStore.open(tmp_path / "s", flusher=flusher, disk=Device(tmp_path / "s"))
    for _ in range(100_000):
        if store.sync_if_quick():
            break
        put(store, "T", b"x")
        store.request_sync(lambda error: None)
        flusher.run()
    put(store, "T", b"x")
    store.request_sync(lambda error: None)
    assert not store.sync_if_quick()
    abandon(store)


class FailsOnce(Disk):
    """A device that reports an error of the log once, as Linux does; the next sync succeeds."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fails = False
        self.failed = threading.Event()

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return FailsOnceFile(self, path, size, create=create)


class FailsOnceFile(DiskFile):
    __slots__ = ("_device",)

    def __init__(self, device: FailsOnce, path: Path, size: int, *, create: bool) -> None:
        self._device = device
        super().__init__(path, size, create=create)

    def sync(self) -> None:
        if self._device.fails and self.path.parent.name == "commitlog":
            self._device.fails = False
            self._device.failed.set()
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("quick", [True, False])
def test_nobody_is_told_that_a_message_is_safe_whose_pages_a_checkpoint_could_not_write(
    tmp_path: Path, *, quick: bool
) -> None:
    device, reports = FailsOnce(tmp_path / "s"), queue.SimpleQueue[Callable[[], None]]()
    store = MessageStore.open(tmp_path / "s", disk=device, flusher=Flusher(reports.put))
    heard: list[Exception | None] = []

    def ask() -> None:
        count = len(heard)
        store.request_sync(heard.append)
        while len(heard) == count:
            reports.get(timeout=20)()

    put(store, "T", b"x")
    while not store.sync_if_quick():
        ask()
    heard.clear()
    put(store, "T", b"lost")
    device.fails = True
    store.checkpoint()
    assert device.failed.wait(20)
    if quick:
        assert not store.sync_if_quick()
    ask()
    assert [type(error) for error in heard] == [StoreFailed]
    abandon(store)


def test_a_caller_that_syncs_itself_waits_for_the_failures_of_jobs_before(tmp_path: Path) -> None:
    device, reports = FailsOnce(tmp_path / "s"), queue.SimpleQueue[Callable[[], None]]()
    store = MessageStore.open(tmp_path / "s", disk=device, flusher=Flusher(reports.put))
    put(store, "T", b"lost")
    device.fails = True
    store.checkpoint()
    assert device.failed.wait(20)
    with pytest.raises(StoreFailed, match="Input/output error"):
        store.sync_now()
    assert store.synced < store.log.written
    store.close()
