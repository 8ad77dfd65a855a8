"""Keeps the figures of one cluster in a file, every minute and at the end."""

import asyncio
import time
from collections.abc import Mapping

from pocketmq.dashboard.history_file import HistoryFile, Piece
from pocketmq.dashboard.recording import Recorder

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
