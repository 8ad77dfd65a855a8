"""Messages to several queues that are stored together, or not at all."""

from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput, StoreFull
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from tests.broker.delay.test_delay_machine import Fault, FaultyDisk
from tests.store.messages import NOW_MS, kept, record


def test_messages_go_to_their_queues_one_behind_the_other() -> None:
    store = MessageStore.open(None)
    one, two = store.make_queue("A", 0), store.make_queue("B", 3)
    entries = [
        (one, record("A", b"1"), 11),
        (two, record("B", b"2", queue_id=3), 12),
        (one, record("A", b"3"), 13),
    ]
    first, second, third = store.append_together(entries, NOW_MS)
    assert (first.queue_offset, second.queue_offset, third.queue_offset) == (0, 0, 1)
    assert list(first.positions) < list(second.positions) < list(third.positions)
    assert (kept(store, one), kept(store, two)) == ({0: b"1", 1: b"3"}, {0: b"2"})
    assert (one.tags(0, 9), two.tags(0, 9)) == ([11, 13], [12])
    found = store.record_at(second.positions[0])
    assert found is not None
    assert RecordView(found, 0).store_timestamp_ms == NOW_MS
    store.close()


def test_they_never_lie_in_two_files(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, StoreOptions(segment_size=4096))
    one, two = store.make_queue("A", 0), store.make_queue("B", 0)
    for _ in range(30):
        placed = store.append_together(
            [(one, record("A", bytes(400)), 0), (two, record("B", b"mark"), 0)], NOW_MS
        )
        positions = [each.positions[0] for each in placed]
        store.write()
        assert store.log.segments.at(positions[0]) is store.log.segments.at(positions[1])
    assert len(store.log.segments) > 3
    store.close()
    store = MessageStore.open(tmp_path, StoreOptions(segment_size=4096))
    assert (len(kept(store, store.queue("A", 0))), len(kept(store, store.queue("B", 0)))) == (
        30,
        30,
    )
    store.close()


def test_a_store_that_refuses_takes_none_of_them(tmp_path: Path) -> None:
    fault = Fault()
    store = MessageStore.open(
        tmp_path, StoreOptions(segment_size=8192), disk=FaultyDisk(tmp_path, fault)
    )
    one, two = store.make_queue("A", 0), store.make_queue("B", 0)
    entries = [(one, record("A", b"1"), 0), (two, record("B", b"2"), 0)]
    store.append_together(entries, NOW_MS)
    store.write()
    fault.after = 0
    store.append_together(entries, NOW_MS)
    with pytest.raises(StoreFull):
        store.write()
    assert (one.next_offset, two.next_offset) == (1, 1)
    bad = Record(topic=b"B", body=b"x", body_crc=1)
    with pytest.raises(InvalidInput):
        store.append_together([entries[0], (two, bad, 0)], NOW_MS)
    assert (one.next_offset, two.next_offset) == (1, 1)
    store.append_together(entries, NOW_MS)
    assert (kept(store, one), kept(store, two)) == ({0: b"1", 1: b"1"}, {0: b"2", 1: b"2"})
    store.close()


def test_what_must_be_safe_at_once_can_be_synced_while_the_caller_waits(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    store.append(store.make_queue("A", 0), [record("A", b"1")], [0], NOW_MS)
    store.sync_now()
    assert store.synced == store.log.tail > 0
    store.close()
