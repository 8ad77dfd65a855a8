"""Runs become larger ones, whatever happens meanwhile."""

from pathlib import Path

import pytest

from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record
from pocketmq.store.disk import Disk, DiskFile
from pocketmq.store.key_index import FAN
from pocketmq.store.key_index_run import KeyRun, RunInfo
from pocketmq.store.key_index_runs import choose
from pocketmq.store.no_disk import MemoryFile
from tests.store.faults import PowerFile
from tests.store.keyed import (
    ALWAYS,
    LaterFlusher,
    all_there,
    fill,
    found,
    open_store,
    run_files,
    text,
)
from tests.store.messages import NOW_MS, put


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


def make_run(start: int, end: int, *, merged: bool = False, in_file: bool = True) -> KeyRun:
    info = RunInfo(start=start, end=end, oldest_ms=0, newest_ms=0, time_ordered=True, merged=merged)
    return KeyRun(info, [], file=MemoryFile(64) if in_file else None)


REGION = 1 << 32
MERGING: list[tuple[str, list[KeyRun], list[int]]] = [
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
def test_runs_are_merged_that_lie_side_by_side(runs: list[KeyRun], starts: list[int]) -> None:
    assert [run.info.start for run in choose(runs, 3)] == starts


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
