"""After a stop of any kind: everything found again, damage reported, the torn end cut off."""

from pathlib import Path

import pytest

from pocketmq.errors import StoreCorrupt
from pocketmq.protocol import RecordView
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import Record, encode_record
from pocketmq.store import Damage, MessageStore, StoreOptions
from tests.store.faults import PowerDisk, abandon
from tests.store.messages import bodies, kept, put

SMALL = StoreOptions(segment_size=4096)


def log_file(path: Path, start: int = 0) -> Path:
    return path / "commitlog" / f"{start:020d}"


def poke(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def test_everything_written_is_found_without_a_checkpoint(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    for number in range(30):
        put(store, "T", b"%d" % number * 300, queue_id=number % 3)
    tail = store.log.tail
    abandon(store)
    again = MessageStore.open(tmp_path, SMALL)
    assert (again.recovered.records, again.recovered.tail) == (30, tail)
    assert (again.recovered.damage, again.recovered.torn) == ([], False)
    for queue_id in range(3):
        assert bodies(again, "T", queue_id) == [b"%d" % n * 300 for n in range(queue_id, 30, 3)]
    again.close()


def test_only_what_came_after_the_checkpoint_is_walked_over(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    for number in range(30):
        put(store, "T", b"%d" % number * 300)
    store.checkpoint()
    position = store.log.tail
    put(store, "T", b"last")
    abandon(store)
    again = MessageStore.open(tmp_path, SMALL)
    assert (again.recovered.start, again.recovered.records) == (position, 1)
    assert len(bodies(again, "T")) == 31
    again.close()


def test_after_a_clean_end_nothing_is_walked_over(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    put(store, "T", b"x" * 3000, b"y" * 3000)
    store.close()
    again = MessageStore.open(tmp_path, SMALL)
    assert again.recovered.records == 0
    assert again.recovered.start == again.recovered.tail == again.log.tail
    again.close()


def test_tags_come_back_as_they_were(tmp_path: Path) -> None:
    texts = [
        b"",
        b"TAGS\x01a\x02",
        b"k\x01v\x02",
        b"TAGS\x01b\x02k\x01v\x02",
        b"",
        b"x\x01\x02TAGS\x01a\x02",
    ]
    store = MessageStore.open(tmp_path)
    for text in [*texts, *texts]:
        put(store, "T", b"x", text=text)
    abandon(store)
    again = MessageStore.open(tmp_path)
    queue = again.make_queue("T", 0)
    assert queue.tags(0, 99) == [tags_code(text) for text in [*texts, *texts]]
    again.close()


def test_a_topic_with_a_rule_of_its_own_keeps_what_the_rule_says(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put(store, "DELAYED", b"12345", now_ms=1000)
    put(store, "T", b"x")
    abandon(store)

    def due(record: RecordView) -> int:
        return record.store_timestamp_ms + record.body_size

    again = MessageStore.open(tmp_path, tag_rules={"DELAYED": due})
    assert again.make_queue("DELAYED", 0).tags(0, 1) == [1005]
    assert again.make_queue("T", 0).tags(0, 1) == [tags_code(b"TAGS\x01a\x02")]
    again.close()


@pytest.mark.parametrize("at", [4, 20, 27, 60, 95])
def test_a_damaged_record_is_reported_and_hides_nothing(tmp_path: Path, at: int) -> None:
    """Magic, queue offset (high and low byte), store time, body: 60 cannot be noticed."""
    store = MessageStore.open(tmp_path)
    positions = put(store, "T", *[b"%d" % n * 10 for n in range(5)]).positions
    abandon(store)
    poke(log_file(tmp_path), positions[2] + at, b"\x7e")
    again = MessageStore.open(tmp_path)
    if at == 60:
        assert len(kept(again, again.queue("T", 0))) == 5
    else:
        assert again.recovered.damage == [Damage(positions[2], positions[3])]
        assert kept(again, again.queue("T", 0)) == {n: b"%d" % n * 10 for n in (0, 1, 3, 4)}
        assert put(again, "T", b"next").queue_offset == 5
    again.close()
    third = MessageStore.open(tmp_path)
    assert third.queue("T", 0).next_offset == (5 if at == 60 else 6)  # type: ignore[union-attr]
    third.close()


def test_a_damaged_queue_id_makes_no_queue(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    positions = put(store, "T", b"0", b"1", b"2").positions
    abandon(store)
    poke(log_file(tmp_path), positions[1] + 12, b"\x00\x00\x00\x09")
    again = MessageStore.open(tmp_path)
    assert again.recovered.damage == [Damage(positions[1], positions[2])]
    assert again.queue("T", 9) is None
    assert kept(again, again.queue("T", 0)) == {0: b"0", 2: b"2"}
    again.close()


def test_a_lost_file_end_is_one_damage(tmp_path: Path) -> None:
    """The blank and the last records of a file are gone, the next file is whole."""
    store = MessageStore.open(tmp_path, SMALL)
    positions = [put(store, "T", b"%d" % n * 900).positions[0] for n in range(8)]
    abandon(store)
    poke(log_file(tmp_path), positions[2], bytes(4096 - positions[2]))
    again = MessageStore.open(tmp_path, SMALL)
    assert again.recovered.damage == [Damage(positions[2], 4096)]
    found = kept(again, again.queue("T", 0))
    assert sorted(found) == [0, 1, *range(positions.index(4096), 8)]
    again.close()


def test_a_torn_last_record_is_cut_off_for_good(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    positions = put(store, "T", b"whole", b"x" * 2000).positions
    tail = store.log.tail
    abandon(store)
    poke(log_file(tmp_path), positions[1] + 500, bytes(tail - positions[1] - 500))
    again = MessageStore.open(tmp_path)
    assert (again.recovered.tail, again.recovered.torn) == (positions[1], True)
    assert again.recovered.damage == []
    segment = again.log.segments.oldest
    assert segment is not None
    assert not bytes(segment.view[positions[1] : tail]).strip(b"\0")
    assert put(again, "T", b"new").queue_offset == 1
    abandon(again)
    third = MessageStore.open(tmp_path)
    assert bodies(third, "T") == [b"whole", b"new"]
    assert not third.recovered.torn
    third.close()


def test_what_was_cut_off_does_not_come_back_with_the_power(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    positions = put(store, "T", b"whole", b"x" * 2000).positions
    abandon(store)
    poke(log_file(tmp_path), positions[1] + 500, bytes(2000))
    disk = PowerDisk(tmp_path)
    abandon(MessageStore.open(tmp_path, disk=disk))
    disk.cut_power(512, lambda: False)
    assert not log_file(tmp_path).read_bytes()[positions[1] :].strip(b"\0")


def test_what_a_killed_process_left_unsynced_is_synced_before_it_counts(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    for number in range(6):
        put(store, "T", b"%d" % number * 1500)
    abandon(store)
    again = MessageStore.open(tmp_path, SMALL)
    assert again.synced == 0
    files, position = again.log.unsynced()
    assert (len(files), position) == (3, again.log.tail)
    again.close()


def test_a_record_of_another_queue_offset_does_not_take_a_place(tmp_path: Path) -> None:
    """As it would be if somebody managed to get a forged record into the log."""
    store = MessageStore.open(tmp_path)
    put(store, "T", b"0", b"1")
    tail = store.log.tail
    abandon(store)
    forged = encode_record(
        Record(topic=b"T", body=b"forged", queue_offset=0, commit_log_offset=tail)
    )
    poke(log_file(tmp_path), tail, forged)
    again = MessageStore.open(tmp_path)
    assert again.recovered.damage == [Damage(tail, tail + len(forged))]
    assert bodies(again, "T") == [b"0", b"1"]
    assert put(again, "T", b"2").positions == [tail + len(forged)]
    again.close()


def test_a_store_may_be_opened_with_another_segment_size(tmp_path: Path) -> None:
    for size in (4096, 10_000, 5000):
        store = MessageStore.open(tmp_path, StoreOptions(segment_size=size))
        for _ in range(6):
            put(store, "T", b"%d" % size * 400)
        abandon(store)
    again = MessageStore.open(tmp_path)
    expected = [b"%d" % size * 400 for size in (4096, 10_000, 5000) for _ in range(6)]
    assert bodies(again, "T") == expected
    again.close()


def test_a_log_whose_files_are_gone_is_refused(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    put(store, "T", b"x" * 3000, b"x" * 3000)
    store.close()
    log_file(tmp_path, 4096).unlink(missing_ok=True)
    for file in (tmp_path / "commitlog").iterdir():
        file.unlink()
    with pytest.raises(StoreCorrupt, match="holds bytes 0 to 0, but a checkpoint was made at"):
        MessageStore.open(tmp_path, SMALL)
    log_file(tmp_path, 1 << 40).write_bytes(bytes(4096))
    with pytest.raises(StoreCorrupt, match=f"holds bytes {1 << 40} to"):
        MessageStore.open(tmp_path, SMALL)
