"""The key index in its files: used again, made again, dropped with the log, never believed blindly."""

import os
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record, pack_record
from pocketmq.store import Flusher, MessageStore
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import Disk
from pocketmq.store.key_index import FAN, KeyIndex, KeyQuery
from tests.store.faults import FullDisk, PowerDisk, SteppedFlusher, abandon
from tests.store.keyed import (
    MODULUS,
    all_there,
    fill,
    found,
    open_store,
    run_files,
    text,
)
from tests.store.messages import NOW_MS, put


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


def test_a_run_is_saved_only_after_the_part_of_the_log_it_was_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.store.key_index.RUN_RECORDS", 20)
    flusher = SteppedFlusher()
    store = MessageStore.open(tmp_path, disk=PowerDisk(tmp_path), flusher=flusher)
    fill(store, 100)
    store.keys.catch_up()
    while not (tmp_path / "keys").exists():
        assert flusher.step(), "no run was saved"
    assert store.synced == store.log.tail
    abandon(store)
