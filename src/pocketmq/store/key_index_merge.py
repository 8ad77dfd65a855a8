"""Merging neighbouring runs into one, slice by slice: memory stays flat, and nobody waits."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import cast
from zlib import crc32

from pocketmq.store.disk import StoredFile
from pocketmq.store.key_index_run import HEAD_BYTES, KeyRun, RunInfo, words_of

_SLICE = 2048  # words of each run that one step takes at most


def choose(runs: Sequence[KeyRun], fan: int) -> list[KeyRun]:
    """Give runs that should become one: neighbours, not merged before, in files and in one region.

    There are `fan` of them; fewer are enough if the next one lies in another region, since they
    would stay alone then.
    """
    group: list[KeyRun] = []
    for run in runs:
        info = run.info
        if info.merged or run.file is None:
            group = []
            continue
        if group and info.start != group[-1].info.end:
            group = []
        elif group and info.region != group[0].info.region:
            if len(group) > 1:
                return group
            group = []
        group.append(run)
        if len(group) == fan:
            return group
    return []


class Merge:
    """One merge under way: `step` until it is done."""

    def __init__(self, sources: list[KeyRun]) -> None:
        infos = [run.info for run in sources]
        self.sources = sources
        self.count = sum(len(run.words) for run in sources)
        self.info = RunInfo(
            start=infos[0].start,
            end=infos[-1].end,
            oldest_ms=min(info.oldest_ms for info in infos),
            newest_ms=max(info.newest_ms for info in infos),
            time_ordered=_follow_in_time(infos),
            merged=True,
        )
        self.file: StoredFile | None = None  # made on the flusher's thread, then set here
        self.sealing = False
        self._at = [0] * len(sources)
        self._written = HEAD_BYTES
        self._crc = 0

    def step(self) -> bool:
        """Merge a further slice; tell whether there are more."""
        assert self.file is not None
        # The lowest word that some run has just behind its next slice bounds what all may give:
        # then that run gives its whole slice, and nobody more.
        ahead = [
            run.words[at + _SLICE]
            for run, at in zip(self.sources, self._at, strict=True)
            if at + _SLICE < len(run.words)
        ]
        bound = min(ahead, default=None)
        taken: list[float] = []
        for number, run in enumerate(self.sources):
            start, words = self._at[number], cast("memoryview[float]", run.words)
            stop = len(words)
            if bound is not None:
                stop = bisect_right(words, bound, start, min(start + _SLICE, stop))
            taken += words[start:stop].tolist()
            self._at[number] = stop
        taken.sort()  # of sorted pieces: a merge
        raw = array("d", taken).tobytes()
        self.file.write(self._written, raw)
        self._crc = crc32(raw, self._crc)
        self._written += len(raw)
        return bound is not None

    def run(self) -> KeyRun:
        """Give the finished run."""
        assert self.file is not None
        return KeyRun(self.info, words_of(self.file), self._crc, self.file)


def _follow_in_time(infos: list[RunInfo]) -> bool:
    newest = infos[0].oldest_ms
    for info in infos:
        if not info.time_ordered or (info.newest_ms >= info.oldest_ms and info.oldest_ms < newest):
            return False
        newest = max(newest, info.newest_ms)
    return True
