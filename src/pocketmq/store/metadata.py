"""Everything small and mutable, in one SQLite file: anyone can open it with `sqlite3`.

The broker's tables live in memory and are the truth while it runs; what must outlive it is written
here in batches, each one transaction that survives the end of the machine once it has returned.
Any thread may write, one after another; what is read on the owner's thread waits for no writer.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from pocketmq.errors import StoreCorrupt, StoreError, StoreFailed, StoreFull
from pocketmq.store.extents import ExtentRow

FORMAT = 1
APPLICATION = 0x504D_5131  # marks the file as ours, whatever its name
_SCHEMA = """
create table store (name text primary key, value integer not null) without rowid;
create table document (
  kind text not null, key text not null, value blob not null,
  primary key (kind, key)) without rowid;
create table consumer_offset (
  topic text not null, consumer_group text not null, queue_id integer not null,
  next_offset integer not null, primary key (topic, consumer_group, queue_id)) without rowid;
create table queue (
  number integer primary key, topic text not null, queue_id integer not null,
  min_offset integer not null, next_offset integer not null);
create index queue_by_topic on queue (topic);
create table extent (
  file integer not null, place integer not null, entries integer not null,
  queue integer not null, first integer not null, primary key (file, place)) without rowid;
create index extent_by_queue on extent (queue);
create table deleted_topic (topic text primary key, position integer not null) without rowid;
"""

LOG_FIRST = "log_first"
"""The number that says where the log begins; files before it were deleted by retention."""

_LOCKED_OUT = 0.25
"""Seconds to wait for another program that writes to our file: a whole broker may wait with us."""

OffsetRow = tuple[str, str, int, int]
"""Topic, group, queue id, next offset."""

QueueRow = tuple[int, str, int, int, int]
"""Number, topic, queue id, lowest offset, next offset."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The state of the store up to a log position, to be kept as one transaction."""

    position: int
    next_number: int
    index_end: int
    log_first: int = 0
    """The log begins here, by all that retention has deleted."""
    queues: list[QueueRow] = []
    gone_queues: list[int] = []
    extents: list[ExtentRow] = []


class Metadata:
    """The SQLite file of one broker, or the same in memory."""

    def __init__(self, path: Path | None, *, may_be_new: bool = True) -> None:
        """Open or make the file. Raises `StoreCorrupt` if it is new and may not be."""
        self._path = path
        # Two connections: reads are the owner's thread's and must not wait for a transaction of
        # the flusher's (WAL lets them see the last commit meanwhile). Both threads write, one
        # transaction at a time. In memory there is one database per connection, so one for both.
        self._lock = threading.Lock()
        self._connection = _connect(path)
        self._reader = self._connection
        try:
            _prepare(self._connection, may_be_new=may_be_new)
            if path is not None:
                self._reader = _connect(path)
        except (sqlite3.Error, StoreError) as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise _translated(error) from error
            raise

    # Single facts

    def number(self, name: str) -> int | None:
        """Return a number kept under a name."""
        rows: list[tuple[int]] = self._rows("select value from store where name = ?", name)
        return rows[0][0] if rows else None

    def set_number(self, name: str, value: int) -> None:
        """Keep a number under a name."""
        with self._transaction() as connection:
            connection.execute("insert or replace into store values (?, ?)", (name, value))

    # Documents: topics, groups and whatever else is one text under a name

    def documents(self, kind: str) -> list[tuple[str, bytes]]:
        """Return every document of a kind, with its key."""
        return self._rows("select key, value from document where kind = ?", kind)

    def save_documents(self, kind: str, changed: dict[str, bytes | None]) -> None:
        """Write or delete (None) documents of a kind, all or nothing."""
        written = [(kind, key, value) for key, value in changed.items() if value is not None]
        deleted = [(kind, key) for key, value in changed.items() if value is None]
        with self._transaction() as connection:
            connection.executemany("insert or replace into document values (?, ?, ?)", written)
            connection.executemany("delete from document where kind = ? and key = ?", deleted)

    # Consumer offsets

    def consumer_offsets(self) -> list[OffsetRow]:
        """Return every stored offset."""
        return self._rows(
            "select topic, consumer_group, queue_id, next_offset from consumer_offset"
        )

    def save_consumer_offsets(
        self, changed: Iterable[OffsetRow], gone: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Forget all offsets of some (topic, group) pairs, then write others, all or nothing."""
        with self._transaction() as connection:
            connection.executemany(
                "delete from consumer_offset where topic = ? and consumer_group = ?", gone
            )
            connection.executemany(
                "insert or replace into consumer_offset values (?, ?, ?, ?)", changed
            )

    # The store's own state

    def topics(self) -> list[str]:
        """Return the topics that had queues at the last checkpoint."""
        rows: list[tuple[str]] = self._rows("select distinct topic from queue")
        return [topic for (topic,) in rows]

    def queues_of(self, topic: str) -> list[QueueRow]:
        """Return a topic's queues as of the last checkpoint."""
        return self._rows("select * from queue where topic = ? order by queue_id", topic)

    def queue_ends(self) -> list[tuple[str, int, int]]:
        """Return topic, queue id and next offset of all queues as of the last checkpoint."""
        return self._rows("select topic, queue_id, next_offset from queue")

    def extents_of(self, queue: int) -> list[ExtentRow]:
        """Return a queue's extents as of the last checkpoint, oldest first; 0 for what is free."""
        return self._rows("select * from extent where queue = ? order by first", queue)

    def deleted_topics(self) -> dict[str, int]:
        """Return the topics whose deletion no checkpoint knows of, and how far the log was then."""
        rows: list[tuple[str, int]] = self._rows("select topic, position from deleted_topic")
        return dict(rows)

    def delete_topic(self, topic: str, position: int) -> None:
        """Note that a topic's queues and its records before a log position are gone."""
        if self._path is None:
            return
        with self._transaction() as connection:
            connection.execute(
                "insert or replace into deleted_topic values (?, ?)", (topic, position)
            )

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Move the checkpoint: position, queues and extents together."""
        if self._path is None:  # nothing of them will be asked for again
            return
        numbers = {
            "position": checkpoint.position,
            "next_number": checkpoint.next_number,
            "index_end": checkpoint.index_end,
            LOG_FIRST: checkpoint.log_first,
        }
        with self._transaction() as connection:
            run = connection.executemany
            run("insert or replace into store values (?, ?)", numbers.items())
            run("delete from queue where number = ?", [(n,) for n in checkpoint.gone_queues])
            run("insert or replace into queue values (?, ?, ?, ?, ?)", checkpoint.queues)
            run("insert or replace into extent values (?, ?, ?, ?, ?)", checkpoint.extents)
            # A checkpoint at the very position of a deletion may have been begun before it.
            run("delete from deleted_topic where position < ?", [(checkpoint.position,)])

    def begin_anew(
        self, position: int, queues: list[tuple[str, int, int]], deleted: dict[str, int]
    ) -> None:
        """Forget all indexes: the log is walked from a position on, into queues that begin there.

        `queues` are topics, queue ids and first offsets. Documents and offsets of groups stay.
        """
        numbers = {"position": position, "next_number": len(queues) + 1, "index_end": 0}
        numbers[LOG_FIRST] = position
        rows = [
            (number, topic, queue_id, first, first)
            for number, (topic, queue_id, first) in enumerate(queues, 1)
        ]
        with self._transaction() as connection:
            run = connection.executemany
            connection.execute("delete from queue")
            connection.execute("delete from extent")
            connection.execute("delete from deleted_topic")
            run("insert or replace into store values (?, ?)", numbers.items())
            run("insert into queue values (?, ?, ?, ?, ?)", rows)
            run("insert into deleted_topic values (?, ?)", deleted.items())

    def close(self) -> None:
        """Close the file; what was committed is in it."""
        with self._lock:
            self._reader.close()
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute("begin immediate")
                try:
                    yield self._connection
                    self._connection.execute("commit")
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("rollback")
            except sqlite3.Error as error:
                raise _translated(error) from error

    def _rows(self, query: str, *arguments: str | int) -> list[Any]:
        try:
            return self._reader.execute(query, arguments).fetchall()
        except sqlite3.Error as error:
            raise _translated(error) from error


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open the file; a new one is for its owner only, as users' passwords are in it.

    SQLite creates the files beside it with the same mode.
    """
    try:
        if path is not None and not path.exists():
            with suppress(OSError):  # reported by SQLite, which cannot open it either
                path.touch(0o600)
        return sqlite3.connect(
            path or ":memory:", _LOCKED_OUT, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _translated(error) from error


def _prepare(connection: sqlite3.Connection, *, may_be_new: bool) -> None:
    """Make the tables in a new file; refuse one that is not ours, or newer than this program."""

    def pragma(text: str) -> int:
        return int(connection.execute(f"pragma {text}").fetchone()[0])

    empty = connection.execute("select count(*) from sqlite_schema").fetchone() == (0,)
    if empty and not may_be_new:
        raise StoreCorrupt(
            "meta.sqlite is empty although commitlog holds messages: topics, groups, offsets and "
            "users were in it; put back a copy of it, or run `pocketmq store check --repair`"
        )
    if not empty and pragma("application_id") != APPLICATION:
        raise StoreCorrupt("meta.sqlite is not a PocketMQ store's; choose an empty directory")
    if not empty and pragma("user_version") > FORMAT:
        found = pragma("user_version")
        raise StoreCorrupt(
            f"the store was written by a newer PocketMQ (format {found}, this one reads {FORMAT})"
        )
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    if empty:
        with closing(connection.cursor()) as cursor:
            cursor.executescript(
                f"begin; pragma application_id = {APPLICATION};"
                f"pragma user_version = {FORMAT}; {_SCHEMA} commit;"
            )


def _translated(error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(0)
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}:
        return StoreCorrupt(f"meta.sqlite is damaged: {error}")
    return StoreFailed(f"meta.sqlite: {error}")
