"""Verifying a store offline: a sound one is sound, and each kind of damage is found and named."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from pocketmq.broker.upkeep.stored_formats import FORMATS
from pocketmq.errors import InvalidInput, StoreCorrupt, StoreInUse
from pocketmq.model import TopicConfig
from pocketmq.protocol import encode_body
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions
from pocketmq.store.check_values import CheckReport, Severity
from pocketmq.store.checking import LogReader, check_store, find_stores
from pocketmq.store.disk import Disk
from pocketmq.store.repair import repair_store
from tests.store.faults import abandon
from tests.store.messages import kept

OPTIONS = StoreOptions(segment_size=4096)
TOPIC = encode_body(TopicConfig(topic_name="T"))
NOW = 1_700_000_000_000


def put(store: MessageStore, topic: str, queue_id: int, count: int, size: int = 100) -> None:
    queue = store.make_queue(topic, queue_id)
    for _ in range(count):
        record = Record(topic=topic.encode(), body=b"x" * size, queue_id=queue_id)
        store.append(queue, [record], [0], NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with messages in three queues of two topics, and some files of the log."""
    store = MessageStore.open(tmp_path, OPTIONS)
    store.metadata.save_documents("topic", {"T": TOPIC})
    store.metadata.save_consumer_offsets([("T", "G", 0, 3)])
    put(store, "T", 0, 40)
    put(store, "T", 1, 20)
    put(store, "U", 0, 5)
    store.find_by_key("T", "nothing", 0, NOW, 1)
    store.close()
    return tmp_path


def errors(report: CheckReport) -> list[str]:
    return [
        f"{each.part}: {each.text}" for each in report.findings if each.severity is Severity.ERROR
    ]


def counts(path: Path) -> dict[tuple[str, int], tuple[int, int]]:
    """Open a store as a broker does, and tell what its queues hold."""
    store = MessageStore.open(path, OPTIONS)
    held = {
        (topic, queue.queue_id): (queue.min_offset, queue.next_offset)
        for topic in store.queues.topics()
        for queue in store.queues.of(topic)
    }
    for topic, queue_id in held:
        read = store.read(store.queue(topic, queue_id), held[topic, queue_id][0], 1000, 1 << 30)
        assert read.count == held[topic, queue_id][1] - held[topic, queue_id][0]
    store.close()
    return held


HELD = {("T", 0): (0, 40), ("T", 1): (0, 20), ("U", 0): (0, 5)}


def test_a_sound_store_is_explained(path: Path) -> None:
    report = check_store(path)
    assert report.findings == []
    assert report.sound
    assert "documents: topic=1; offsets of groups: 1" in report.figures["metadata"]
    assert "65 records" in report.figures["log"]
    assert report.figures["queues"] == "3 queues of 2 topics, 65 messages"
    assert check_store(path) == report
    assert counts(path) == HELD


def test_an_empty_store_is_sound(tmp_path: Path) -> None:
    MessageStore.open(tmp_path, OPTIONS).close()
    assert check_store(tmp_path).findings == []


def test_checking_changes_nothing(path: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {
            str(file): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file() and not file.name.endswith(("-wal", "-shm"))
        }

    before = everything()
    check_store(path)
    assert everything() == before


def test_a_store_in_use_is_left_alone(path: Path) -> None:
    store = MessageStore.open(path, OPTIONS)
    with pytest.raises(StoreInUse):
        check_store(path)
    store.close()


def test_records_after_the_last_checkpoint_are_no_damage(path: Path) -> None:
    live = path.parent / f"{path.name}-live"
    store = MessageStore.open(path, OPTIONS)
    put(store, "T", 0, 3)
    store.write()
    shutil.copytree(path, live, ignore=shutil.ignore_patterns("lock"))  # as a crash leaves it
    store.close()
    report = check_store(live)
    assert report.sound
    assert any("3 records came after the last checkpoint" in each.text for each in report.findings)


def test_a_write_that_was_not_finished_is_no_damage(path: Path) -> None:
    last = log_files(path)[-1]
    data = bytearray(last.read_bytes())
    end = len(data.rstrip(b"\0"))
    data[end + 8 : end + 12] = b"torn"
    last.write_bytes(data)
    report = check_store(path)
    assert report.sound, report.findings
    (note,) = report.findings
    assert note.text.endswith("lies a write that was not finished; the next start cuts it off")


def test_a_deleted_topic_is_explained(path: Path) -> None:
    store = MessageStore.open(path, OPTIONS)
    store.delete_topic("T")
    put(store, "T", 0, 2)
    store.close()
    report = check_store(path)
    assert report.sound, report.findings
    assert any(
        "60 records are of topics that were deleted" in each.text for each in report.findings
    )


def flip(file: Path, at: int, mask: int = 0xFF) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= mask
    file.write_bytes(data)


def log_files(path: Path) -> list[Path]:
    return sorted((path / "commitlog").iterdir())


def test_a_damaged_record_is_found_and_so_is_the_entry_that_points_to_it(path: Path) -> None:
    flip(log_files(path)[0], 100)
    log, queue = errors(check_store(path))
    assert log.startswith("log: bytes 0 to ")
    assert log.endswith("hold no sound record although sound ones follow")
    assert queue == (
        "queues: queue 0 of T: offset 0 points to byte 0, where no sound record of it is"
    )


def test_a_missing_file_of_the_log_is_named(path: Path) -> None:
    gone = log_files(path)[1]
    gone.unlink()
    report = check_store(path)
    start = int(gone.name)
    assert errors(report)[0] == (
        f"log: bytes {start} to {start + 4096} are missing: a file is gone"
    )
    assert any("more of this kind: entries without a record" in each for each in errors(report))
    with pytest.raises(StoreCorrupt, match="put the file back"):
        repair_store(path)


def test_a_damaged_run_of_the_key_index_is_made_again_by_itself(path: Path) -> None:
    store = MessageStore.open(path, OPTIONS)
    store.close()
    (path / "keys").mkdir(exist_ok=True)
    (path / "keys" / f"{0:020d}-{4096:020d}").write_bytes(b"nonsense" * 100)
    report = check_store(path)
    assert report.sound
    assert "is damaged or unfinished; it is made again from the log" in report.findings[0].text


def test_a_lost_index_is_named_and_rebuilt(path: Path) -> None:
    shutil.rmtree(path / "index")
    assert "queues: index/00000000 is missing or has the wrong size" in errors(check_store(path))
    done = repair_store(path)
    assert done.kept_settings
    assert check_store(path).sound
    assert counts(path) == HELD
    store = MessageStore.open(path, OPTIONS)
    assert store.metadata.consumer_offsets() == [("T", "G", 0, 3)]
    store.close()
    assert check_store(path).findings == []


def test_an_index_with_wrong_numbers_is_named_and_rebuilt(path: Path) -> None:
    (file,) = sorted((path / "index").iterdir())
    file.write_bytes(bytes(file.stat().st_size))
    assert errors(check_store(path))
    repair_store(path)
    assert counts(path) == HELD


def test_lost_metadata_is_named_and_rebuilt_from_the_log(path: Path) -> None:
    (path / "meta.sqlite").unlink()
    assert errors(check_store(path)) == [
        "metadata: meta.sqlite is missing: topics, groups and offsets are in it"
    ]
    done = repair_store(path)
    assert not done.kept_settings
    assert done.topics == ["T", "U"]
    assert check_store(path).sound
    store = MessageStore.open(path, OPTIONS)
    documents = dict(store.metadata.documents("topic"))
    store.close()
    assert b'"readQueueNums":2' in documents["T"]
    assert b'"readQueueNums":1' in documents["U"]
    assert counts(path) == HELD


def test_metadata_that_is_nonsense_is_moved_aside(path: Path) -> None:
    (path / "meta.sqlite").write_bytes(b"nonsense" * 1000)
    assert not check_store(path).sound
    done = repair_store(path)
    assert (Path(done.kept_in) / "meta.sqlite").read_bytes() == b"nonsense" * 1000
    assert counts(path) == HELD
    assert repair_store(path).kept_in != done.kept_in


def test_queues_whose_beginning_is_gone_go_on_where_they_were(path: Path) -> None:
    store = MessageStore.open(path, OPTIONS)
    assert store.drop_first_segment()
    low = store.make_queue("T", 0).min_offset
    store.close()
    (path / "meta.sqlite").unlink()
    repair_store(path)
    assert counts(path) == HELD | {("T", 0): (low, 40)}
    assert low > 0


def test_topics_that_were_deleted_stay_so(path: Path) -> None:
    """If the metadata knows; otherwise the records of the latest topic of a name count."""
    store = MessageStore.open(path, OPTIONS)
    store.delete_topic("U")
    store.delete_topic("T")
    put(store, "T", 1, 1)
    put(store, "T", 0, 2)
    store.close()
    shutil.rmtree(path / "index")
    repair_store(path)
    assert counts(path) == {("T", 0): (0, 2), ("T", 1): (0, 1)}
    (path / "meta.sqlite").unlink()
    repair_store(path)
    assert counts(path) == {("T", 0): (0, 2), ("T", 1): (0, 1), ("U", 0): (0, 5)}


def test_documents_that_cannot_be_read_are_named(path: Path) -> None:
    with sqlite3.connect(path / "meta.sqlite") as connection:
        connection.execute("insert into document values ('group', 'G', 'nonsense')")
        connection.execute("insert into consumer_offset values ('T', 'G', 1, -5)")
    connection.close()
    first, second = errors(check_store(path, FORMATS))
    assert first.startswith("metadata: the document 'G' of kind group cannot be read: ")
    assert second == "metadata: group G has offset -5 in queue 1 of T"
    repair_store(path, FORMATS)
    assert check_store(path, FORMATS).sound
    store = MessageStore.open(path, OPTIONS)
    assert store.metadata.documents("group") == []
    assert store.metadata.documents("topic") == [("T", TOPIC)]
    assert store.metadata.consumer_offsets() == [("T", "G", 0, 3)]
    store.close()
    assert check_store(path, FORMATS).sound


def test_documents_of_an_unknown_kind_are_named(path: Path) -> None:
    store = MessageStore.open(path, OPTIONS)
    store.metadata.save_documents("later", {"x": b"y"})
    store.close()
    report = check_store(path, FORMATS)
    (finding,) = report.findings
    assert report.sound
    assert finding.text == "the document 'x' is of kind later, which this program does not know"


# Flipped bits


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("at", [0, 3, 20, 27, 84, 87, 88])
def test_a_flipped_bit_of_a_record_is_found_and_repaired(path: Path, at: int, last: bool) -> None:
    """Bytes of lengths, offsets and body; after the repair all other messages are served.

    The offset of the damaged message stays lost: groups may have committed what comes after it.
    """
    offset = 40 if last else 16
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    assert queue is not None
    if last:
        put(store, "T", 0, 1)
    (position,), _ = queue.entries(offset, 1)
    store.close()
    file = next(each for each in reversed(log_files(path)) if int(each.name) <= position)
    flip(file, position - int(file.name) + at, 0x10)
    assert not check_store(path, FORMATS).sound
    repair_store(path, FORMATS)
    assert check_store(path, FORMATS).sound
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    assert queue is not None
    end = 41 if last else 40
    assert (queue.min_offset, queue.next_offset) == (0, end)
    assert set(kept(store, queue)) == set(range(end)) - {offset}
    put(store, "T", 0, 1)
    assert store.read(queue, end, 1, 1000).count == 1
    store.close()
    assert check_store(path, FORMATS).sound


@pytest.mark.parametrize("column", [0, 8, 16])
def test_a_flipped_bit_of_an_index_entry_is_found_and_repaired(path: Path, column: int) -> None:
    (file,) = sorted((path / "index").iterdir())
    width = 4 if column == 16 else 8
    flip(file, 32 * column + 5 * width, 0x10)
    assert not check_store(path, FORMATS).sound
    repair_store(path, FORMATS)
    assert check_store(path, FORMATS).sound
    assert counts(path) == HELD
    assert check_store(path, FORMATS).findings == []


def test_the_stores_of_a_cluster_are_found_below_its_directory(path: Path) -> None:
    assert find_stores(path) == [path]
    cluster = path.parent / f"{path.name}-cluster"
    shutil.copytree(path, cluster / "broker-0")
    assert find_stores(cluster) == [cluster / "broker-0"]
    (cluster / "empty").mkdir()
    for nothing in (cluster / "empty", cluster / "nowhere"):
        with pytest.raises(InvalidInput):
            find_stores(nothing)


def test_a_topic_deleted_after_a_repair_begins_at_0_again(path: Path) -> None:
    """Even if the process is killed before its first checkpoint."""
    shutil.rmtree(path / "index")
    repair_store(path)
    store = MessageStore.open(path, OPTIONS)
    store.delete_topic("T")
    put(store, "T", 0, 2)
    store.write()
    abandon(store)
    assert counts(path) == {("T", 0): (0, 2), ("U", 0): (0, 5)}


def test_a_queue_without_messages_keeps_its_next_offset_over_a_repair(tmp_path: Path) -> None:
    """Retention has deleted them all; groups have committed that offset."""
    store = MessageStore.open(tmp_path, OPTIONS)
    put(store, "old", 0, 7)
    put(store, "T", 0, 60)
    store.checkpoint()
    assert store.drop_first_segment()
    store.close()
    before = counts(tmp_path)
    assert before["old", 0] == (7, 7)
    shutil.rmtree(tmp_path / "index")
    repair_store(tmp_path)
    assert counts(tmp_path) == before
    assert check_store(tmp_path, FORMATS).sound


def test_a_flipped_bit_that_makes_an_offset_0_does_not_hide_what_came_before(path: Path) -> None:
    """It must not be taken for the first message after a deletion of the topic."""
    store = MessageStore.open(path, OPTIONS)
    queue = store.queue("T", 0)
    assert queue is not None
    (position,), _ = queue.entries(16, 1)
    store.close()
    file = next(each for each in reversed(log_files(path)) if int(each.name) <= position)
    flip(file, position - int(file.name) + 27, 16)
    repair_store(path, FORMATS)
    store = MessageStore.open(path, OPTIONS)
    assert set(kept(store, store.queue("T", 0))) == set(range(40)) - {16}
    store.close()


def test_a_repair_keeps_what_is_left_of_a_file_that_was_cut_short(path: Path) -> None:
    """Also of one that is shorter than any file of the log is made."""
    last = max((path / "commitlog").iterdir())
    with last.open("r+b") as opened:
        opened.truncate(250)
    with pytest.raises(StoreCorrupt, match="files are missing"):
        MessageStore.open(path, OPTIONS)
    assert not check_store(path).sound
    repair_store(path)
    store = MessageStore.open(path, OPTIONS)
    found = [len(kept(store, store.queue(topic, number))) for topic, number in HELD]
    store.close()
    position = int(last.name)
    assert sum(found) == _records_before(path, position) + 1
    assert check_store(path).sound


def _records_before(path: Path, position: int) -> int:
    reader = LogReader(Disk(path))
    count = sum(record[0] < position for record in reader.read())
    reader.close()
    return count
