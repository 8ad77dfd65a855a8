"""Figures over time in a file, so that charts have a past after a restart of the dashboard.

An SQLite file of pieces: some minutes of one figure, as two arrays. Its size is bounded: SQLite
refuses to grow it, and then the oldest pieces make place. A file that cannot be used is logged
and not used; the dashboard runs without. It blocks: `KeptFigures`, which belongs to a loop and
keeps the figures of one cluster in it every minute and at the end, calls it in a thread.
"""

import asyncio
import logging
import os
import sqlite3
import sys
import threading
import time
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import isnan, nan
from pathlib import Path

import msgspec

from pocketmq.dashboard.recording import KEPT, Points, Recorder

logger = logging.getLogger("pocketmq.dashboard")

LARGEST = 64 << 20
"""Bytes that the file may have."""
_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS pieces (
    cluster TEXT, kind TEXT, name TEXT, first REAL, last REAL, times BLOB, figures BLOB
);
CREATE INDEX IF NOT EXISTS pieces_by_time ON pieces (last);
"""
_ADD = "INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?)"
_MAKE_PLACE = "DELETE FROM pieces WHERE rowid IN (SELECT rowid FROM pieces ORDER BY last LIMIT ?)"
_FEW = 1000
_LONGEST = 1 << 20
"""Bytes of an array that is read; ours are far smaller."""


class Piece(msgspec.Struct, frozen=True):
    """Some points of a figure: of which cluster and kind, and its name."""

    cluster: str
    kind: str
    name: str
    points: Points


class HistoryFile:
    """The file. Raises nothing: after its first failure it does nothing more.

    The times of points are those of `recording`. What was not sampled has no points, and is drawn
    as not observed.
    """

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        self._path = path
        self._largest = largest
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._failed = False

    def load(self, now: float) -> list[Piece]:
        """Return what is kept, oldest first; delete what is too old."""
        try:
            with self._lock:
                database = self._open()
                database.execute("DELETE FROM pieces WHERE last < ?", (now - KEPT,))
                rows = database.execute("SELECT * FROM pieces ORDER BY first").fetchall()
            return [piece for row in rows if (piece := _read(row)) is not None]
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
            return []

    def save(self, pieces: Iterable[Piece], now: float) -> None:
        """Add pieces, and delete what is too old."""
        if self._failed:
            return
        rows = [_written(each) for each in pieces]
        try:
            with self._lock:
                database = self._open()
                with database:
                    database.execute("DELETE FROM pieces WHERE last < ?", (now - KEPT,))
                    self._insert(database, rows)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _insert(self, database: sqlite3.Connection, rows: list[tuple[object, ...]]) -> None:
        for row in rows:
            try:
                database.execute(_ADD, row)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                    raise
                database.execute(_MAKE_PLACE, (_FEW,))
                with suppress(sqlite3.OperationalError):  # else a point is missing
                    database.execute(_ADD, row)

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            database = sqlite3.connect(self._path, timeout=1.0, check_same_thread=False)
            try:
                _prepare(database, self._largest)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _give_up(self, error: Exception) -> None:
        self._failed = True
        logger.warning(
            "chart history is not stored: file=%s error=%s; charts are empty after a restart",
            self._path,
            error,
        )


def _prepare(database: sqlite3.Connection, largest: int) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in {0, _FORMAT}:
        raise sqlite3.DatabaseError(f"unknown format {version}")
    (page,) = database.execute("PRAGMA page_size").fetchone()
    database.execute(f"PRAGMA max_page_count = {largest // page}")
    database.execute(f"PRAGMA user_version = {_FORMAT}")
    database.executescript(_SCHEMA)


def _written(piece: Piece) -> tuple[object, ...]:
    times = array("d", (at for at, _ in piece.points))
    values = array("d", (nan if value is None else value for _, value in piece.points))
    if sys.byteorder == "big":
        times.byteswap()
        values.byteswap()
    ends = (times[0], times[-1])
    return piece.cluster, piece.kind, piece.name, *ends, times.tobytes(), values.tobytes()


def _read(row: tuple[object, ...]) -> Piece | None:
    """Return a piece; None if the row is not one of ours."""
    cluster, kind, name, _, _, *blobs = row
    arrays = []
    for blob in blobs:
        if not isinstance(blob, bytes) or len(blob) % 8 or len(blob) > _LONGEST:
            return None
        read = array("d", blob)
        if sys.byteorder == "big":
            read.byteswap()
        arrays.append(read)
    times, values = arrays
    if len(times) != len(values):
        return None
    points = [(at, None if isnan(v) else v) for at, v in zip(times, values, strict=True)]
    return Piece(str(cluster), str(kind), str(name), points)


EVERY = 60.0
"""Seconds between two writes: what a killed dashboard loses at most."""


class KeptFigures:
    """Recorders by kind, and the file that they are kept in. Belongs to one loop."""

    def __init__(self, file: HistoryFile, cluster: str, recorders: Mapping[str, Recorder]) -> None:
        self._file = file
        self._cluster = cluster
        self._recorders = recorders
        self._saved: dict[tuple[str, str], float] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load what was kept, and keep what comes."""
        for piece in await asyncio.to_thread(self._file.load, time.time()):
            recorder = self._recorders.get(piece.kind)
            if piece.cluster != self._cluster or recorder is None:
                continue
            for at, value in piece.points:
                recorder.add(at, {piece.name: value})
                self._saved[piece.kind, piece.name] = at
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Keep the last points. Harmless before `start`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            await self._save(newest=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._save(newest=False)

    async def _save(self, *, newest: bool) -> None:
        pieces = list(self._pieces(newest=newest))
        if pieces:
            await asyncio.to_thread(self._file.save, pieces, time.time())

    def _pieces(self, *, newest: bool) -> list[Piece]:
        """Return what is new; the newest point of a figure still moves, so it waits."""
        found = []
        for kind, recorder in self._recorders.items():
            for name in recorder.names:
                saved = self._saved.get((kind, name), 0.0)
                points = [each for each in recorder.since(name, saved) if each[0] > saved]
                points = points if newest else points[:-1]
                if points:
                    self._saved[kind, name] = points[-1][0]
                    found.append(Piece(self._cluster, kind, name, points))
        return found
