"""The ledger of exactly-once streams: which transactions of each micro-batch count.

A directory with a file for each decided micro-batch, `QUERY/BATCH.json`. Creating the file is the
decision, and succeeds once; a later attempt gets the decision that is there. A file is written and
synced under another name and then hard-linked, so that it is complete from the instant it exists: a
reader, or a driver restarted after a crash, never sees half a decision.

The file system must support hard links (local ones do, NFS does), be reachable for the driver of
every run of the query, and last as long as its checkpoint. Tasks on other machines need not see it.
"""

import os
import re
import time
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec

from pocketmq.errors import BatchDecided, LedgerUnusable

KEPT = 100
"""Decisions that are always kept, as many as Spark keeps of its own commits."""

_QUERY = re.compile(r"[0-9a-zA-Z-]{1,64}\Z")
_BATCH = re.compile(r"(\d{1,19})\.json\Z")
_LARGEST = 64 << 20


class BatchDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one micro-batch."""

    transactions: list[str]
    """Transactions whose half messages are committed; all others are rolled back."""
    doubtful: list[str] = []
    """Ids of their half messages that were sent again under another id: rolled back."""

    def commits(self, transaction: str, message_id: str) -> bool:
        """Return whether a half message becomes visible."""
        return transaction in self.transactions and message_id not in self.doubtful


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
        """Mark a batch whose ends were all acknowledged by the brokers: they will not check it."""
        path = self._file(query, batch).with_suffix(".ended")
        with suppress(OSError):  # then the decision is only kept longer than needed
            path.touch()

    def prune(self, query: str, retention: float) -> int:
        """Delete decisions that no broker will ask for, and return their number.

        Of acknowledged batches only the last `KEPT` are kept: a half message of such a batch that
        is still checked did not count, and is rolled back because a later batch is decided.
        Others are kept for `retention` seconds, too.
        """
        batches = sorted(self._batches(query))
        dropped = 0
        for batch in batches[:-KEPT]:
            path = self._file(query, batch)
            mark = path.with_suffix(".ended")
            with suppress(OSError):
                if mark.exists() or path.stat().st_mtime < time.time() - retention:
                    path.unlink()
                    mark.unlink(missing_ok=True)
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
