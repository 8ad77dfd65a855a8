"""One sync for all who wait; after a failed one nobody is told that anything is safe."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pocketmq.errors import StoreFailed
from pocketmq.store import Flusher, MessageStore, StoreOptions
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
