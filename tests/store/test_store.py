"""The store as a broker uses it: one owner, full disks, checkpoints, files that come and go."""

import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pocketmq import errors
from pocketmq.protocol import RecordView
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import encode_record
from pocketmq.store import Flusher, MessageStore, StoreOptions
from tests.store.faults import FullDisk, abandon
from tests.store.messages import NOW_MS, bodies, put, record

SMALL = StoreOptions(segment_size=4096)
HOST = bytes([127, 0, 0, 1, 0, 0, 42, 159])


# Whose directory it is


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    with pytest.raises(errors.StoreInUse, match="in use by another broker"):
        MessageStore.open(tmp_path / "s")
    store.close()
    MessageStore.open(tmp_path / "s").close()


def test_a_directory_has_one_owner_among_processes(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    code = (
        "import sys; from pathlib import Path; from pocketmq.store import MessageStore\n"
        "from pocketmq.errors import StoreInUse\n"
        "try: MessageStore.open(Path(sys.argv[1]))\n"
        "except StoreInUse: print('refused')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "refused\n"
    store.close()


@pytest.mark.parametrize("name", ["commitlog", "consumequeue"])
def test_a_java_brokers_store_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(errors.StoreCorrupt, match="looks like a Java broker's store"):
        MessageStore.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    MessageStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "meta.sqlite") as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(errors.StoreCorrupt, match="newer PocketMQ"):
        MessageStore.open(tmp_path)
    with pytest.raises(errors.StoreCorrupt, match="newer PocketMQ"):
        MessageStore.open(tmp_path)  # and nobody is left holding the lock


def test_a_path_that_is_no_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.StoreFailed):
        MessageStore.open(tmp_path / "file" / "s")


def test_a_store_in_memory_touches_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = MessageStore.open(None, SMALL)
    for number in range(20):
        put(store, "T", b"%d" % number * 500)
    heard: list[Exception | None] = []
    store.request_sync(heard.append)
    store.checkpoint(heard.append)
    assert heard == [None, None]
    assert bodies(store, "T") == [b"%d" % n * 500 for n in range(20)]
    assert store.drop_first_segment()
    assert len(bodies(store, "T")) < 20
    store.delete_topic("T")
    store.maintain(1.0)
    store.close()
    assert list(tmp_path.iterdir()) == []


# Appending


def test_places_and_times_are_written_into_records(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, store_host=HOST)
    put(store, "T", b"first")
    appended = put(store, "T", b"a", b"b", now_ms=99)
    assert appended.queue_offset == 1
    for number, position in enumerate(appended.positions):
        found = store.record_at(position)
        assert found is not None
        view = RecordView(found, 0)
        assert (view.queue_offset, view.commit_log_offset) == (1 + number, position)
        assert (view.store_timestamp_ms, view.store_host_bytes) == (99, HOST)
    store.close()


def test_a_batch_is_stored_like_single_messages() -> None:
    one, many = MessageStore.open(None), MessageStore.open(None)
    texts = [b"TAGS\x01a\x02", b"", b"k\x01v\x02TAGS\x01b\x02"]
    for number, text in enumerate(texts):
        put(one, "T", b"%d" % number, queue_id=2, text=text)
    queue = many.make_queue("T", 2)
    body = encode_batch([BatchEntry(b"%d" % n, text) for n, text in enumerate(texts)])
    appended = many.append_batch(queue, body, record("T", b"", queue_id=2), NOW_MS)
    many.write()
    assert many.walk(0, 9) == one.walk(0, 9)
    assert [many.record_at(p) for p in appended.positions] == [
        one.record_at(p) for p in appended.positions
    ]
    assert queue.tags(0, 9) == [tags_code(text) for text in texts]
    one.close()
    many.close()


def test_nothing_appended_is_nothing_stored() -> None:
    store = MessageStore.open(None)
    queue = store.make_queue("T", 0)
    assert list(store.append(queue, [], [], NOW_MS).positions) == []
    assert list(store.append_batch(queue, b"", record("T", b""), NOW_MS).positions) == []
    store.write()
    assert (queue.next_offset, store.log.tail) == (0, 0)
    store.close()


@pytest.mark.parametrize("text", [b"k\x01v\0", b"k\x01" + bytes(600) + b"\x02"])
def test_what_looks_torn_is_refused(text: bytes) -> None:
    store = MessageStore.open(None)
    queue = store.make_queue("T", 0)
    with pytest.raises(errors.InvalidInput, match="zero byte"):
        store.append(queue, [record("T", b"x", text=text)], [0], NOW_MS)
    body = encode_batch([BatchEntry(b"x", text)])
    with pytest.raises(errors.InvalidInput, match="zero byte"):
        store.append_batch(queue, body, record("T", b""), NOW_MS)
    assert queue.next_offset == 0
    put(store, "T", b"x", text=b"k\x01\0\x02")  # in the middle of a short text it is no trouble
    store.close()


def test_a_wrong_checksum_is_refused() -> None:
    import msgspec

    store = MessageStore.open(None)
    queue = store.make_queue("T", 0)
    good = msgspec.structs.replace(record("T", b"123456789"), body_crc=0x4BF43926)
    store.append(queue, [good], [0], NOW_MS)
    with pytest.raises(errors.InvalidInput, match="checksum"):
        store.append(queue, [msgspec.structs.replace(good, body=b"other")], [0], NOW_MS)
    assert queue.next_offset == 1
    store.close()


def test_a_malformed_batch_leaves_nothing_behind() -> None:
    store = MessageStore.open(None)
    queue = store.make_queue("T", 0)
    body = encode_batch([BatchEntry(b"x", b""), BatchEntry(b"y", b"")])
    for cut in range(1, len(body)):
        if cut != len(body) // 2:
            with pytest.raises(errors.MessageMalformed):
                store.append_batch(queue, body[:cut], record("T", b""), NOW_MS)
    assert (queue.next_offset, store.log.tail) == (0, 0)
    store.close()


@pytest.mark.parametrize(("more", "begins_at"), [(0, 2044), (1, 4096)])
def test_a_message_stays_where_a_blank_fits_behind_it(more: int, begins_at: int) -> None:
    """Both end at byte 4088 of a file of 4096, or one byte later; a blank has 8."""
    store = MessageStore.open(None, SMALL)
    body = bytes(2044 - len(encode_record(record("T", b""))))
    assert put(store, "T", body).positions == [0]
    assert put(store, "T", body + bytes(more)).positions == [begins_at]
    assert len(bodies(store, "T")) == 2
    store.close()


def test_a_batch_is_not_split_between_files(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    put(store, "T", b"x" * 3000)
    positions = put(store, "T", *[b"y" * 500] * 3).positions
    assert positions[0] == 4096
    positions = put(store, "T", *[b"z" * 3000] * 3).positions  # larger than a whole file
    assert {store.log.segments.at(position) for position in positions} == {
        store.log.segments.at(positions[0])
    }
    assert len(bodies(store, "T")) == 7
    store.close()


# No room


def test_a_full_disk_refuses_and_the_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", SMALL, disk=disk)
    put(store, "T", b"first" * 100)
    disk.full = True
    tail = store.log.tail
    for attempt in ([b"x" * 5000], [b"x" * 5000, b"y"], [b"small"], [b"s", b"t"]):
        with pytest.raises(errors.StoreFull) as caught:
            put(store, "T", *attempt)
        assert caught.value.retryable
        assert store.log.tail == tail
        assert bodies(store, "T") == [b"first" * 100]
    disk.full = False
    assert put(store, "T", b"x" * 5000).queue_offset == 1
    put(store, "T", b"small")
    expected = [b"first" * 100, b"x" * 5000, b"small"]
    assert bodies(store, "T") == expected
    abandon(store)
    again = MessageStore.open(tmp_path / "s", SMALL)
    assert (bodies(again, "T"), again.recovered.damage) == (expected, [])
    again.close()


def test_a_turn_that_cannot_be_written_was_never_appended(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", disk=disk)
    for topic in ("A", "B"):
        put(store, topic, b"before")
    disk.full = True
    for topic in ("A", "B", "A"):
        queue = store.make_queue(topic, 0)
        store.append(queue, [record(topic, b"x")] * 40, [0] * 40, NOW_MS)
    with pytest.raises(errors.StoreFull):
        store.write()
    store.write()
    disk.full = False
    assert put(store, "A", b"after").queue_offset == 1
    assert bodies(store, "A") == [b"before", b"after"]
    assert bodies(store, "B") == [b"before"]
    abandon(store)
    again = MessageStore.open(tmp_path / "s")
    assert bodies(again, "A") == [b"before", b"after"]
    assert bodies(again, "B") == [b"before"]
    again.close()


def test_the_systems_own_limit_is_a_full_disk_too(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s", SMALL)
    put(store, "T", b"x" * 3000)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(errors.StoreFull):
            put(store, "T", b"y" * 3000)
        store.maintain(1.0)  # cannot make a file either, and says so only in the log
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert put(store, "T", b"y" * 3000).queue_offset == 1
    store.close()


def test_a_checkpoint_without_room_comes_again(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path / "s")
    put(store, "T", b"x")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    heard: list[Exception | None] = []
    try:
        store.checkpoint(heard.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert heard[0] is not None
    assert store.since_checkpoint == store.log.tail
    store.checkpoint(heard.append)
    assert heard[1] is None
    assert store.since_checkpoint == 0
    abandon(store)
    again = MessageStore.open(tmp_path / "s")
    assert (bodies(again, "T"), again.recovered.records) == ([b"x"], 0)
    again.close()


# Looking after it


def test_checkpoints_come_with_time_and_with_bytes(tmp_path: Path) -> None:
    options = StoreOptions(checkpoint_interval=10.0, checkpoint_bytes=5000)
    store = MessageStore.open(tmp_path, options)
    put(store, "T", b"x")
    store.maintain(100.0)
    assert store.since_checkpoint == 0
    put(store, "T", b"x")
    store.maintain(109.0)
    assert store.since_checkpoint > 0
    store.maintain(110.0)
    assert store.since_checkpoint == 0
    put(store, "T", b"x" * 5000)
    store.maintain(110.1)
    assert store.since_checkpoint == 0
    store.close()


def test_an_idle_store_writes_nothing(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path)
    put(store, "T", b"x")
    store.maintain(100.0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for moment in range(101, 200):
        store.maintain(float(moment))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    store.close()


def test_the_next_file_is_ready_before_it_is_needed(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    put(store, "T", b"x" * 3500)
    store.maintain(1.0)
    assert len(list((tmp_path / "commitlog").iterdir())) == 2
    store.close()
    assert len(list((tmp_path / "commitlog").iterdir())) == 1


def test_the_oldest_file_goes_only_when_a_checkpoint_has_left_it(tmp_path: Path) -> None:
    store = MessageStore.open(tmp_path, SMALL)
    told: list[int] = []
    store.about_to_drop.append(told.append)
    assert not store.drop_first_segment()
    for number in range(6):
        put(store, "T", b"%d" % number * 1500)
    assert not store.drop_first_segment()
    store.checkpoint()
    assert store.drop_first_segment()
    assert told == [4096]
    assert store.log.first == 4096
    queue = store.queue("T", 0)
    assert queue is not None
    assert (queue.min_offset, queue.next_offset) == (2, 6)
    while store.drop_first_segment():
        pass
    assert len(store.log.segments) == 1
    abandon(store)
    again = MessageStore.open(tmp_path, SMALL)
    queue = again.queue("T", 0)
    assert queue is not None
    assert (queue.min_offset, queue.next_offset) == (4, 6)
    assert bodies(again, "T") == [b"4" * 1500, b"5" * 1500]
    again.close()


def test_a_walk_ends_where_the_log_ends_and_goes_on_later() -> None:
    store = MessageStore.open(None)
    put(store, "T", b"1", b"2")
    records, position = store.walk(0, 10)
    assert [text for *_, text in records] == [b"TAGS\x01a\x02"] * 2
    assert store.walk(position, 10) == ([], position)
    put(store, "T", b"3")
    records, _ = store.walk(position, 10)
    assert [record[0] for record in records] == [position]
    store.close()


def test_syncs_and_checkpoints_run_on_the_flushers_thread(tmp_path: Path) -> None:
    calls: list[object] = []
    told = threading.Semaphore(0)

    def call_back(call: object) -> None:
        calls.append(call)
        told.release()

    store = MessageStore.open(tmp_path, flusher=Flusher(call_back))
    put(store, "T", b"x")
    heard: list[Exception | None] = []
    store.request_sync(heard.append)
    assert store.checkpoint(heard.append)
    assert not store.checkpoint(heard.append)
    names: list[str] = []
    store.submit(lambda: names.append(threading.current_thread().name), heard.append)
    for _ in range(3):
        assert told.acquire(timeout=30)
    assert heard == []
    for call in calls:
        assert callable(call)
        call()
    assert heard == [None, None, None]
    assert names == ["pocketmq-flusher"]
    put(store, "T", b"y")
    store.request_sync(heard.append)
    store.close()
    assert heard == [None] * 4
    again = MessageStore.open(tmp_path)
    assert bodies(again, "T") == [b"x", b"y"]
    assert again.recovered.records == 0
    again.close()


def test_closing_a_store_that_cannot_be_written_lets_go_of_it(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path / "s")
    store = MessageStore.open(tmp_path / "s", disk=disk)
    put(store, "T", b"x")
    store.append(store.make_queue("T", 0), [record("T", b"y")], [0], NOW_MS)
    disk.full = True
    with pytest.raises(errors.StoreFull):
        store.close()
    again = MessageStore.open(tmp_path / "s")
    assert bodies(again, "T") == [b"x"]
    again.close()


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="at least 4096"):
        StoreOptions(segment_size=4095)
