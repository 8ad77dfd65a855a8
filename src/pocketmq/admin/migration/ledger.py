"""The progress of a migration, in one SQLite file: queues, and where messages went.

Every step is a transaction, so that a process killed anywhere finds a consistent state; what was
sent but not recorded is found on the target. One process copies at a time; others may read
meanwhile.
"""

import sqlite3
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from pocketmq.admin.migration.offset_map import CopiedRange
from pocketmq.errors import MigrationFileUnusable
from pocketmq.host import lock_file
from pocketmq.model import MessageQueue

_FORMAT = 1
_PATIENCE = 10.0
"""The time to wait for another process that writes, in seconds."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """
    CREATE TABLE IF NOT EXISTS queue (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, broker TEXT NOT NULL, queue_id INTEGER NOT NULL,
    to_broker TEXT NOT NULL, to_queue_id INTEGER NOT NULL, next INTEGER, seen INTEGER NOT NULL,
    lost INTEGER NOT NULL DEFAULT 0, UNIQUE (topic, broker, queue_id))
    """,
    """
    CREATE TABLE IF NOT EXISTS stretch (
    queue INTEGER NOT NULL, first INTEGER NOT NULL, target INTEGER NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (queue, first)) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS delayed (key TEXT PRIMARY KEY, due_ms INTEGER NOT NULL) WITHOUT ROWID
    """,
)


class QueueState(msgspec.Struct, frozen=True):
    """A queue that is copied, and its progress."""

    id: int
    source: MessageQueue
    target: MessageQueue
    next: int | None
    """The next offset to copy; None if nothing was copied and the first one is unknown."""
    seen: int
    """The offset up to which the target's queue was scanned, or written by this migration."""
    lost: int
    """Messages that the source deleted before they were copied."""


class MigrationLedger:
    """The state file of one migration. Raises `MigrationFileUnusable` if it cannot be used."""

    def __init__(self, path: Path, source: str, target: str, *, create: bool) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None
        if not create and not path.exists():
            raise MigrationFileUnusable(str(path), "it does not exist; run `copy` first")
        try:
            self._base = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            raise MigrationFileUnusable(str(path), str(error)) from error
        try:
            facts = self._facts(source, target)
        except sqlite3.Error as error:
            self._base.close()
            raise MigrationFileUnusable(str(path), str(error)) from error
        self._check(facts, source, target)
        self.migration: str = facts["migration"]

    def _facts(self, source: str, target: str) -> dict[str, str]:
        """Return the facts of the file; a new one gets those of this migration."""
        base = self._base
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
        if tables and not {"fact", "stretch"} <= tables:
            return {}  # another program's database: nothing is written to it
        _write_ahead(base)
        base.execute("PRAGMA synchronous=NORMAL")
        first = {
            "format": str(_FORMAT),
            "migration": uuid.uuid4().hex[:8],
            "source": source,
            "target": target,
        }
        base.execute("BEGIN IMMEDIATE")
        with base:  # all tables at once: who looks meanwhile sees none
            for table in _TABLES:
                base.execute(table)
            if base.execute("SELECT 1 FROM fact").fetchone() is None:
                base.executemany("INSERT INTO fact VALUES (?, ?)", list(first.items()))
        return dict(base.execute("SELECT name, value FROM fact").fetchall())

    def _check(self, facts: dict[str, str], source: str, target: str) -> None:
        problem = None
        if not {"format", "migration", "source", "target"} <= set(facts):
            problem = "it is not the state file of a migration"
        elif facts["format"] != str(_FORMAT):
            problem = f"it has format {facts.get('format')}; this version reads {_FORMAT}"
        elif (facts["source"], facts["target"]) != (source, target):
            problem = (
                f"it belongs to a migration from {facts['source']} to {facts['target']}, "
                f"not from {source} to {target}; give another file with --state"
            )
        if problem is not None:
            self.close()
            raise MigrationFileUnusable(str(self.path), problem)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if isinstance(error, sqlite3.Error):  # a full disk, or a broken file
            raise MigrationFileUnusable(str(self.path), str(error)) from error

    def close(self) -> None:
        """Close the file and release the lock. Idempotent."""
        self._base.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def lock(self) -> None:
        """Take the lock of the copying process, until the file is closed or the process ends."""
        if self._lock is not None:
            return
        place = self.path.with_name(self.path.name + ".lock")
        try:
            lock = place.open("wb")
        except OSError as error:
            raise MigrationFileUnusable(str(self.path), str(error)) from error
        try:
            lock_file(lock.fileno())
        except OSError as error:
            lock.close()
            raise MigrationFileUnusable(
                str(self.path), "another `pocketmq migrate` is copying with it"
            ) from error
        self._lock = lock

    @property
    def made_topics(self) -> frozenset[str]:
        """The topics that this migration created on the target."""
        rows = self._base.execute("SELECT value FROM fact WHERE name LIKE 'made %'")
        return frozenset(str(value) for (value,) in rows)

    def note_topic(self, topic: str) -> None:
        """Record that this migration is about to create a topic on the target."""
        row = (f"made {topic}", topic)
        self._base.execute("INSERT OR IGNORE INTO fact VALUES (?, ?)", row)

    def adopt(self, migration: str) -> None:
        """Take over the copies of a migration whose file was lost."""
        self._base.execute("UPDATE fact SET value = ? WHERE name = 'migration'", (migration,))
        self.migration = migration

    # Queues

    def queues(self) -> list[QueueState]:
        """Return the queues that are copied."""
        rows = self._base.execute(
            "SELECT id, topic, broker, queue_id, to_broker, to_queue_id, next, seen, lost "
            "FROM queue ORDER BY topic, broker, queue_id"
        )
        return [
            QueueState(
                id=each[0],
                source=MessageQueue(each[1], each[2], each[3]),
                target=MessageQueue(each[1], each[4], each[5]),
                next=each[6],
                seen=each[7],
                lost=each[8],
            )
            for each in rows
        ]

    def add_queue(self, source: MessageQueue, target: MessageQueue) -> None:
        """Add a queue; one that is there stays as it is."""
        where = (source.topic, source.broker_name, source.queue_id)
        self._base.execute(
            "INSERT OR IGNORE INTO queue (topic, broker, queue_id, to_broker, to_queue_id, seen) "
            "VALUES (?, ?, ?, ?, ?, 0)",
            (*where, target.broker_name, target.queue_id),
        )

    def stretches(self, queue: int) -> list[CopiedRange]:
        """Return where the messages of a queue went, in order."""
        sql = "SELECT first, target, count FROM stretch WHERE queue = ? ORDER BY first"
        return [CopiedRange(*row) for row in self._base.execute(sql, (queue,))]

    def copied(self, queue: int) -> int:
        """Return the number of copied messages of a queue."""
        sql = "SELECT COALESCE(SUM(count), 0) FROM stretch WHERE queue = ?"
        (count,) = self._base.execute(sql, (queue,)).fetchone()
        assert isinstance(count, int)
        return count

    def record(self, queue: int, found: list[CopiedRange], next_offset: int, seen: int) -> None:
        """Record where messages went, joined to the last range if contiguous, and the progress."""
        base = self._base
        base.execute("BEGIN IMMEDIATE")
        with base:
            for each in found:
                before = self.last(queue)
                if before is not None and before.joins(each):
                    sql = "UPDATE stretch SET count = count + ? WHERE queue = ? AND first = ?"
                    base.execute(sql, (each.size, queue, before.first))
                else:
                    base.execute("INSERT INTO stretch VALUES (?, ?, ?, ?)", (queue, *each))
            sql = "UPDATE queue SET next = ?, seen = MAX(seen, ?) WHERE id = ?"
            base.execute(sql, (next_offset, seen, queue))

    def last(self, queue: int) -> CopiedRange | None:
        """Return the last copied range of a queue, None if there is none."""
        sql = "SELECT first, target, count FROM stretch WHERE queue = ? ORDER BY first DESC LIMIT 1"
        row = self._base.execute(sql, (queue,)).fetchone()
        return None if row is None else CopiedRange(*row)

    def skip(self, queue: int, next_offset: int, lost: int) -> None:
        """Record messages as lost that the source has deleted, and continue after them."""
        sql = "UPDATE queue SET next = ?, lost = lost + ? WHERE id = ?"
        self._base.execute(sql, (next_offset, lost, queue))

    # Delayed messages

    def moved_delayed(self, key: str) -> bool:
        """Return whether a message was moved while it was delayed."""
        found = self._base.execute("SELECT 1 FROM delayed WHERE key = ?", (key,)).fetchone()
        return found is not None

    def any_delayed(self) -> bool:
        """Return whether any message was moved while it was delayed."""
        return self._base.execute("SELECT 1 FROM delayed LIMIT 1").fetchone() is not None

    def note_delayed(self, key: str, due_ms: int) -> None:
        """Record that a message was moved while it was delayed."""
        self._base.execute("INSERT OR IGNORE INTO delayed VALUES (?, ?)", (key, due_ms))


def _write_ahead(base: sqlite3.Connection) -> None:
    """Turn on write-ahead logging; for this step SQLite does not wait for others by itself."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            base.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.005)
        else:
            return
