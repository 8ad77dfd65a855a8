"""Queues are made when needed, loaded when asked for, and deleted for good."""

from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput, StoreError
from pocketmq.store import MessageStore, StoreOptions
from tests.store.faults import abandon
from tests.store.messages import NOW_MS, bodies, put, record

SMALL = StoreOptions(segment_size=4096)


def test_a_queue_is_made_once(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    assert store.queue("T", 1) is None
    queue = store.make_queue("T", 1)
    assert store.queue("T", 1) is store.make_queue("T", 1) is queue
    assert (queue.topic, queue.queue_id, queue.min_offset, queue.next_offset) == ("T", 1, 0, 0)
    assert store.queue("T", 0) is None
    assert [q.queue_id for q in store.queues.of("T")] == [1]
    store.close()


@pytest.mark.parametrize("topic", ["", "a\0b"])
def test_a_topic_that_no_record_can_hold_is_refused(topic: str) -> None:
    store = MessageStore.open(None)
    with pytest.raises(InvalidInput, match="cannot be stored"):
        store.make_queue(topic, 0)
    store.close()


def test_only_topics_that_are_asked_for_are_loaded(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    for topic in ("A", "B"):
        for queue_id in range(3):
            put(store, topic, b"x" * queue_id, queue_id=queue_id)
    store.close()
    again = MessageStore.open(tmp_path / "s")
    assert again.queues.topics() == {"A", "B"}
    assert again.queues._loaded == {}
    assert again.queue("Z", 0) is None
    assert bodies(again, "A", 2) == [b"xx"]
    assert list(again.queues._loaded) == ["A"]
    assert [q.queue_id for q in again.queues.of("B")] == [0, 1, 2]
    again.close()


def test_a_deleted_topic_begins_at_0_again(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"old", b"older")
    put(store, "U", b"other")
    stale = store.make_queue("T", 0)
    store.delete_topic("T")
    store.delete_topic("never was")
    assert store.queue("T", 0) is None
    assert store.queues.topics() == {"U"}
    with pytest.raises(StoreError, match="has been deleted"):
        store.append(stale, [record("T", b"late")], [0], NOW_MS)
    assert put(store, "T", b"new").queue_offset == 0
    assert bodies(store, "T") == [b"new"]
    store.close()
    again = MessageStore.open(tmp_path / "s")
    assert bodies(again, "T") == [b"new"]
    assert bodies(again, "U") == [b"other"]
    again.close()


@pytest.mark.parametrize("checkpoint_before", [False, True])
@pytest.mark.parametrize("checkpoint_after", [False, True])
def test_a_deletion_survives_a_crash(
    tmp_path: Path, checkpoint_before: bool, checkpoint_after: bool
) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"old", b"older")
    if checkpoint_before:
        store.checkpoint()
    put(store, "T", b"oldest")
    store.delete_topic("T")
    put(store, "T", b"new")
    if checkpoint_after:
        store.checkpoint()
    put(store, "T", b"newer")
    abandon(store)
    again = MessageStore.open(tmp_path / "s")
    assert again.recovered.damage == []
    assert bodies(again, "T") == [b"new", b"newer"]
    abandon(again)
    third = MessageStore.open(tmp_path / "s")
    assert bodies(third, "T") == [b"new", b"newer"]
    third.close()


def test_a_deletion_does_not_reach_records_that_take_the_place_of_lost_ones(tmp_path: Path) -> None:
    """The deleted messages were never synced, and the machine lost its power."""
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"deleted", b"and lost")
    store.delete_topic("T")
    abandon(store)
    log = tmp_path / "s" / "commitlog" / f"{0:020d}"
    log.write_bytes(bytes(log.stat().st_size))
    again = MessageStore.open(tmp_path / "s")
    put(again, "T", b"new")
    abandon(again)
    third = MessageStore.open(tmp_path / "s")
    assert bodies(third, "T") == [b"new"]
    third.close()


def test_a_topic_deleted_in_the_middle_of_a_turn_takes_its_messages_along(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    queue = store.make_queue("T", 0)
    store.append(queue, [record("T", b"x")], [0], NOW_MS)
    store.delete_topic("T")
    store.write()
    abandon(store)
    again = MessageStore.open(tmp_path / "s")
    assert again.queues.topics() == set()
    again.close()


def test_index_space_of_deleted_topics_is_used_again(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    for _ in range(50):
        put(store, "T", *[b"x"] * 1000)
        store.delete_topic("T")
        store.checkpoint()
    assert store.queues.files.end < 4 * 2000 * 20
    store.close()


def test_index_space_of_idle_queues_is_freed_a_few_topics_at_a_time(tmp_path: Path) -> None:
    """Also that of topics which were not loaded; those without a change are not kept in memory."""
    store = MessageStore.open(tmp_path / "s", SMALL)
    for number in range(10):
        put(store, f"idle-{number}", b"x")
    for _ in range(10):
        put(store, "busy", b"y" * 2000)
    store.close()
    again = MessageStore.open(tmp_path / "s", SMALL)
    put(again, "fresh", b"z")
    again.checkpoint()
    while again.drop_first_segment():
        pass
    assert again.queues._loaded.keys() == {"fresh"}
    again.queues.trim(6)
    again.queues.trim(6)
    assert again.queues._loaded.keys() == {"fresh", "busy", *(f"idle-{n}" for n in range(10))}
    again.checkpoint()
    assert len(again.metadata.extents_of(0)) >= 10
    again.queues.log_was_cut(again.log.first)
    again.close()
    third = MessageStore.open(tmp_path / "s", SMALL)
    third.queues.log_was_cut(third.log.first)
    third.queues.trim(100)
    assert third.queues._loaded == {}
    queue = third.queue("idle-3", 0)
    assert queue is not None
    assert (queue.min_offset, queue.next_offset, queue.extents) == (1, 1, [])
    third.close()
