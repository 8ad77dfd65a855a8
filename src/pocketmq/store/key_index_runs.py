"""The runs of a key index: kept in files, checked, merged, dropped.

Neighbouring runs are merged slice by slice, so that memory stays flat and no request waits. What
waits for the device happens on the flusher's thread; until a run is durable there, its words are
searched in memory. Nothing is lost if a file cannot be made: the log holds it all.
"""

import logging
from array import array
from bisect import bisect_right, insort
from collections.abc import Sequence
from operator import attrgetter
from typing import cast
from zlib import crc32

from pocketmq.store.disk import StoredFile
from pocketmq.store.key_index_files import RunFiles
from pocketmq.store.key_index_run import HEAD_BYTES, KeyRun, RunInfo, words_of

_SLICE = 2048  # words of each run that one step takes at most
log = logging.getLogger("pocketmq.store")
_start = attrgetter("info.start")


def choose(runs: Sequence[KeyRun], fan: int) -> list[KeyRun]:
    """Return runs to merge: neighbours, not merged before, in files and in one region.

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
    """One merge of runs: call `step` until it is done."""

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
        """Merge a further slice; return whether there are more."""
        assert self.file is not None
        # The lowest word just behind any run's next slice is the bound for all of them: that run
        # contributes its whole slice, and no run more than a slice.
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
        """Return the finished run."""
        assert self.file is not None
        return KeyRun(self.info, words_of(self.file), self._crc, self.file)


def _follow_in_time(infos: list[RunInfo]) -> bool:
    newest = infos[0].oldest_ms
    for info in infos:
        if not info.time_ordered or (info.newest_ms >= info.oldest_ms and info.oldest_ms < newest):
            return False
        newest = max(newest, info.newest_ms)
    return True


class Runs:
    """Runs that cover different parts of the log, in its order. Belongs to the writer's thread."""

    def __init__(self, files: RunFiles, fan: int, first: int, recovered_end: int) -> None:
        self.all = files.load(first, recovered_end)
        self._files = files
        self._fan = fan
        self._unchecked = list(self.all)
        self._unsaved: list[KeyRun] = []  # could not be written; tried again once another could
        self._merge: Merge | None = None
        self._may_merge = True

    def add(self, run: KeyRun) -> None:
        """Take a new run and put it into a file."""
        insort(self.all, run, key=_start)
        self._save(run)

    def drop_before(self, position: int) -> None:
        """Forget runs that end before or at a position."""
        while self.all and self.all[0].info.end <= position:
            self._drop(self.all[0])

    def tidy(self) -> tuple[bool, KeyRun | None]:
        """Do a little of what can wait: check runs of an earlier time, merge neighbours.

        Returns whether there is more to do right now, and a run that was found damaged: it is no
        longer here.
        """
        if self._files.stopped:
            return False, None
        if self._unchecked:
            return True, self._check(self._unchecked[-1])
        if self._merge is None:
            sources = choose(self.all, self._fan) if self._may_merge else []
            if sources:
                self._begin_merge(Merge(sources))
            return bool(sources), None
        if self._merge.file is None or self._merge.sealing:
            return False, None
        self._go_on(self._merge)
        return True, None

    def stop(self) -> None:
        """Begin nothing more that waits for the device; called before the flusher is closed."""
        self._files.stopped = True

    def close(self) -> None:
        """Let go of the files; called after the flusher was closed."""
        for run in self.all:
            run.close()
        if self._merge is not None and self._merge.file is not None:
            self._merge.file.close()

    def _save(self, run: KeyRun) -> None:
        def saved(file: StoredFile | None) -> None:
            if file is None:
                self._unsaved.append(run)
                return
            self._may_merge = True
            if run in self.all:
                run.settle(file)
            else:  # the log dropped its part meanwhile
                file.close()
                self._files.remove(run.info.name)
            if self._unsaved:  # there is space again
                self._save(self._unsaved.pop())

        self._files.save(run, saved)

    def _drop(self, run: KeyRun) -> None:
        """Take a run out of the index, with its file."""
        merge = self._merge
        if merge is not None and run in merge.sources and not merge.sealing:
            self._give_up(merge)
        self.all.remove(run)
        for waiting in (self._unchecked, self._unsaved):
            if run in waiting:
                waiting.remove(run)
        if run.file is not None:
            run.close()
            self._files.remove(run.info.name)

    def _check(self, run: KeyRun) -> KeyRun | None:
        sound = run.check_more()
        if sound is not None:
            self._unchecked.remove(run)
        if sound is not False:
            return None
        log.warning("key index file is damaged: file=%s; rebuilding it", run.info.name)
        self._drop(run)
        return run

    def _begin_merge(self, merge: Merge) -> None:
        self._merge = merge

        def made(file: StoredFile | None) -> None:
            merge.file = file
            if file is None or merge is not self._merge:
                self._give_up(merge)

        self._files.make(merge.info, merge.count, made)

    def _go_on(self, merge: Merge) -> None:
        try:
            more = merge.step()
        except OSError as error:
            log.warning('cannot write key index file: file=%s error="%s"', merge.info.name, error)
            self._give_up(merge)
            return
        if not more:
            self._end_merge(merge)

    def _end_merge(self, merge: Merge) -> None:
        run = merge.run()
        assert run.file is not None
        merge.sealing = True

        def sealed(file: StoredFile | None) -> None:
            self._merge = None
            if file is None:
                self._may_merge = False
                return
            for source in merge.sources:
                if source in self.all:
                    self._drop(source)
            insort(self.all, run, key=_start)

        self._files.seal(run, run.file, sealed)

    def _give_up(self, merge: Merge) -> None:
        """Leave a merge; after a failure the next one waits until some other file could be made."""
        if merge is self._merge:
            self._merge = None
            self._may_merge = merge.file is not None
        if merge.file is not None:
            merge.file.close()
            self._files.remove(merge.info.name)
