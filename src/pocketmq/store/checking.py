"""Verifying and explaining a store while no broker has it. Nothing in it is changed.

Every record of the log is read and held against its queue, every entry of a queue against the log,
every file of the key index against its checksum, and the metadata against all of them.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pocketmq.errors import InvalidInput, StoreError, StoreInUse
from pocketmq.host import lock_file
from pocketmq.protocol import RecordView
from pocketmq.store.check_metadata import SeenMetadata, read_metadata
from pocketmq.store.check_queues import QueueCheck
from pocketmq.store.check_values import NO_FORMATS, CheckReport, Findings, Severity, StoredFormats
from pocketmq.store.directory import METADATA
from pocketmq.store.disk import OWNER_ONLY, Disk, store_error
from pocketmq.store.key_index_run import FOLDER, read_run
from pocketmq.store.log_scan import SegmentScan, Sound
from pocketmq.store.metadata import LOG_FIRST
from pocketmq.store.segments import Segment, never_used

LOG = "commitlog"
_TOLD = 1000
"""Records after which progress is reported."""
CheckProgress = Callable[[int, int], object]


def ignore_progress(done: int, whole: int) -> None:
    """Report to no one."""


def find_stores(path: Path) -> list[Path]:
    """Return the stores in a directory: itself, or those of a cluster's brokers below it.

    Raises `InvalidInput` if there is none.
    """
    if not path.is_dir():
        raise InvalidInput(f"{path} is not a directory")
    if (path / METADATA).exists() or (path / LOG).is_dir():
        return [path]
    below = [child for child in sorted(path.iterdir()) if (child / LOG).is_dir()]
    if not below:
        raise InvalidInput(f"{path} holds no store: there is neither {METADATA} nor {LOG}")
    return below


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep brokers out of a store; raises `StoreInUse` if one is in it."""
    try:
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    except OSError as error:
        raise store_error(error, 0) from error
    try:
        lock_file(lock)
        yield
    except BlockingIOError as error:
        raise StoreInUse(str(path)) from error
    finally:
        os.close(lock)


def check_store(
    path: Path, formats: StoredFormats = NO_FORMATS, progress: CheckProgress = ignore_progress
) -> CheckReport:
    """Check all of a store. Raises `StoreInUse`, `StoreFailed` if files cannot be read.

    `formats` say how to read what the store only keeps for the broker. `progress` is called with
    the bytes of the log that were checked, and with all.
    """
    with locked(path):
        return _Check(path, formats, progress).run()


class LogReader:
    """The records of a log in order, and what lies between them."""

    def __init__(self, disk: Disk) -> None:
        self.segments = list(_segments(disk))
        self.first = self.segments[0].start if self.segments else 0
        self.tail = self.first  # behind the last sound record
        self.damage: list[tuple[int, int]] = []
        self.records = 0
        self.oldest_ms = self.newest_ms = 0
        self._segment: Segment | None = None

    @property
    def end(self) -> int:
        """The position behind the last file."""
        return self.segments[-1].end if self.segments else 0

    def holes(self) -> list[tuple[int, int]]:
        """Return the bytes between files that are missing."""
        pairs = zip(self.segments, self.segments[1:], strict=False)
        return [(one.end, other.start) for one, other in pairs if one.end != other.start]

    def read(self) -> Iterator[Sound]:
        """Return every sound record."""
        for segment in self.segments:
            self._segment = segment
            self.tail = max(self.tail, segment.start)
            scan = SegmentScan(segment, segment.start)
            for record in scan:
                self._reach(record[0])
                self.tail = record[0] + record[1]
                self.records += 1
                self.newest_ms = max(self.newest_ms, record[4])
                self.oldest_ms = min(self.oldest_ms or record[4], record[4])
                yield record
            if scan.blank_at is not None:
                self._reach(scan.blank_at)
                self.tail = segment.end
            segment.forget()  # a log may have more files than a process may open

    def view(self, record: Sound) -> RecordView:
        """Return the fields of a record that was just read."""
        segment = self._segment
        assert segment is not None
        return RecordView(segment.view, record[0] - segment.start)

    def _reach(self, position: int) -> None:
        if position > self.tail:
            self.damage.append((self.tail, position))

    def close(self) -> None:
        """Let go of the files."""
        for segment in self.segments:
            segment.close()

    def summary(self) -> str:
        """Return a one-line summary."""
        size = sum(segment.end - segment.start for segment in self.segments)
        when = ""
        if self.records:
            when = f", stored from {_shown(self.oldest_ms)} to {_shown(self.newest_ms)}"
        return f"{len(self.segments)} files of {size} bytes, {self.records} records{when}"


def _segments(disk: Disk) -> Iterator[Segment]:
    for name, size in disk.sizes(LOG).items():
        path = f"{LOG}/{name}"
        is_segment = name.isascii() and name.isdigit() and len(name) == 20
        if is_segment and not never_used(disk, path, size):
            yield Segment(disk, path, int(name), int(name) + size)


class _Check:
    def __init__(self, path: Path, formats: StoredFormats, progress: CheckProgress) -> None:
        self._path = path
        self._progress = progress
        self._formats = formats
        self._disk = Disk(path)
        self._findings = Findings()
        self._figures: dict[str, str] = {}

    def run(self) -> CheckReport:
        seen = read_metadata(self._path / METADATA, self._findings, self._formats)
        reader = LogReader(self._disk)
        try:
            self._check_log(reader, seen)
        finally:
            reader.close()
        if seen is not None:
            self._figures = {"metadata": seen.summary()} | self._figures
            self._check_keys(seen, reader)
        return CheckReport(str(self._path), self._figures, self._findings.finished())

    def _check_log(self, reader: LogReader, seen: SeenMetadata | None) -> None:
        findings = self._findings
        for start, end in reader.holes():
            findings.error("log", f"bytes {start} to {end} are missing: a file is gone")
        queues = None
        if seen is not None:
            known = seen.numbers.get(LOG_FIRST, reader.first)
            if known < reader.first <= seen.position:
                text = f"bytes {known} to {reader.first} are missing: the first files are gone"
                findings.error("log", f"{text}, and retention has not deleted them")
            queues = QueueCheck(seen, self._path / "index", findings, self._formats)
            if not reader.first <= seen.position <= reader.end:
                findings.error(
                    "log",
                    f"files hold bytes {reader.first} to {reader.end}, but a checkpoint was made "
                    f"at {seen.position}: files are missing",
                )
        first, whole = reader.first, reader.end - reader.first
        for count, record in enumerate(reader.read(), 1):
            if queues is not None:
                queues.see(record, reader.view(record))
            if count % _TOLD == 0:
                self._progress(record[0] - first, whole)
        for start, end in reader.damage:
            self._report_damage(seen, start, end, "although sound ones follow")
        self._figures["log"] = reader.summary()
        if queues is not None and seen is not None:
            queues.finish(reader.first)
            self._figures["queues"] = queues.summary()
            self._explain(reader, queues, seen)

    def _report_damage(self, seen: SeenMetadata | None, start: int, end: int, how: str) -> None:
        """Report damage; what a repair has found before is a warning, there is nothing to do."""
        if seen is not None and seen.repair is not None and seen.repair.knows(start, end):
            text = f"bytes {start} to {end} are known to hold no sound record since a repair"
            self._findings.add(Severity.WARNING, "log", text, kind="known damage")
        else:
            text = f"bytes {start} to {end} hold no sound record {how}"
            self._findings.error("log", text, kind="damage")

    def _explain(self, reader: LogReader, queues: QueueCheck, seen: SeenMetadata) -> None:
        findings = self._findings
        if reader.tail < queues.checkpoint <= reader.end:
            self._report_damage(seen, reader.tail, queues.checkpoint, "any more")
        if queues.waiting:
            text = f"{queues.waiting} records came after the last checkpoint"
            findings.add(Severity.NOTE, "log", f"{text}; the next start puts them in their queues")
        if queues.dead:
            text = f"{queues.dead} records are of topics that were deleted"
            findings.add(Severity.NOTE, "log", f"{text}; they go with their files")
        if reader.segments:
            last = reader.segments[-1]
            at = max(reader.tail - last.start, 0)
            if last.file.data_end(at) > at:
                text = f"behind byte {reader.tail} lies a write that was not finished"
                findings.add(Severity.NOTE, "log", f"{text}; the next start cuts it off")

    def _check_keys(self, seen: SeenMetadata, reader: LogReader) -> None:
        modulus = seen.numbers.get("key_modulus", 0)
        covered = count = 0
        for short_name in self._disk.sizes(FOLDER):
            name = f"{FOLDER}/{short_name}"
            end = self._check_run(name, modulus)
            if end is None:
                text = f"{name} is damaged or unfinished; it is made again from the log"
                self._findings.add(Severity.WARNING, "key index", text, kind="damaged runs")
            else:
                count, covered = count + 1, max(covered, end)
        rest = max(reader.tail - max(covered, reader.first), 0)
        self._figures["key index"] = f"{count} runs, {rest} bytes of the log are not in it yet"

    def _check_run(self, name: str, modulus: int) -> int | None:
        try:
            file = self._disk.open(name)
        except StoreError:
            return None
        run = read_run(file, name, modulus)
        if run is None:
            file.close()
            return None
        while (sound := run.check_more()) is None:
            pass
        end = run.info.end
        run.close()
        return end if sound else None


def _shown(time_ms: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(time_ms / 1000))
    except (OverflowError, ValueError, OSError):  # a flipped bit made it a time that never was
        return f"{time_ms} ms"
