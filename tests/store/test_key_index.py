"""The key index finds what is in the log: everything, at once, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pocketmq.protocol.hosts import V6_SIZE
from pocketmq.protocol.record_scan import RecordView
from pocketmq.protocol.records import Record, pack_record
from pocketmq.store import Flusher, MessageStore, StoreOptions, key_index_stretch
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import Disk, DiskFile, FileSystem
from pocketmq.store.key_index import FAN, KeyIndex
from pocketmq.store.key_index_lookup import MOST_BYTES, KeyQuery
from pocketmq.store.key_index_merge import choose
from pocketmq.store.key_index_run import Run, RunInfo
from pocketmq.store.key_index_words import (
    HASH_LIMIT,
    KeyHash,
    KeyWords,
    _is_prime,
    choose_modulus,
)
from pocketmq.store.no_disk import MemoryFile
from tests.store.faults import FullDisk, MortalDisk, PowerDisk, PowerFile, ProcessEnded, abandon
from tests.store.messages import NOW_MS, put

MODULUS = 536_870_909
ALWAYS = (0, 1 << 62)


def text(unique: str | None = None, keys: str | None = None) -> bytes:
    raw = "" if unique is None else f"UNIQ_KEY\x01{unique}\x02"
    return (raw if keys is None else f"{raw}KEYS\x01{keys}\x02").encode()


def open_store(
    path: Path | None,
    *,
    disk: FileSystem | None = None,
    segment_size: int = 1 << 20,
    modulus: int = MODULUS,
    run_words: int = 16,
    fan: int = FAN,
    flusher: Flusher | None = None,
) -> MessageStore:
    """Open a store whose index makes runs of few words."""
    options = StoreOptions(segment_size=segment_size)
    store = MessageStore.open(path, options, disk=disk, flusher=flusher)
    store._keys = KeyIndex(
        store.disk,
        store.log,
        store._flusher.submit,
        modulus=modulus,
        recovered_end=store.recovered.tail,
        run_words=run_words,
        fan=fan,
    )
    return store


def found(store: MessageStore, key: str, *, topic: str = "T", unique: bool = False) -> list[bytes]:
    """Give the bodies of all messages with a key."""
    records = store.find_by_key(topic, key, *ALWAYS, 1000, unique=unique)
    return [RecordView(record, 0).stored_body for record in records]


def keys_of(properties: bytes, *, unique: bool) -> set[bytes]:
    """Read what a message can be found by, in the plainest way."""
    values = {}
    for piece in properties.split(b"\x02"):
        name, _, value = piece.partition(b"\x01")
        if value:
            values[name] = value
    keys = {values[b"UNIQ_KEY"]} if b"UNIQ_KEY" in values else set()
    return keys if unique else keys | set(values.get(b"KEYS", b"").split(b" ")) - {b""}


def expected(
    store: MessageStore, topic: str, key: str, begin: int, end: int, limit: int, *, unique: bool
) -> list[int]:
    """Give the positions a query must find, by looking at every record of the log."""
    positions: list[int] = []
    start = store.log.first
    while True:
        records, following = store.walk(start, 100)
        for position, _, queue_id, offset, time, name, properties in records:
            queue = store.queue(topic, queue_id)
            if (
                name == topic.encode()
                and key.encode() in keys_of(properties, unique=unique)
                and begin <= time <= end
                and queue is not None
                and queue.min_offset <= offset < queue.next_offset
                and queue.position(offset) == position
            ):
                positions.append(position)
        if following == start:
            return positions[-limit:] if limit > 0 else []
        start = following


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


# What is found


def test_a_message_is_found_as_soon_as_it_was_appended(store: MessageStore) -> None:
    put(store, "T", b"first", text=text("id-1", "a"))
    assert found(store, "a") == [b"first"]
    record = Record(topic=b"T", body=b"second", property_bytes=text("id-2", "a"))
    store.append(store.make_queue("T", 0), [record], [0], NOW_MS)
    assert found(store, "a") == [b"first", b"second"]


def test_a_message_is_found_by_its_id_and_by_each_of_its_keys(store: MessageStore) -> None:
    put(store, "T", b"one", text=text("id-1", " a  bc a "))
    put(store, "T", b"two", text=text("a", "id-1"))
    assert found(store, "id-1") == [b"one", b"two"]
    assert found(store, "a") == [b"one", b"two"]
    assert found(store, "bc") == [b"one"]
    assert found(store, "id-1", unique=True) == [b"one"]
    assert found(store, "a", unique=True) == [b"two"]
    assert [found(store, key) for key in ("b", "a  bc", "", " ", "id", "A")] == [[]] * 6


def test_the_newest_come_up_to_the_limit_in_the_order_of_the_log(store: MessageStore) -> None:
    for number in range(100):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=NOW_MS + number)
    for limit in (-1, 0, 1, 7, 99, 100, 101):
        records = store.find_by_key("T", "k", *ALWAYS, limit)
        bodies = [RecordView(record, 0).stored_body for record in records]
        assert bodies == [b"%d" % number for number in range(max(0, 100 - max(0, limit)), 100)]


def test_both_ends_of_a_time_range_belong_to_it(store: MessageStore) -> None:
    for number in range(100):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=NOW_MS + 10 * number)
    for first, last in ((0, 99), (5, 5), (17, 63), (98, 99), (60, 40)):
        records = store.find_by_key("T", "k", NOW_MS + 10 * first, NOW_MS + 10 * last, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == list(range(first, last + 1))
        records = store.find_by_key("T", "k", NOW_MS + 10 * first + 1, NOW_MS + 10 * last - 1, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == list(range(first + 1, last))


def test_a_clock_that_goes_back_hides_nothing(store: MessageStore) -> None:
    times = [NOW_MS + (number * 37) % 100 for number in range(100)]
    for number, time in enumerate(times):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=time)
    for begin, end in ((0, 99), (50, 50), (10, 30)):
        records = store.find_by_key("T", "k", NOW_MS + begin, NOW_MS + end, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == [n for n, time in enumerate(times) if begin <= time - NOW_MS <= end]


def test_keys_of_other_topics_are_not_found(store: MessageStore) -> None:
    put(store, "T", b"here", text=text("id", "k"))
    put(store, "T2", b"there", text=text("id", "k"))
    assert found(store, "k") == [b"here"]
    assert found(store, "k", topic="T2") == [b"there"]
    assert found(store, "k", topic="T3") == []


@pytest.mark.parametrize("modulus", [1, 2, 3])
def test_keys_that_share_a_hash_are_told_apart(tmp_path: Path, modulus: int) -> None:
    store = open_store(tmp_path, modulus=modulus)
    names = ["key-1", "key-2", "k", "T"]
    for name in names:
        for topic in ("T", "T2"):
            put(store, topic, f"{topic} {name}".encode(), text=text(f"id-{name}", name))
    for name in names:
        for topic in ("T", "T2"):
            assert found(store, name, topic=topic) == [f"{topic} {name}".encode()]
    store.close()


def test_colliding_keys_are_chosen_for_the_real_modulus(store: MessageStore) -> None:
    key, twin = _twins()
    hashes = KeyHash(MODULUS)
    assert hashes.bounds(b"T", key.encode()) == hashes.bounds(b"T", twin.encode())
    put(store, "T", b"one", text=text(None, key))
    put(store, "T", b"two", text=text(None, twin))
    assert (found(store, key), found(store, twin)) == ([b"one"], [b"two"])


def _twins() -> tuple[str, str]:
    """Give two readable keys with the same remainder."""
    start = int.from_bytes(b"aaaaaaaa")
    for step in range(1, 1_000_000):
        raw = (start + step * MODULUS).to_bytes(8)
        if raw.isalnum():
            return "aaaaaaaa", raw.decode()
    raise AssertionError


def test_only_the_end_of_a_rolled_back_transaction_is_left_out(store: MessageStore) -> None:
    queue = store.make_queue("T", 0)
    for flag in (0, 4, 8, 12):
        record = Record(
            topic=b"T", body=b"%d" % flag, property_bytes=text("id", "k"), sys_flag=flag
        )
        store.append(queue, [record], [0], NOW_MS)
    assert found(store, "k") == [b"0", b"4", b"8"]
    assert found(store, "id", unique=True) == [b"0", b"4", b"8"]


HOSTILE = [
    b"",
    b"\x02",
    b"KEYS",
    b"KEYS\x01",
    b"KEYS\x01\x02",
    b"KEYS\x01a",
    b"\x02\x02KEYS\x01a\x02\x02",
    b"KEYS\x01a\x02KEYS\x01b\x02",
    b"KEYS\x01a\x02KEYS\x01\x02",
    b"KEYS\x01a\x02UNIQ_KEY\x01a\x02",
    b"XKEYS\x01a\x02",
    b"X\x01KEYS\x01a\x02",
    b"KEYS\x01\x01a\x02",
    b"KEYS\x01 \x02",
    b"KEYS\x01 a \x02UNIQ_KEY\x01 a \x02",
    b"KEYS\x01a\tb\x02",
    b"KEYS\x01\xff\xfe a\x02",
    b"UNIQ_KEY\x01\xc3\x28\x02",
    b"UNIQ_KEY\x01a",
    b"UNIQ_KEYS\x01a\x02",
    b"UNIQ_KEY\x01a b\x02",
    b"KEYS\x01" + b"a " * 16000,
    b"KEYS\x01" + b" ".join(b"%d" % number for number in range(5000)),
]


def test_odd_properties_are_read_as_everywhere_else(store: MessageStore) -> None:
    """A message is found by exactly the keys that a reader of its properties sees."""
    for number, properties in enumerate(HOSTILE * 2):
        put(store, "T", b"%d" % number, text=properties)
        put(store, "T", b"plain", text=text("id", "plain"))
    probes = ["a", "b", "\x01a", "\x01", "a\tb", " a ", "a b", " ", "0", "4999", "X", "\ufffd"]
    for key in probes:
        for unique in (False, True):
            positions = expected(store, "T", key, *ALWAYS, 1000, unique=unique)
            records = store.find_by_key("T", key, *ALWAYS, 1000, unique=unique)
            assert [RecordView(r, 0).commit_log_offset for r in records] == positions
    assert len(found(store, "plain")) == 2 * len(HOSTILE)
    right = [5, 6, 8, 9, 14, 16, 18, 21]
    assert found(store, "a") == [b"%d" % (n + len(HOSTILE) * k) for k in (0, 1) for n in right]


def test_half_a_surrogate_pair_finds_what_java_would_have_stored(store: MessageStore) -> None:
    put(store, "T", b"odd", text=text(None, "a?b"))
    assert found(store, "a\ud800b") == [b"odd"]


def test_a_body_that_looks_like_keys_or_records_finds_nothing(store: MessageStore) -> None:
    fake = pack_record(
        Record(topic=b"T", body=b"fake", property_bytes=text("id", "k")), 0, 88, NOW_MS, bytes(8)
    )
    put(store, "T", fake + b"\x02KEYS\x01k\x02UNIQ_KEY\x01k\x02" + fake, text=text(None, "real"))
    assert found(store, "k") == []
    assert len(found(store, "real")) == 1


def test_records_of_every_form_and_size_are_found(tmp_path: Path) -> None:
    store = open_store(tmp_path, segment_size=1 << 16)
    wide = "W" * 200
    queue, wide_queue = store.make_queue("T", 0), store.make_queue(wide, 0)
    expected_bodies = []
    for number in range(400):
        body = bytes([number % 256]) * (300_000 if number % 100 == 50 else number)
        expected_bodies.append(body)
        record = Record(
            topic=b"T",
            body=body,
            property_bytes=text(f"id-{number}", f"k shared n{number % 3}"),
            born_host=bytes(V6_SIZE) if number % 7 < 3 else bytes(8),
        )
        store.append(queue, [record], [0], NOW_MS)
        put(store, wide, body, text=text(None, "shared"))
    assert wide_queue.next_offset == 400
    assert len(store.log.segments) > 5
    assert found(store, "k")[-20:] == expected_bodies[-20:]
    for number in (0, 50, 149, 150, 151, 399):
        assert found(store, f"id-{number}", unique=True) == [expected_bodies[number]]
    store.close()


def test_many_large_messages_do_not_make_a_frame_that_clients_refuse(store: MessageStore) -> None:
    for number in range(5):
        put(store, "T", bytes([number]) * (3 << 20), text=text(None, "k"))
    bodies = found(store, "k")
    assert [body[0] for body in bodies] == [2, 3, 4]
    assert sum(map(len, bodies[1:])) < MOST_BYTES


def test_messages_of_a_deleted_topic_are_not_found_even_if_it_is_made_again(
    store: MessageStore,
) -> None:
    put(store, "T", b"old", text=text("id", "k"))
    assert found(store, "k") == [b"old"]
    store.delete_topic("T")
    assert found(store, "k") == []
    put(store, "T", b"new", text=text("id", "k"))
    assert found(store, "k") == [b"new"]


def test_a_store_in_memory_has_an_index_too() -> None:
    store = open_store(None)
    for number in range(1000):
        put(store, "T", b"%d" % number, text=text(f"id-{number}", f"k{number % 10}"))
    assert found(store, "k3") == [b"%d" % number for number in range(3, 1000, 10)]
    assert store.keys.catch_up(5.0)
    assert found(store, "id-17") == [b"17"]
    store.close()


# How it is built


def run_files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "keys").iterdir())


def fill(store: MessageStore, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        put(store, "T", b"%d" % number, text=text(f"id-{number}", f"k{number % 10}"))


def all_there(store: MessageStore, count: int) -> None:
    for number in range(0, count, 7):
        assert found(store, f"id-{number}") == [b"%d" % number]
    assert found(store, "k5") == [b"%d" % number for number in range(5, count, 10)]


def test_runs_appear_as_the_log_grows_and_are_used_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 100)
    all_there(store, 100)
    files = run_files(tmp_path)
    assert files
    store.close()
    store = open_store(tmp_path)
    assert store.keys.position > 0
    all_there(store, 100)
    assert set(files) <= set(run_files(tmp_path))
    store.close()


def test_catching_up_can_be_done_in_slices(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 4000)
    slices = 0
    while not store.keys.catch_up(0.0):
        slices += 1
        assert store.keys.behind > 0
    assert slices >= 2
    assert store.keys.behind == 0
    assert store.keys.newest_ms == NOW_MS
    all_there(store, 4000)
    store.close()


def test_neighbouring_runs_are_merged_when_there_is_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(FAN * 3):
        fill(store, 10, number * 10)
        store.keys.catch_up()
    count = FAN * 30
    before = run_files(tmp_path)
    assert len(before) == FAN * 3
    while store.keys.catch_up(1.0) and len(run_files(tmp_path)) > 3:
        pass
    after = run_files(tmp_path)
    assert len(after) == 3
    assert after[0].split("-")[0] == before[0].split("-")[0]
    assert after[-1].split("-")[1] == before[-1].split("-")[1]
    all_there(store, count)
    store.close()
    store = open_store(tmp_path)
    all_there(store, count)
    store.close()


def test_a_merge_of_many_words_keeps_every_one(tmp_path: Path) -> None:
    """Slices are cut right also where one key fills several of them."""
    store = open_store(tmp_path, run_words=3000, segment_size=1 << 22)
    count = 0
    for _ in range(FAN):
        records = [
            Record(topic=b"T", body=b"%d" % number, property_bytes=text(f"id-{number}", "same"))
            for number in range(count, count + 1500)
        ]
        store.append(store.make_queue("T", 0), records, [0] * len(records), NOW_MS)
        store.write()
        count += len(records)
        store.keys.catch_up()
    assert len(run_files(tmp_path)) == FAN
    while len(run_files(tmp_path)) > 1:
        store.keys.catch_up(1.0)
    (merged,) = store.keys._runs.all
    assert len(merged.words) == 2 * count
    assert merged.packed == bytes(merged.file.view[64:]) if merged.file else False
    words = list(merged.words)
    assert words == sorted(words)
    assert len(store.find_by_key("T", "same", *ALWAYS, 1_000_000)) == count
    for number in range(0, count, 997):
        assert found(store, f"id-{number}") == [b"%d" % number]
    store.close()


def test_runs_that_were_merged_but_not_removed_yet_are_not_used_twice(tmp_path: Path) -> None:
    store = open_store(tmp_path, fan=3)
    for number in range(3):
        fill(store, 10, number * 10)
        store.keys.catch_up()
    sources = {name: (tmp_path / "keys" / name).read_bytes() for name in run_files(tmp_path)}
    assert len(sources) == 3
    store.keys.catch_up(1.0)
    (merged,) = run_files(tmp_path)
    store.close()
    for name, raw in sources.items():
        (tmp_path / "keys" / name).write_bytes(raw)
    store = open_store(tmp_path, fan=3)
    all_there(store, 30)
    assert run_files(tmp_path) == [merged]
    store.close()


def test_a_clock_that_went_back_between_runs_is_remembered_when_they_are_merged(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path, fan=3)
    for start in (0, 200, 100):
        for number in range(start, start + 20):
            put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=NOW_MS + number)
        store.keys.catch_up()
    store.keys.catch_up(1.0)
    assert [run.info.merged for run in store.keys._runs.all] == [True]
    records = store.find_by_key("T", "k", NOW_MS + 5, NOW_MS + 105, 1000)
    bodies = [int(RecordView(record, 0).stored_body) for record in records]
    assert bodies == [*range(5, 20), *range(100, 106)]
    records = store.find_by_key("T", "k", NOW_MS + 200, NOW_MS + 205, 1000)
    assert len(records) == 6
    store.close()


def make_run(start: int, end: int, *, merged: bool = False, in_file: bool = True) -> Run:
    info = RunInfo(start=start, end=end, oldest_ms=0, newest_ms=0, time_ordered=True, merged=merged)
    return Run(info, [], file=MemoryFile(64) if in_file else None)


REGION = 1 << 32
MERGING: list[tuple[str, list[Run], list[int]]] = [
    ("too few", [make_run(0, 1), make_run(1, 2)], []),
    ("enough", [make_run(0, 1), make_run(1, 2), make_run(2, 3), make_run(3, 4)], [0, 1, 2]),
    ("a gap", [make_run(0, 1), make_run(2, 3), make_run(3, 4)], []),
    ("behind a gap", [make_run(0, 1), *(make_run(n, n + 1) for n in (2, 3, 4))], [2, 3, 4]),
    ("merged before", [make_run(0, 9, merged=True), make_run(9, 10), make_run(10, 11)], []),
    (
        "behind merged ones",
        [make_run(0, 9, merged=True), *(make_run(n, n + 1) for n in (9, 10, 11))],
        [9, 10, 11],
    ),
    ("not in a file yet", [make_run(0, 1), make_run(1, 2), make_run(2, 3, in_file=False)], []),
    (
        "the last of a region",
        [make_run(0, 1), make_run(1, REGION), make_run(REGION, REGION + 1)],
        [0, 1],
    ),
    ("alone in its region", [make_run(1, REGION), make_run(REGION, REGION + 1)], []),
]


@pytest.mark.parametrize(
    ("runs", "starts"), [row[1:] for row in MERGING], ids=[r[0] for r in MERGING]
)
def test_runs_are_merged_that_lie_side_by_side(runs: list[Run], starts: list[int]) -> None:
    assert [run.info.start for run in choose(runs, 3)] == starts


class LaterFlusher(Flusher):
    """Runs jobs when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[tuple[Any, Any]] = []

    def submit(self, job: Any, outcome: Any) -> None:
        self.jobs.append((job, outcome))

    def work(self, most: int = 1 << 30) -> int:
        done = 0
        while self.jobs and done < most:
            super().submit(*self.jobs.pop(0))
            done += 1
        return done

    def close(self) -> None:
        self.work()


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("then", ["drop", "close"])
def test_a_merge_may_be_overtaken_at_any_point(tmp_path: Path, steps: int, then: str) -> None:
    """The log may drop what is being merged, and the store may close, whatever is under way."""
    flusher = LaterFlusher()
    store = open_store(tmp_path, segment_size=1 << 12, fan=2, flusher=flusher, run_words=1)
    for number in range(2):
        fill(store, 8, number * 8)
        store.keys.catch_up()
    flusher.work()
    fill(store, 50, 16)
    store.checkpoint()
    flusher.work()
    for step in range(steps):
        if step % 2:
            flusher.work(1)
        else:
            store.keys.catch_up(0.001)
    if then == "close":
        store.close()
        store = open_store(tmp_path, segment_size=1 << 12, fan=2)
        all_there(store, 66)
    else:
        while store.drop_first_segment():
            pass
        lowest = store.make_queue("T", 0).min_offset
        assert lowest > 16
        assert found(store, "k5") == [b"%d" % n for n in range(5, 66, 10) if n >= lowest]
        while flusher.work():
            store.keys.catch_up(0.001)
        assert found(store, "k5") == [b"%d" % n for n in range(5, 66, 10) if n >= lowest]
        names = run_files(tmp_path)
        assert names == [run.info.name.split("/")[1] for run in store.keys._runs.all]
    store.close()


def test_words_are_on_the_device_before_they_are_declared_valid(tmp_path: Path) -> None:
    heads: list[bool] = []

    class WatchedFile(PowerFile):
        __slots__ = ()

        def write(self, position: int, data: bytes) -> None:
            if self.path.parent.name == "keys" and position == 0:
                heads.append(self.safe[64:] == bytes(self.view[64:]) != bytes(self.size - 64))
            super().write(position, data)

    class WatchedDisk(Disk):
        def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
            return WatchedFile(path, size, create=create)

    store = open_store(tmp_path, disk=WatchedDisk(tmp_path), fan=3)
    for number in range(3):
        fill(store, 10, number * 10)
        store.keys.catch_up(1.0)
    assert heads == [True] * 4
    store.close()


def test_an_index_without_files_is_made_again(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store, 100)
    store.keys.catch_up()
    store.close()
    rmtree(tmp_path / "keys")
    store = open_store(tmp_path)
    all_there(store, 100)
    store.close()


@pytest.mark.parametrize("victim", [0, 3, -1])
@pytest.mark.parametrize("how", ["gone", "empty", "short", "head", "words", "renamed", "junk"])
def test_a_missing_or_damaged_run_is_made_again(tmp_path: Path, victim: int, how: str) -> None:
    store = open_store(tmp_path)
    for number in range(10):
        fill(store, 20, number * 20)
        store.keys.catch_up()
    store.close()
    path = tmp_path / "keys" / run_files(tmp_path)[victim]
    raw = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "renamed":
        path.rename(path.with_name("0" * 20 + "-" + "9" * 20))
    elif how == "junk":
        path.with_name("junk").write_bytes(b"x" * 1000)
    else:
        if how == "empty":
            raw.clear()
        elif how == "short":
            del raw[-8:]
        elif how == "head":
            raw[20] ^= 1
        else:
            raw[64:] = os.urandom(len(raw) - 64)
        path.write_bytes(raw)
    store = open_store(tmp_path)
    if how == "words":  # only found out when there is time to check
        assert store.keys.catch_up(1.0) is False
    all_there(store, 200)
    assert store.keys.catch_up(1.0)
    store.close()
    store = open_store(tmp_path)
    all_there(store, 200)
    store.close()


def test_an_index_made_with_another_modulus_is_made_again(tmp_path: Path) -> None:
    store = open_store(tmp_path, modulus=MODULUS)
    fill(store, 100)
    store.keys.catch_up()
    store.close()
    store = open_store(tmp_path, modulus=536_870_879)
    assert store.keys.position == 0
    all_there(store, 100)
    store.close()


def test_a_run_of_what_the_log_lost_is_not_believed(tmp_path: Path) -> None:
    """A power cut can take the end of the log, but leave a run that was made of it."""
    disk = PowerDisk(tmp_path)
    store = open_store(tmp_path, disk=disk)
    fill(store, 50)
    store.checkpoint()
    fill(store, 50, 50)
    store.keys.catch_up()
    abandon(store)
    disk.cut_power(1 << 30, lambda: False)
    store = open_store(tmp_path)
    assert store.log.written < store.options.segment_size
    assert store.make_queue("T", 0).next_offset == 50
    for number in range(1050, 1100):  # of the same size as what was lost, and in its place
        put(store, "T", b"%d" % (number % 100), text=text(f"ID{number % 100}", f"x{number % 10}"))
    for number in range(50, 100):
        assert found(store, f"ID{number}") == [b"%d" % number]
        assert found(store, f"id-{number}") == []
    store.close()


def test_a_power_cut_leaves_whole_runs_or_none(tmp_path: Path) -> None:
    """Whatever part of the unsynced bytes survives, no run is believed whose words are not there."""
    for seed in range(10):
        path = tmp_path / str(seed)
        disk = PowerDisk(path)
        path.mkdir()
        store = open_store(path, disk=disk, segment_size=1 << 15)
        fill(store, 100)
        store.keys.catch_up()
        store.request_sync(lambda error: None)
        abandon(store)
        coins = iter(range(seed, 1 << 30))
        disk.cut_power(64, lambda coins=coins: next(coins) * 2654435761 % 7 < 4)  # type: ignore[misc]
        store = open_store(path)
        all_there(store, 100)
        store.close()


def test_without_room_the_index_works_in_memory_and_is_saved_later(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    store = open_store(tmp_path, disk=disk)
    fill(store, 100)
    disk.full = True
    all_there(store, 100)
    assert not (tmp_path / "keys").exists() or run_files(tmp_path) == []
    disk.full = False
    fill(store, 200, 100)
    all_there(store, 300)
    assert all(run.file is not None for run in store.keys._runs.all)
    store.close()


def test_a_device_that_cannot_sync_leaves_the_index_in_memory(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    store = open_store(tmp_path, disk=disk)
    fill(store, 300)
    disk.broken = True
    all_there(store, 300)
    assert run_files(tmp_path) == []
    disk.broken = False
    store.close()


def test_damaged_records_are_passed_over(tmp_path: Path) -> None:
    store = open_store(tmp_path, segment_size=1 << 14)
    fill(store, 300)
    positions = [r[0] for r in store.walk(0, 1000)[0]]
    store.close()
    log_file = tmp_path / "commitlog" / f"{0:020d}"
    raw = bytearray(log_file.read_bytes())
    raw[positions[3] : positions[5] + 30] = bytes(positions[5] + 30 - positions[3])
    raw[positions[10] + 40] ^= 0xFF
    log_file.write_bytes(raw)
    store = open_store(tmp_path, segment_size=1 << 14)
    for number in (2, 6, 9, 10, 11, 50, 299):
        assert found(store, f"id-{number}") == [b"%d" % number]
    for number in (3, 4, 5):
        assert found(store, f"id-{number}") == []
    store.close()


def test_runs_stay_within_four_gigabytes_of_the_log(tmp_path: Path) -> None:
    """Words hold half of a position: around the boundary both halves must come out right."""
    disk = Disk(tmp_path)
    log = CommitLog(disk, 1 << 14)
    start = (1 << 32) - 40_000
    log.begin(start, start)
    index = KeyIndex(
        disk, log, Flusher().submit, modulus=MODULUS, recovered_end=start, run_words=50
    )
    positions = {}
    for number in range(500):
        body = bytes(9000 if number == 250 else 10)
        record = Record(topic=b"T", body=body, property_bytes=text(f"id-{number}", "k"))
        size = len(pack_record(record, number, 0, NOW_MS, bytes(8)))
        if log.tail + size > log.limit:
            log.write()
            log.make_room(size)
        positions[number] = log.tail
        log.pending.append(pack_record(record, number, log.tail, NOW_MS, bytes(8)))
        log.tail += size
        log.write()
        if number % 20 == 0:
            index.catch_up()
    assert min(positions.values()) < 1 << 32 < max(positions.values())

    def place(key: str) -> list[int]:
        query = KeyQuery(topic="T", key=key, limit=1000)
        return [RecordView(record, 0).commit_log_offset for record in index.find(query)]

    for _ in range(2):
        for number, position in positions.items():
            assert place(f"id-{number}") == [position]
        assert place("k") == list(positions.values())
        for run in index._runs.all:
            assert run.info.start >> 32 == run.info.region >> 32
        index.catch_up(1.0)
    below = [run for run in index._runs.all if run.info.start < 1 << 32]
    assert [run.info.merged for run in below] == [True]
    assert len(index._runs.all) > 2
    index.close()
    log.segments.close()


def test_a_flusher_on_another_thread_changes_nothing(tmp_path: Path) -> None:
    """Queries are right before, while and after files are made; closing at any moment is safe."""
    pending: list[Any] = []
    for rounds in range(1, 6):
        store = open_store(tmp_path, flusher=Flusher(pending.append))
        count = store.make_queue("T", 0).next_offset
        for _ in range(FAN + rounds):
            fill(store, 10, count)
            count += 10
            store.keys.catch_up(0.001)
            if count % 30 == 0:
                while pending:
                    pending.pop()()
        all_there(store, count)
        store.close()
        pending.clear()
    store = open_store(tmp_path)
    all_there(store, store.make_queue("T", 0).next_offset)
    store.close()


def test_what_the_log_drops_goes_from_the_index(tmp_path: Path) -> None:
    store = open_store(tmp_path, segment_size=1 << 13)
    fill(store, 500)
    store.keys.catch_up(1.0)
    files = len(run_files(tmp_path))
    store.checkpoint()
    dropped = 0
    while store.drop_first_segment():
        dropped += 1
        lowest = store.make_queue("T", 0).min_offset
        assert found(store, "k5") == [b"%d" % n for n in range(5, 500, 10) if n >= lowest]
        assert found(store, f"id-{lowest}") == [b"%d" % lowest]
        assert found(store, f"id-{lowest - 1}") == []
    assert dropped > 5
    assert len(run_files(tmp_path)) < files
    kept = [int(name.split("-")[1]) for name in run_files(tmp_path)]
    assert min(kept) > store.log.first
    store.close()
    store = open_store(tmp_path, segment_size=1 << 13)
    assert found(store, "k5") == [b"%d" % n for n in range(5, 500, 10) if n >= lowest]
    store.close()


def test_an_index_that_was_left_behind_goes_on_where_the_log_begins(tmp_path: Path) -> None:
    store = open_store(tmp_path, segment_size=1 << 13)
    fill(store, 20)
    store.keys.catch_up()
    fill(store, 480, 20)
    store.checkpoint()
    while store.drop_first_segment():
        pass
    lowest = store.make_queue("T", 0).min_offset
    assert found(store, "k5") == [b"%d" % n for n in range(5, 500, 10) if n >= lowest]
    store.close()


# Parts


def test_many_entries_of_one_key_are_searched_by_time_not_one_by_one() -> None:
    words = KeyWords(KeyHash(MODULUS))
    for number in range(10_000):
        words.take(number * 100, b"T", text(None, "k"), 1000 + number)
    info = RunInfo(start=0, end=1_000_000, oldest_ms=1000, newest_ms=10_999, time_ordered=True)
    run = Run(info, sorted(words.words))
    asked = []

    def time_at(position: int) -> int:
        asked.append(position)
        return 1000 + position // 100

    bounds = KeyHash(MODULUS).bounds(b"T", b"k")
    assert list(run.places(bounds, 3000, 3002, time_at)) == [200_200, 200_100, 200_000]
    assert len(asked) < 40
    assert list(run.places(bounds, 0, 999, time_at)) == []
    assert list(run.places(bounds, 11_000, 1 << 62, time_at)) == []
    assert len(list(run.places(bounds, 0, 1 << 62, time_at))) == 10_000


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"T", b"T2", b"", b"U" * 127]),
            st.one_of(
                st.sampled_from(HOSTILE[:21]),
                st.binary(max_size=40),
                st.lists(
                    st.sampled_from([b"KEYS", b"UNIQ_KEY", b"\x01", b"\x02", b" ", b"a", b"b"])
                ).map(b"".join),
            ),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
@settings(max_examples=200, deadline=None)
def test_many_at_once_gives_the_same_words_as_one_by_one(
    messages: list[tuple[bytes, bytes, int]],
) -> None:
    hashes = KeyHash(MODULUS)
    many, single = KeyWords(hashes), KeyWords(hashes)
    data = b""
    for topic, properties, time in messages:
        record = Record(topic=topic, body=b"body", property_bytes=properties)
        single.take(len(data), topic, properties, time)
        data += pack_record(record, 0, len(data), time, bytes(8))
    assert many.take_many(data, 0) == len(data)
    assert sorted(many.words) == sorted(single.words)
    assert (many.oldest_ms, many.newest_ms, many.time_ordered, many.records) == (
        single.oldest_ms,
        single.newest_ms,
        single.time_ordered,
        single.records,
    )
    for topic, properties, _ in messages:
        for key in keys_of(properties, unique=False):
            low, high = hashes.bounds(topic, key)
            assert any(low <= word < high for word in many.words)


@given(st.binary(max_size=400), st.integers(0, 1 << 40))
def test_any_bytes_are_taken_or_refused(data: bytes, position: int) -> None:
    words = KeyWords(KeyHash(MODULUS))
    assert 0 <= words.take_many(data, position) <= len(data)


def test_the_end_of_a_rolled_back_transaction_has_no_words() -> None:
    words = KeyWords(KeyHash(MODULUS))
    record = Record(topic=b"T", body=b"", property_bytes=text("id", "k"), sys_flag=12)
    data = pack_record(record, 0, 0, NOW_MS, bytes(8))
    assert words.take_many(data, 0) == len(data)
    assert words.words == []


def test_a_modulus_is_a_prime_of_the_right_size() -> None:
    small = [n for n in range(3, 2000, 2) if all(n % d for d in range(3, 45, 2) if d < n)]
    assert [n for n in range(3, 2000, 2) if n in (7, 61) or _is_prime(n)] == small
    assert not _is_prime(2047)  # passes for base 2
    assert not _is_prime(314_821)  # passes for base 7
    numbers = iter([0, 2, (1 << 28) - 3, 57])
    modulus = choose_modulus(lambda bits: next(numbers))
    assert HASH_LIMIT // 2 < modulus < HASH_LIMIT
    assert all(modulus % divisor for divisor in range(3, int(modulus**0.5) + 1, 2))


def test_the_modulus_of_a_store_is_its_own_and_stays(tmp_path: Path) -> None:
    first = MessageStore.open(tmp_path / "1")
    second = MessageStore.open(tmp_path / "2")
    modulus = first.keys._hash.modulus
    assert modulus != second.keys._hash.modulus
    first.close()
    second.close()
    first = MessageStore.open(tmp_path / "1")
    assert first.keys._hash.modulus == modulus
    first.close()


# Everything together


class IndexAgainstLog(RuleBasedStateMachine):
    """Whatever happens, a query gives what a look at every record of the log gives."""

    @initialize(
        run_words=st.integers(1, 40),
        segment_size=st.sampled_from([4096, 9000]),
        modulus=st.sampled_from([MODULUS, 1, 5]),
        fan=st.integers(2, 4),
    )
    def begin(self, run_words: int, segment_size: int, modulus: int, fan: int) -> None:
        key_index_stretch._WINDOW, self.window = 1500, key_index_stretch._WINDOW
        self.path = Path(mkdtemp())
        self.time = NOW_MS
        self.options: dict[str, Any] = {
            "run_words": run_words,
            "segment_size": segment_size,
            "modulus": modulus,
            "fan": fan,
        }
        self.reopen()

    def reopen(self) -> None:
        self.disk = MortalDisk(self.path)
        self.store = open_store(self.path, disk=self.disk, **self.options)

    def die(self) -> None:
        store = self.store
        abandon(store)
        store.keys.close()
        self.reopen()

    def attempt(self, action: Any) -> None:
        try:
            action()
        except ProcessEnded:
            self.die()

    @rule(
        topic=st.sampled_from(["A", "B"]),
        queue_id=st.integers(0, 1),
        properties=st.one_of(
            st.builds(
                text,
                st.sampled_from(["x", "y", None]),
                st.sampled_from(["x", "y z", "z", "x x", None]),
            ),
            st.sampled_from(HOSTILE[:21]),
        ),
        size=st.sampled_from([0, 0, 0, 300, 5000]),
        count=st.integers(1, 12),
        later=st.integers(-1, 3),
    )
    def append(
        self, topic: str, queue_id: int, properties: bytes, size: int, count: int, later: int
    ) -> None:
        self.time += later
        bodies = [bytes(size)] * count
        self.attempt(
            lambda: put(
                self.store, topic, *bodies, queue_id=queue_id, now_ms=self.time, text=properties
            )
        )

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.05]))
    def catch_up(self, seconds: float) -> None:
        self.attempt(lambda: self.store.keys.catch_up(seconds))

    @rule()
    def merge_all(self) -> None:
        def merge() -> None:
            for _ in range(FAN):
                self.store.keys.catch_up(0.01)

        self.attempt(merge)

    @rule(files=st.integers(1, 3))
    def drop(self, files: int) -> None:
        def drop() -> None:
            self.store.checkpoint()
            for _ in range(files):
                self.store.drop_first_segment()

        self.attempt(drop)

    @rule(topic=st.sampled_from(["A", "B"]))
    def delete_topic(self, topic: str) -> None:
        self.attempt(lambda: self.store.delete_topic(topic))

    @precondition(lambda self: self.disk.steps_left is None)
    @rule(steps=st.integers(1, 40), torn=st.integers(0, 1000))
    def let_the_end_come(self, steps: int, torn: int) -> None:
        self.disk.steps_left, self.disk.torn = steps, torn

    @rule()
    def end_now(self) -> None:
        self.die()

    @rule()
    def restart_cleanly(self) -> None:
        def restart() -> None:
            self.store.close()
            self.reopen()

        self.attempt(restart)

    @rule(number=st.integers(0, 1 << 16), flip=st.booleans())
    def damage_a_run(self, number: int, flip: bool) -> None:
        self.die()
        store = self.store
        names = sorted(self.disk.sizes("keys"))
        abandon(store)
        store.keys.close()
        if names:
            path = self.path / "keys" / names[number % len(names)]
            raw = bytearray(path.read_bytes())
            if flip and len(raw) > 64:
                raw[number % 64] ^= 1
                path.write_bytes(raw)
            else:
                path.unlink()
        self.reopen()

    @rule(
        topic=st.sampled_from(["A", "B", "C"]),
        key=st.sampled_from(["x", "y", "z", "a", "b", "a b", "y z", ""]),
        before=st.integers(0, 10),
        after=st.integers(0, 10),
        limit=st.sampled_from([1, 2, 5, 64]),
        unique=st.booleans(),
    )
    def query(
        self, topic: str, key: str, before: int, after: int, limit: int, unique: bool
    ) -> None:
        begin, end = NOW_MS - before, self.time - 5 + after
        if before == 10:
            begin, end = ALWAYS

        def ask() -> None:
            records = self.store.find_by_key(topic, key, begin, end, limit, unique=unique)
            positions = [RecordView(record, 0).commit_log_offset for record in records]
            assert positions == expected(self.store, topic, key, begin, end, limit, unique=unique)

        self.attempt(ask)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.disk.steps_left = None
            for key in ("x", "y", "z", "a"):
                self.query("A", key, 10, 0, 64, False)
            self.store.close()
            rmtree(self.path)
            key_index_stretch._WINDOW = self.window


TestIndexAgainstLog = IndexAgainstLog.TestCase
TestIndexAgainstLog.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
