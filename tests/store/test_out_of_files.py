"""A process without file descriptors: what cannot be done now is done later, nothing is lost."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pocketmq.errors import StoreFailed
from pocketmq.store import MessageStore
from tests.store.messages import bodies, put


@contextmanager
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_sync_or_checkpoint_that_cannot_open_a_file_is_made_up_for_later(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"1")
    heard: list[Exception | None] = []
    for segment in store.log.segments:
        segment.file.rest()
    with no_descriptors():
        store.request_sync(heard.append)
        store.checkpoint(heard.append)
    assert [type(error) for error in heard] == [StoreFailed, StoreFailed]
    assert store.synced == 0
    put(store, "T", b"2")
    store.request_sync(heard.append)
    store.checkpoint(heard.append)
    assert heard[2:] == [None, None]
    assert store.synced == store.log.written
    store.close()
    again = MessageStore.open(tmp_path / "s")
    assert bodies(again, "T") == [b"1", b"2"]
    again.close()


def test_a_message_that_cannot_be_written_is_refused_and_the_next_one_taken(
    tmp_path: Path,
) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"1")
    for segment in store.log.segments:
        segment.file.rest()
    with no_descriptors(), pytest.raises(StoreFailed, match="Too many open files"):
        put(store, "T", b"2")
    put(store, "T", b"3")
    assert bodies(store, "T") == [b"1", b"3"]
    store.close()


def test_a_folder_that_cannot_be_listed_is_a_failure_of_the_store(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"1")
    with no_descriptors(), pytest.raises(StoreFailed, match="Too many open files"):
        store.disk.sizes("commitlog")
    store.close()
