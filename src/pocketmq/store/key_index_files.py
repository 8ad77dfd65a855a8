"""The files of the key index: made, sealed and removed on the flusher's thread, one after another.

Nothing here decides what belongs into the index; it stores runs, or reports that it cannot.
"""

import logging
from collections.abc import Callable

from pocketmq.errors import StoreError
from pocketmq.store.disk import FileSystem, StoredFile
from pocketmq.store.flusher import Outcome
from pocketmq.store.key_index_run import FOLDER, HEAD_BYTES, KeyRun, RunInfo, pack_head, read_run

log = logging.getLogger("pocketmq.store")

Submit = Callable[[Callable[[], None], Outcome], None]
"""Runs a job that waits for the device; see `Flusher.submit`."""

Made = Callable[[StoredFile | None], None]
"""Called on the owner's thread with the file, or with None if it could not be made."""


class RunFiles:
    """Run files of one store. Belongs to the writer's thread."""

    def __init__(self, disk: FileSystem, submit: Submit, modulus: int) -> None:
        self._disk = disk
        self._submit = submit
        self._modulus = modulus
        self.stopped = False  # nothing more that waits for the device may begin

    def load(self, first: int, end: int) -> list[KeyRun]:
        """Return the runs of an earlier time, in order, that cover different parts of the log.

        Others are removed: not sealed, damaged, made with another modulus, below what the log
        still keeps, merged into a larger one, or beyond the end that recovery found: what the log
        holds there now is not what they were made of.
        """
        found: list[KeyRun] = []
        for short_name in self._disk.sizes(FOLDER):
            name = f"{FOLDER}/{short_name}"
            run = self._read(name)
            if run is None:
                self.remove(name)
            else:
                found.append(run)
        kept: list[KeyRun] = []
        for run in sorted(found, key=lambda run: (run.info.start, -run.info.end)):
            info = run.info
            merged = kept and info.start < kept[-1].info.end
            if merged or info.end > end or info.end <= first:
                run.close()
                self.remove(info.name)
            else:
                kept.append(run)
        return kept

    def make(self, info: RunInfo, count: int, made: Made) -> None:
        """Create a file for `count` words, to be written and then sealed."""
        files: list[StoredFile] = []

        def job() -> None:
            files.append(self._disk.create(info.name, HEAD_BYTES + 8 * count))

        def outcome(error: Exception | None) -> None:
            if error is not None:
                log.warning('cannot create key index file: file=%s error="%s"', info.name, error)
            elif self.stopped:  # it stays unsealed, and goes at the next start
                files.pop().close()
            made(files[0] if files else None)

        self._begin(job, outcome)

    def seal(self, run: KeyRun, file: StoredFile, sealed: Made) -> None:
        """Bring a file that holds a run's words to the device, then declare it valid."""
        head = pack_head(run.info, self._modulus, len(run.words), run.crc)

        def job() -> None:
            file.sync()
            file.write(0, head)
            file.sync()

        def outcome(error: Exception | None) -> None:
            if error is None:
                file.rest()
                sealed(file)
                return
            log.warning('cannot write key index file: file=%s error="%s"', run.info.name, error)
            file.close()
            self.remove(run.info.name)
            sealed(None)

        self._begin(job, outcome)

    def save(self, run: KeyRun, saved: Made) -> None:
        """Make a file of a run that is in memory, and seal it."""

        def made(file: StoredFile | None) -> None:
            if file is None:
                saved(None)
                return
            try:
                file.write(HEAD_BYTES, run.packed)
            except OSError as error:
                log.warning('cannot write key index file: file=%s error="%s"', run.info.name, error)
                file.close()
                self.remove(run.info.name)
                saved(None)
                return
            self.seal(run, file, saved)

        self.make(run.info, len(run.words), made)

    def remove(self, name: str) -> None:
        """Delete a file; if that fails it is found again, and deleted, at the next start."""

        def outcome(error: Exception | None) -> None:
            if error is not None:
                log.warning("key index: %s cannot be deleted: %s", name, error)

        self._begin(lambda: self._disk.remove(name), outcome)

    def _begin(self, job: Callable[[], None], outcome: Outcome) -> None:
        if not self.stopped:
            self._submit(job, outcome)

    def _read(self, name: str) -> KeyRun | None:
        try:
            file = self._disk.open(name)
        except StoreError:  # e.g. empty: a crash while it was being made
            return None
        run = read_run(file, name, self._modulus)
        if run is None:
            file.close()
        return run
