"""Inner batches in a store: one record, a range of offsets, through crashes, retention and repair."""

from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol import RecordView
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.inner_batch import INNER_BATCH, MOST_MESSAGES
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.record_scan import FLAG_BYTE
from pocketmq.store import MessageStore, QueueRead, ReadStatus, StoreOptions
from pocketmq.store.checking import check_store
from pocketmq.store.repair import repair_store
from tests.store.faults import abandon
from tests.store.messages import NOW_MS, put, record

RED = 112_785


def batch_of(*contents: bytes) -> bytes:
    return encode_batch([BatchEntry(content, b"UNIQ_KEY\1U\2") for content in contents])


def put_batch(
    store: MessageStore, count: int, *, topic: str = "T", now_ms: int = NOW_MS, tag: int = 0
) -> int:
    """Append and write a batch; give its first offset."""
    queue = store.make_queue(topic, 0)
    body = batch_of(*(b"%d" % number for number in range(count)))
    like = record(topic, b"", text=b"UNIQ_KEY\1B\2" + (b"TAGS\1red\2" if tag else b""))
    appended = store.append_inner(queue, body, like, tag, now_ms)
    store.write()
    return appended.queue_offset


def read(store: MessageStore, offset: int, count: int = 32, size: int = 1 << 20) -> QueueRead:
    return store.read(store.queue("T", 0), offset, count, size)


def firsts(found: QueueRead) -> list[int]:
    """Return the offsets that the records of a read name."""
    return [RecordView(bytes(piece), 0).queue_offset for piece in found.pieces]


@pytest.fixture
def store() -> MessageStore:
    return MessageStore.open(None)


def test_a_batch_is_one_record_with_a_range_of_offsets(store: MessageStore) -> None:
    assert put_batch(store, 5) == 0
    assert put(store, "T", b"single").queue_offset == 5
    assert put_batch(store, 3) == 6
    queue = store.queue("T", 0)
    assert queue is not None
    assert (queue.min_offset, queue.next_offset) == (0, 9)
    records, _ = store.walk(0, 10)
    assert [each[3] for each in records] == [0, 5, 6]
    view = RecordView(store.record_at(records[2][0]) or b"", 0)
    assert view.sys_flag == 192
    assert view.stored_body == batch_of(b"0", b"1", b"2")
    assert decode_properties(view.property_bytes) == {
        "UNIQ_KEY": "B",
        "INNER_NUM": "3",
        "INNER_BASE": "6",
    }


@pytest.mark.parametrize(
    ("offset", "count", "found", "following"),
    [
        (0, 1, [0], 5),
        (3, 1, [0], 5),
        (4, 32, [0, 5, 6], 9),
        (5, 1, [5], 6),
        (0, 5, [0], 5),
        (0, 6, [0, 5], 6),
        (0, 8, [0, 5], 6),
        (0, 9, [0, 5, 6], 9),
        (8, 1, [6], 9),
    ],
)
def test_a_read_returns_whole_batches_and_counts_their_messages(
    store: MessageStore, offset: int, count: int, found: list[int], following: int
) -> None:
    """As Java's broker does: from inside of a batch, too, and the first one however large."""
    put_batch(store, 5)
    put(store, "T", b"single")
    put_batch(store, 3)
    got = read(store, offset, count)
    assert (firsts(got), got.next_offset, got.status) == (found, following, ReadStatus.FOUND)
    assert got.size == sum(map(len, got.pieces))
    assert got.count == sum({0: 5, 5: 1, 6: 3}[first] for first in found)
    assert (got.min_offset, got.max_offset) == (0, 9)


def test_a_read_ends_before_a_batch_that_makes_it_too_large(store: MessageStore) -> None:
    put_batch(store, 5)
    put_batch(store, 5)
    one = len(read(store, 0, 1).pieces[0])
    assert firsts(read(store, 0, size=2 * one)) == [0, 5]
    assert firsts(read(store, 0, size=2 * one - 1)) == [0]
    assert firsts(read(store, 7, size=1)) == [5]


def test_tags_and_filters_see_the_batch_not_its_messages(store: MessageStore) -> None:
    put_batch(store, 5)
    put_batch(store, 2, tag=RED)
    put(store, "T", b"x", text=b"TAGS\1red\2")
    queue = store.queue("T", 0)
    got = store.read(queue, 1, 32, 1 << 20, tags={RED})
    assert (firsts(got), got.count, got.next_offset) == ([5, 7], 3, 8)
    none = store.read(queue, 0, 32, 1 << 20, tags={1})
    assert (none.status, none.next_offset) == (ReadStatus.NO_MATCHED_MESSAGE, 8)
    some = store.read(queue, 0, 32, 1 << 20, matches=lambda _, piece: b"red" not in bytes(piece))
    assert firsts(some) == [0]


def test_offsets_by_time_are_those_of_whole_batches(store: MessageStore) -> None:
    put_batch(store, 5, now_ms=NOW_MS)
    put_batch(store, 4, now_ms=NOW_MS + 10)
    put(store, "T", b"x", now_ms=NOW_MS + 20)
    queue = store.queue("T", 0)
    assert queue is not None
    lower = [store.offset_by_time(queue, NOW_MS + step) for step in (-1, 0, 1, 10, 11, 20, 21)]
    assert lower == [0, 0, 5, 5, 9, 9, 10]
    steps = (-1, 0, 9, 10, 19, 20, 99)
    upper = [store.offset_by_time(queue, NOW_MS + step, upper=True) for step in steps]
    assert upper == [0, 0, 0, 5, 5, 9, 9]
    times = [store.store_time(queue, offset) - NOW_MS for offset in (0, 4, 5, 8, 9)]
    assert times == [0, 0, 10, 10, 20]
    assert store.store_time(queue, 10) == -1


def test_each_message_of_a_batch_has_a_place_of_its_own(store: MessageStore) -> None:
    put_batch(store, 50)
    put_batch(store, 3)
    queue = store.queue("T", 0)
    assert queue is not None
    places = [store.place_of(queue, offset) for offset in range(queue.next_offset)]
    assert len(set(places)) == 53
    assert places[50] == queue.position(52)
    assert store.place_of(queue, 53) is None


@pytest.mark.parametrize(
    "body",
    [
        b"garbage",
        b"x" * 21,
        batch_of(b"a")[:-1],
        batch_of(b"a") + b"\0" * 21,
        batch_of(b"a") + b"\0" * 22,
        b"\xff" * 40,
        batch_of(b"a")[:16] + b"\xff\xff\xff\xff" + batch_of(b"a")[20:],
        batch_of(b"a")[:21] + b"\x80\x0c" + batch_of(b"a")[23:],
    ],
)
def test_a_body_whose_lengths_make_no_sense_is_refused(store: MessageStore, body: bytes) -> None:
    queue = store.make_queue("T", 0)
    with pytest.raises(MessageMalformed):
        store.append_inner(queue, body, record("T", b""), 0, NOW_MS)
    assert queue.next_offset == 0
    assert store.log.tail == 0


def test_a_batch_has_as_many_messages_as_java_can_count(store: MessageStore) -> None:
    queue, like = store.make_queue("T", 0), record("T", b"")
    most = encode_batch([BatchEntry(b"")] * MOST_MESSAGES)
    for refused in (b"", most + encode_batch([BatchEntry(b"")])):
        with pytest.raises(InvalidInput):
            store.append_inner(queue, refused, like, 0, NOW_MS)
    assert store.append_inner(queue, most, like, 0, NOW_MS).queue_offset == 0
    got = read(store, MOST_MESSAGES - 1, 1)
    assert (firsts(got), got.next_offset, got.count) == ([0], MOST_MESSAGES, MOST_MESSAGES)


def test_a_crash_loses_nothing_of_a_batch_and_a_checkpoint_keeps_it(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put_batch(store, 40)
    put(store, "T", b"single")
    store.checkpoint()
    store.sync_now()
    put_batch(store, 700)
    put_batch(store, 1)
    before = [read(store, offset, 1) for offset in (0, 39, 40, 41, 740, 741)]
    abandon(store)
    again = MessageStore.open(tmp_path)
    assert again.recovered.damage == []
    after = [read(again, offset, 1) for offset in (0, 39, 40, 41, 740, 741)]
    assert [(firsts(one), one.next_offset) for one in after] == [
        (firsts(one), one.next_offset) for one in before
    ]
    assert put_batch(again, 2) == 742
    again.close()
    assert check_store(tmp_path).findings == []


def test_a_torn_batch_is_gone_as_a_whole(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put_batch(store, 4)
    tail = store.log.tail
    put_batch(store, 6)
    view = store.log.view(tail, 200)
    assert view is not None
    abandon(store)
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(tail + 150)
        file.write(bytes(1000))
    again = MessageStore.open(tmp_path)
    queue = again.queue("T", 0)
    assert queue is not None
    assert queue.next_offset == 4
    assert put_batch(again, 2) == 4
    again.close()


def test_messages_lost_in_a_damaged_batch_keep_their_offsets(tmp_path: Path) -> None:
    """The batch before is plainly smaller than 91 bytes a message."""
    store = MessageStore.open(tmp_path)
    put_batch(store, 4)
    start = store.log.tail
    put_batch(store, 50)
    put_batch(store, 3)
    abandon(store)
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(start + 100)
        file.write(b"\xff" * 8)
    again = MessageStore.open(tmp_path)
    assert len(again.recovered.damage) == 1
    queue = again.queue("T", 0)
    assert queue is not None
    assert queue.next_offset == 57
    got = read(again, 0, 100)
    assert (firsts(got), got.next_offset) == ([0, 54], 57)
    lost = read(again, 30, 100)
    assert (firsts(lost), lost.next_offset) == ([54], 57)
    again.close()


def test_damage_found_by_a_read_skips_the_batch_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MessageStore.open(tmp_path)
    put_batch(store, 4)
    start = store.log.tail
    put_batch(store, 50)
    put_batch(store, 3)
    store.close()
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(start + 100)
        file.write(b"\xff" * 8)
    again = MessageStore.open(tmp_path)
    queue = again.queue("T", 0)
    assert queue is not None
    got = read(again, 2, 100)
    assert (firsts(got), got.next_offset) == ([0, 54], 57)
    inside = read(again, 20, 1)
    assert (firsts(inside), inside.next_offset) == ([54], 57)
    assert again.store_time(queue, 20) == NOW_MS
    assert len(caplog.messages) == 2
    again.close()
    assert any("offset 4 points" in str(each) for each in check_store(tmp_path).findings)


def test_retention_deletes_batches_as_a_whole(tmp_path: Path) -> None:
    options = StoreOptions(segment_size=4096)
    store = MessageStore.open(tmp_path, options)
    while len(store.log.segments) < 3:
        put_batch(store, 20)
    store.checkpoint()
    store.sync_now()
    assert store.drop_first_segment()
    queue = store.queue("T", 0)
    assert queue is not None
    low = queue.min_offset
    assert low > 0
    assert low % 20 == 0
    assert firsts(read(store, low, 1)) == [low]
    assert read(store, low - 1).status is ReadStatus.OFFSET_TOO_SMALL
    store.close()
    again = MessageStore.open(tmp_path, options)
    assert firsts(read(again, low + 5, 1)) == [low]
    again.close()


def test_a_repair_finds_batches_again(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put_batch(store, 40)
    put(store, "T", b"single")
    put_batch(store, 700)
    store.close()
    (tmp_path / "meta.sqlite").unlink()
    repair_store(tmp_path)
    again = MessageStore.open(tmp_path)
    assert again.recovered.damage == []
    for offset, first, following in ((0, 0, 40), (40, 40, 41), (300, 41, 741)):
        got = read(again, offset, 1)
        assert (firsts(got), got.next_offset) == ([first], following)
    again.close()
    assert check_store(tmp_path).findings == []


def test_a_topic_made_anew_with_a_batch_is_seen_by_a_repair(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put_batch(store, 3)
    put_batch(store, 3)
    store.delete_topic("T")
    put_batch(store, 7)
    put_batch(store, 2)
    store.close()
    (tmp_path / "meta.sqlite").unlink()
    repair_store(tmp_path)
    again = MessageStore.open(tmp_path)
    queue = again.queue("T", 0)
    assert queue is not None
    assert queue.next_offset == 9
    assert firsts(read(again, 0, 100)) == [0, 7]
    again.close()


def test_a_property_alone_makes_no_batch(tmp_path: Path) -> None:
    """A producer may write INNER_NUM into a message of a plain batch."""
    store = MessageStore.open(tmp_path)
    text = b"INNER_NUM\x01500\x02INNER_BASE\x010\x02"
    put(store, "T", b"x", b"y", text=text)
    abandon(store)
    again = MessageStore.open(tmp_path)
    queue = again.queue("T", 0)
    assert queue is not None
    assert queue.next_offset == 2
    assert firsts(read(again, 0)) == [0, 1]
    again.close()


def test_a_flag_alone_makes_a_batch_of_one(tmp_path: Path) -> None:
    """No checksum covers the flag: a flipped bit must not cost the message, or those behind it."""
    store = MessageStore.open(tmp_path)
    for content in (b"a", b"b", b"c"):
        put(store, "T", content)
    records, _ = store.walk(0, 3)
    abandon(store)
    [log] = (tmp_path / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(records[1][0] + FLAG_BYTE)
        file.write(bytes([INNER_BATCH]))
    again = MessageStore.open(tmp_path)
    queue = again.queue("T", 0)
    assert queue is not None
    assert queue.next_offset == 3
    assert firsts(read(again, 0)) == [0, 1, 2]
    again.close()
    assert check_store(tmp_path).findings == []
