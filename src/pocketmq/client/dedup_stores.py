"""Stores of keys that were handled: in memory, and in an SQLite file that processes share.

A key is claimed before its message is handled, and is done or free again afterwards. Independent of
messages and handlers.
"""

import os
import threading
import time
from collections import OrderedDict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pocketmq.client.checks import check_range, check_seconds

if TYPE_CHECKING:
    import sqlite3


class Claim(Enum):
    """What a store says to a claim."""

    NEW = "NEW"
    """The key is the caller's now."""
    BUSY = "BUSY"
    """Another call has claimed it and has not ended."""
    DONE = "DONE"
    """It was handled."""


class DedupStore(Protocol):
    """Where handled keys are kept. Threads share it."""

    blocks: bool
    """Whether its methods wait for a disk or a server: coroutine handlers call it in a thread."""

    def claim(self, key: str) -> Claim:
        """Claim a key, in one step for all who share the store."""

    def done(self, key: str) -> None:
        """Note that the message of a claimed key was handled."""

    def release(self, key: str) -> None:
        """Free a claimed key: its message was not handled."""


class MemoryDedup:
    """Keys of one process: the last `most`, each for `keep` seconds."""

    blocks = False

    def __init__(self, *, most: int = 100_000, keep: float = 3600.0) -> None:
        check_range("most", most, 1, 100_000_000)
        check_seconds("keep", keep, at_least=0.001)
        self._most = most
        self._keep = keep
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._done: OrderedDict[str, float] = OrderedDict()  # until when, the oldest first

    def claim(self, key: str) -> Claim:
        """Claim a key."""
        with self._lock:
            if self._done.get(key, 0.0) > time.monotonic():
                return Claim.DONE
            if key in self._busy:
                return Claim.BUSY
            self._busy.add(key)
            return Claim.NEW

    def done(self, key: str) -> None:
        """Note that a key was handled; the oldest are forgotten."""
        now = time.monotonic()
        with self._lock:
            self._busy.discard(key)
            self._done[key] = now + self._keep
            self._done.move_to_end(key)
            while len(self._done) > self._most or next(iter(self._done.values())) <= now:
                self._done.popitem(last=False)

    def release(self, key: str) -> None:
        """Free a key."""
        with self._lock:
            self._busy.discard(key)


_SCHEMA = """
CREATE TABLE IF NOT EXISTS handled (
    key TEXT PRIMARY KEY, done INTEGER NOT NULL, until REAL NOT NULL, owner TEXT NOT NULL
) WITHOUT ROWID
"""
_CLAIM = """
INSERT INTO handled VALUES (?, 0, ?, ?) ON CONFLICT (key) DO UPDATE
SET done = 0, until = excluded.until, owner = excluded.owner WHERE until <= ?
"""
_PURGE_EVERY = 1000


class SqliteDedup:
    """Keys in an SQLite file, which the processes of a machine may share; it outlives them.

    A handled key is kept for `keep` seconds. A claim whose process died ends after `lease` seconds,
    which must be longer than any handler takes.
    """

    blocks = True

    def __init__(
        self, path: str | Path, *, keep: float = 7 * 86_400.0, lease: float = 900.0
    ) -> None:
        check_seconds("keep", keep, at_least=0.001)
        check_seconds("lease", lease, at_least=0.001)
        self._path = Path(path)
        self._keep = keep
        self._lease = lease
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._process = 0
        self._owner = ""
        self._changes = 0

    def claim(self, key: str) -> Claim:
        """Claim a key, among all processes that share the file."""
        now = time.time()
        with self._lock:
            database = self._open()
            claimed = database.execute(_CLAIM, (key, now + self._lease, self._owner, now))
            if claimed.rowcount == 1:
                return Claim.NEW
            found = database.execute("SELECT done FROM handled WHERE key = ?", (key,)).fetchone()
            return Claim.DONE if found is not None and found[0] else Claim.BUSY

    def done(self, key: str) -> None:
        """Note that a key was handled; now and then, those that were kept long enough go."""
        now = time.time()
        with self._lock:
            database = self._open()
            database.execute(
                "INSERT OR REPLACE INTO handled VALUES (?, 1, ?, ?)",
                (key, now + self._keep, self._owner),
            )
            self._changes += 1
            if self._changes % _PURGE_EVERY == 0:
                database.execute("DELETE FROM handled WHERE until <= ?", (now,))

    def release(self, key: str) -> None:
        """Free a key, if the claim is still ours."""
        with self._lock:
            self._open().execute(
                "DELETE FROM handled WHERE key = ? AND done = 0 AND owner = ?", (key, self._owner)
            )

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._database is not None and self._process == os.getpid():
                self._database.close()
            self._database = None

    def _open(self) -> "sqlite3.Connection":
        """Return a connection of this process: one that was open before a fork must not be used."""
        if self._database is None or self._process != os.getpid():
            import sqlite3  # few consumers need it

            database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            database.execute("PRAGMA busy_timeout = 5000")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_SCHEMA)
            self._database, self._process = database, os.getpid()
            self._owner = f"{self._process} {os.urandom(8).hex()}"
        return self._database
