"""A message and the broker's own record about it: stored together, or not at all."""

from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput, StoreFailed, StoreFull
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record, RecordForm, pack_record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.appending import Mark
from tests.broker.delay.test_delay_machine import Fault, FaultyDisk
from tests.store.messages import NOW_MS, kept, record

HOST = bytes(range(8))


def mark(store: MessageStore, body: bytes = b"2", tag: int = 12) -> Mark:
    form = RecordForm(b"B", b"TAGS\1d\2", born_host=HOST, store_host=store.store_host)
    return store.make_queue("B", 0), form, body, tag


@pytest.mark.parametrize("born_size", [8, 20])
@pytest.mark.parametrize("store_size", [8, 20])
@pytest.mark.parametrize("topic", [b"B", b"B" * 200])
def test_a_form_packs_what_a_record_like_it_is(
    born_size: int, store_size: int, topic: bytes
) -> None:
    born, stored = bytes(range(born_size)), bytes(range(store_size))
    form = RecordForm(topic, b"K\1v\2", born_host=born, store_host=stored)
    like = Record(
        topic=topic, body=b"body", property_bytes=b"K\1v\2", born_timestamp_ms=9, born_host=born
    )
    assert form.pack(b"body", 7, 8, 9) == pack_record(like, 7, 8, 9, stored)
    assert form.size == len(form.pack(b"", 0, 0, 0))


def test_the_mark_lies_behind_its_message() -> None:
    store = MessageStore.open(None, store_host=HOST)
    one = store.make_queue("A", 3)
    for number in (b"1", b"3"):
        entry = one, record("A", number, queue_id=3), 11
        store.append_marked(entry, mark(store, number), NOW_MS)
    store.append_marked(None, mark(store, b"alone", 13), NOW_MS)
    two = store.make_queue("B", 0)
    assert kept(store, one) == {0: b"1", 1: b"3"}
    assert kept(store, two) == {0: b"1", 1: b"3", 2: b"alone"}
    assert (one.tags(0, 9), two.tags(0, 9)) == ([11, 11], [12, 12, 13])
    (first, third), (second, *_) = one.entries(0, 9)[0], two.entries(0, 9)[0]
    assert first < second < third
    found = store.record_at(second)
    assert found is not None
    view = RecordView(found, 0)
    assert (view.store_timestamp_ms, view.born_timestamp_ms) == (NOW_MS, NOW_MS)
    assert (view.born_host_bytes, view.property_bytes) == (HOST, b"TAGS\1d\2")
    store.close()


def test_both_never_lie_in_two_files(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, StoreOptions(segment_size=4096))
    one = store.make_queue("A", 0)
    for number in range(30):
        store.append_marked((one, record("A", bytes(400)), 0), mark(store), NOW_MS)
        store.write()
        positions = one.position(number), store.make_queue("B", 0).position(number)
        assert positions[0] is not None
        assert positions[1] is not None
        assert store.log.segments.at(positions[0]) is store.log.segments.at(positions[1])
    assert len(store.log.segments) > 3
    store.close()
    store = MessageStore.open(tmp_path, StoreOptions(segment_size=4096))
    assert [len(kept(store, store.queue(topic, 0))) for topic in "AB"] == [30, 30]
    store.close()


def test_a_store_that_refuses_takes_neither(tmp_path: Path) -> None:
    fault = Fault()
    store = MessageStore.open(
        tmp_path, StoreOptions(segment_size=8192), disk=FaultyDisk(tmp_path, fault)
    )
    one, two = store.make_queue("A", 0), store.make_queue("B", 0)
    entry = one, record("A", b"1"), 0
    store.append_marked(entry, mark(store), NOW_MS)
    store.write()
    fault.after = 0
    store.append_marked(entry, mark(store), NOW_MS)
    with pytest.raises(StoreFull):
        store.write()
    assert (one.next_offset, two.next_offset) == (1, 1)
    bad = Record(topic=b"A", body=b"x", body_crc=1)
    with pytest.raises(InvalidInput):
        store.append_marked((one, bad, 0), mark(store), NOW_MS)
    assert (one.next_offset, two.next_offset) == (1, 1)
    store.append_marked(entry, mark(store), NOW_MS)
    store.append_body(*mark(store, b"own", 5), NOW_MS)
    assert (kept(store, one), kept(store, two)) == (
        {0: b"1", 1: b"1"},
        {0: b"2", 1: b"2", 2: b"own"},
    )
    store.log.failed = StoreFailed("gone")
    with pytest.raises(StoreFailed):
        store.append_marked(entry, mark(store), NOW_MS)
    with pytest.raises(StoreFailed):
        store.append_body(*mark(store), NOW_MS)
    assert (one.next_offset, two.next_offset) == (2, 3)
    store.log.failed = None
    store.close()


def test_what_must_be_safe_at_once_can_be_synced_while_the_caller_waits(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    store.append(store.make_queue("A", 0), [record("A", b"1")], [0], NOW_MS)
    store.sync_now()
    assert store.synced == store.log.tail > 0
    store.close()


def test_a_record_is_found_by_its_offset_where_its_index_says_so() -> None:
    store = MessageStore.open(None)
    queue = store.make_queue("A", 0)
    places = [
        store.append(queue, [record("A", body)], [0], NOW_MS).positions[0] for body in (b"1", b"2")
    ]
    found = store.record_of(queue, 1, places[1])  # although it is not written yet
    assert found is not None
    assert RecordView(found, 0).stored_body == b"2"
    wrong = [(0, places[1]), (1, places[0]), (1, places[1] + 1), (2, places[1]), (-1, places[0])]
    assert [store.record_of(queue, *each) for each in wrong] == [None] * len(wrong)
    store.close()
