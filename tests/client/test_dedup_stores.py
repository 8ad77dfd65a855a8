"""Stores of handled keys: the same rules in memory, in a file, and between processes."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from pocketmq import Claim, MemoryDedup, SqliteDedup
from pocketmq.client import dedup_stores
from pocketmq.errors import InvalidInput

Store: TypeAlias = MemoryDedup | SqliteDedup
Make: TypeAlias = Callable[..., Store]


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "memory":
        return MemoryDedup
    return lambda **settings: SqliteDedup(tmp_path / "handled.db", **settings)


def test_a_key_is_new_once_then_busy_then_done(make: Make) -> None:
    store = make()
    assert store.claim("a") is Claim.NEW
    assert store.claim("a") is Claim.BUSY
    assert store.claim("b") is Claim.NEW
    store.release("b")
    assert store.claim("b") is Claim.NEW
    store.done("a")
    assert store.claim("a") is Claim.DONE
    store.release("a")
    assert store.claim("a") is Claim.DONE


def test_a_key_is_kept_for_its_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        ahead = 0.0

        def monotonic(self) -> float:
            return 1000.0 + self.ahead

        def time(self) -> float:
            return 1_790_000_000.0 + self.ahead

    clock = Clock()
    monkeypatch.setattr(dedup_stores, "time", clock)
    store = make(keep=60.0)
    for key in ("a", "b"):
        store.claim(key)
        store.done(key)
    clock.ahead = 59.0
    assert store.claim("a") is Claim.DONE
    clock.ahead = 61.0
    assert store.claim("a") is Claim.NEW
    assert store.claim("a") is Claim.BUSY


def test_of_many_threads_one_gets_a_key(make: Make) -> None:
    store, claims, together = make(), list[Claim](), threading.Barrier(8)

    def claim() -> None:
        together.wait(20)
        claims.append(store.claim("a"))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims, key=lambda each: each.value) == [Claim.BUSY] * 7 + [Claim.NEW]


def test_memory_keeps_the_last_ones_and_what_is_busy() -> None:
    store = MemoryDedup(most=2)
    assert store.claim("busy") is Claim.NEW
    for key in "abc":
        store.claim(key)
        store.done(key)
    assert [store.claim(key) for key in ("a", "b", "c", "busy")] == [
        Claim.NEW, Claim.DONE, Claim.DONE, Claim.BUSY,
    ]  # fmt: skip


def test_a_file_is_shared_by_processes_and_outlives_them(tmp_path: Path) -> None:
    path = tmp_path / "handled.db"
    program = (
        "import sys; from pocketmq import SqliteDedup; store = SqliteDedup(sys.argv[1]);"
        "print(store.claim('theirs').name, store.claim('dead').name, store.claim('ours').name);"
        "store.done('theirs')"
    )
    ours = SqliteDedup(path, lease=0.05)
    assert ours.claim("ours") is Claim.NEW
    ours.done("ours")
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["NEW", "NEW", "DONE"]
    assert ours.claim("theirs") is Claim.DONE
    ours.release("dead")
    assert ours.claim("dead") is Claim.BUSY, "the claim of a process that died"
    ours.close()
    assert ours.claim("theirs") is Claim.DONE
    ours.close()


def test_a_claim_whose_process_died_ends_after_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later:
        def time(self) -> float:
            return time.time() + 1000.0

    dead, store = SqliteDedup(tmp_path / "h.db", lease=900.0), SqliteDedup(tmp_path / "h.db")
    assert dead.claim("a") is Claim.NEW
    monkeypatch.setattr(dedup_stores, "time", Later())
    assert store.claim("a") is Claim.NEW
    dead.release("a")
    assert store.claim("a") is Claim.BUSY, "the claim is no longer the first one's"


def test_what_was_kept_long_enough_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dedup_stores, "_PURGE_EVERY", 3)
    store = SqliteDedup(tmp_path / "h.db", keep=0.001)
    for key in "ab":
        store.done(key)
    deadline = time.time() + 0.002
    while time.time() < deadline:
        pass
    store.done("c")
    kept = store._open().execute("SELECT key FROM handled").fetchall()
    assert kept == [("c",)]


def test_values_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="most"):
        MemoryDedup(most=0)
    with pytest.raises(InvalidInput, match="keep"):
        MemoryDedup(keep=-1)
    with pytest.raises(InvalidInput, match="lease"):
        SqliteDedup(tmp_path / "h.db", lease=0)
