"""The ledger of exactly-once streams: which staged chunks of each micro-batch count.

A directory with a file for each decided micro-batch, `QUERY/BATCH.json`. Creating the file is the
decision, and succeeds once; a later attempt gets the decision that is there. A file is written and
synced under another name and then hard-linked, so that it is complete from the instant it exists: a
reader, or a driver restarted after a crash, never sees half a decision.

A lock, `QUERY/lock`, is held by the process that carries out a decision; the operating system
releases it when the process ends.

The file system must support hard links (local ones do, NFS does), be reachable for the driver of
every run of the query, and last as long as its checkpoint. Tasks on other machines need not see it.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from pocketmq.errors import BatchDecided, LedgerUnusable
from pocketmq.host import lock_file

KEPT = 100
"""Decisions that are kept, as many as Spark keeps of its own commits."""

_QUERY = re.compile(r"[0-9a-zA-Z-]{1,64}\Z")
_BATCH = re.compile(r"(\d{1,19})\.json\Z")
_LARGEST = 256 << 20
PAUSE = 0.05
"""Seconds between two attempts to get the lock."""


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one task, encoded as a batch, in a message of the staging topic."""

    broker: str
    queue_id: int
    offset: int
    message_id: str
    topic: str
    """The target's topic."""
    target: tuple[str, int] | None = None
    """Broker and number of the target queue; None is for any, until the decision."""


class QueueStart(msgspec.Struct, frozen=True, array_like=True):
    """The end of a target queue before the decision: no row of the batch is stored before it."""

    topic: str
    broker: str
    queue_id: int
    offset: int


class BatchDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one micro-batch."""

    staging: str
    """The topic of the chunks."""
    chunks: list[Chunk]
    """What is moved to the target, in this order; all other chunks never are."""
    starts: list[QueueStart]


class CommitLedger:
    """The decisions in one directory. Processes may use it concurrently."""

    def __init__(self, path: str) -> None:
        self._root = Path(path)

    def get(self, query: str, batch: int) -> BatchDecision | None:
        """Return the decision; None if there is none, or if it was pruned.

        Raises `LedgerUnusable`.
        """
        path = self._file(query, batch)
        try:
            with path.open("rb") as file:
                raw = file.read(_LARGEST)
            return msgspec.json.decode(raw, type=BatchDecision)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise LedgerUnusable(str(path), str(error)) from error

    def decide(self, query: str, batch: int, decision: BatchDecision) -> tuple[BatchDecision, bool]:
        """Record a decision unless there is one; return the one that holds, and whether it is new.

        It is on disk when this returns. Raises `BatchDecided` if a later batch is decided already,
        and `LedgerUnusable`.
        """
        known = self.get(query, batch)
        if known is not None:
            return known, False
        last = self.last(query)
        if last > batch:
            raise BatchDecided(query, batch, last)
        path = self._file(query, batch)
        draft = path.with_name(f".{uuid.uuid4()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with draft.open("xb") as file:
                    file.write(msgspec.json.encode(decision))
                    file.flush()
                    os.fsync(file.fileno())
                path.hardlink_to(draft)
                mine = True
            except FileExistsError:
                mine = False
            finally:
                draft.unlink(missing_ok=True)
            _sync(path.parent)
        except OSError as error:
            raise LedgerUnusable(str(path), str(error)) from error
        holds = self.get(query, batch)
        if holds is None:
            raise LedgerUnusable(str(path), "the decision just written cannot be read back")
        return holds, mine

    def last(self, query: str) -> int:
        """Return the last decided batch; -1 if there is none."""
        return max(self._batches(query), default=-1)

    def ended(self, query: str, batch: int) -> None:
        """Mark a batch as complete: brokers have acknowledged all its rows."""
        path = self._file(query, batch).with_suffix(".ended")
        with suppress(OSError):  # then a repeated batch is compared with the target instead
            path.touch()

    def has_ended(self, query: str, batch: int) -> bool:
        """Return whether a batch is marked as complete."""
        return self._file(query, batch).with_suffix(".ended").exists()

    @contextmanager
    def locked(self, query: str, patience: float) -> Iterator[None]:
        """Hold the lock of a query, so that one process at a time carries out decisions.

        Raises `LedgerUnusable` if another process holds it for `patience` seconds.
        """
        path = self._directory(query) / "lock"
        deadline = time.monotonic() + patience
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("ab")
        except OSError as error:
            raise LedgerUnusable(str(path), str(error)) from error
        with file:
            while True:
                try:
                    lock_file(file.fileno())
                    break
                except BlockingIOError as error:
                    if time.monotonic() > deadline:
                        reason = (
                            f"another process has held the lock for {patience:g} s; "
                            "check that the query is not running twice"
                        )
                        raise LedgerUnusable(str(path), reason) from error
                except OSError as error:
                    raise LedgerUnusable(str(path), f"it cannot be locked: {error}") from error
                time.sleep(PAUSE)
            yield

    def prune(self, query: str) -> int:
        """Delete all but the last `KEPT` decisions, and return the number of deleted ones.

        Spark repeats none but the last micro-batch.
        """
        dropped = 0
        for batch in sorted(self._batches(query))[:-KEPT]:
            path = self._file(query, batch)
            with suppress(OSError):
                path.unlink()
                path.with_suffix(".ended").unlink(missing_ok=True)
                dropped += 1
        return dropped

    def _batches(self, query: str) -> list[int]:
        try:
            found = [_BATCH.match(path.name) for path in self._directory(query).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise LedgerUnusable(str(self._directory(query)), str(error)) from error
        return [int(each[1]) for each in found if each]

    def _directory(self, query: str) -> Path:
        if not _QUERY.match(query):
            raise LedgerUnusable(str(self._root), f"{query[:100]!r} is not a query id")
        return self._root / query

    def _file(self, query: str, batch: int) -> Path:
        return self._directory(query) / f"{batch}.json"


def _sync(directory: Path) -> None:
    """Sync a directory, so that a new link survives a power failure; not all file systems can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
