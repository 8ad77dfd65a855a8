"""The ledger of exactly-once streams: which transactions of each micro-batch count.

A directory with a file for each decided micro-batch, `QUERY/BATCH.json`. To create the file is to
decide, and that works once: whoever comes later gets what stands there. Whatever file system keeps
it must know hard links (all local ones do, and NFS), be there for the driver of every run of the
query, and last as long as its checkpoint. Tasks on other machines need not see it.
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
"""Decisions that are kept in any case, as many as Spark keeps of its own."""

_QUERY = re.compile(r"[0-9a-zA-Z-]{1,64}\Z")
_BATCH = re.compile(r"(\d{1,19})\.json\Z")
_LARGEST = 64 << 20


class BatchDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one micro-batch."""

    transactions: list[str]
    """Those whose half messages are committed; all others are rolled back."""
    doubtful: list[str] = []
    """Ids of half messages of theirs that were sent again under another id: rolled back."""

    def commits(self, transaction: str, message_id: str) -> bool:
        """Tell whether a half message becomes visible."""
        return transaction in self.transactions and message_id not in self.doubtful


class CommitLedger:
    """The decisions in one directory. Any process may use it at the same time."""

    def __init__(self, path: str) -> None:
        self._root = Path(path)

    def get(self, query: str, batch: int) -> BatchDecision | None:
        """Give what was decided; None if nothing is, or if it was long ago.

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
        """Decide unless that is done; gives what holds, and whether it was decided just now.

        It is on the disk then. Raises `BatchDecided` after a later batch, and `LedgerUnusable`.
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
            raise LedgerUnusable(str(path), "what was written is not there")
        return holds, mine

    def last(self, query: str) -> int:
        """Give the last batch that was decided; -1 if none was."""
        return max(self._batches(query), default=-1)

    def ended(self, query: str, batch: int) -> None:
        """Take note that brokers have acknowledged all ends of a batch: they will not ask."""
        path = self._file(query, batch).with_suffix(".ended")
        with suppress(OSError):  # the decision is kept longer than it need be, then
            path.touch()

    def prune(self, query: str, retention: float) -> int:
        """Drop decisions nobody will ask for, and tell how many.

        Of those that were acknowledged only the last are kept: a half message of such a batch that
        is still asked about did not count. Others are kept for `retention` seconds, too.
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
            raise LedgerUnusable(str(self._root), f"{query[:100]!r} is no query")
        return self._root / query

    def _file(self, query: str, batch: int) -> Path:
        return self._directory(query) / f"{batch}.json"


def _sync(directory: Path) -> None:
    """Have the file system keep what was linked; not all can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
