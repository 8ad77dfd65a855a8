"""Retention: which files of the commit log are deleted, and why.

The decision is a pure function over the files, the time and the disk; it never names the newest
file, which is being written to. Carrying it out is the store's. Everything that points into a file
(queues, key index) notices by itself that the log begins later; what consumers have stored about
their progress stays as it is: a reader below the new beginning is sent to it.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from time import localtime

import msgspec

from pocketmq.errors import InvalidInput, StoreError
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import FileSystem
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.options import StoreOptions
from pocketmq.store.segments import Segment

log = logging.getLogger("pocketmq.store")

FILES_AT_ONCE = 10
"""Files that go in one pass, so that a long list of them does not hold up everything else."""

ASKED_AT_ONCE = 200
"""The same when an operator asks: a Java broker then makes twenty passes of ten files."""


class Reason(Enum):
    """Why a file is deleted."""

    AGE = "older than the retention time, at the hour of cleaning"
    ASKED = "older than the retention time, cleaning was requested"
    LITTLE_SPACE = "older than the retention time, and the disk is filling up"
    NO_SPACE = "the disk is nearly full"
    SIZE = "the log exceeds its maximum size"


class LogFile(msgspec.Struct, frozen=True):
    """A file of the log, and when the last message was added to it (None if unknown)."""

    start: int
    size: int
    closed_ms: int | None


class Deletion(msgspec.Struct, frozen=True):
    """A file to delete."""

    start: int
    reason: Reason


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on, besides the files."""

    now_ms: int
    hour: int
    """The hour of the day where the broker is."""
    disk_used: float
    """The part of the disk that is in use, from 0 to 1."""
    asked: bool = False
    """Whether an operator requested it now, whatever the hour."""


def plan(files: Sequence[LogFile], options: StoreOptions, conditions: Conditions) -> list[Deletion]:
    """Return the files to delete now, from the oldest on.

    Age alone counts at certain hours of the day, or when asked, or while more than
    `disk_clean_ratio` of the disk is in use. Above `disk_force_ratio` one file goes whatever its
    age, if nothing else does: only a new measurement shows whether more must.
    """
    drops: list[Deletion] = []
    total = sum(file.size for file in files)
    for file in files[:-1][: at_once(conditions)]:
        if 0 < options.retention_bytes < total:
            drops.append(Deletion(file.start, Reason.SIZE))
        elif _is_old(file, options, conditions) and (reason := _occasion(options, conditions)):
            drops.append(Deletion(file.start, reason))
        else:
            break
        total -= file.size
    if not drops and len(files) > 1 and conditions.disk_used > options.disk_force_ratio:
        drops.append(Deletion(files[0].start, Reason.NO_SPACE))
    return drops


def at_once(conditions: Conditions) -> int:
    """Return how many files may go in one pass."""
    return ASKED_AT_ONCE if conditions.asked else FILES_AT_ONCE


def refuses_messages(options: StoreOptions, disk_used: float, *, refused: bool) -> bool:
    """Return whether there is too little space left to take messages.

    Once refused, they are taken again when no file has to go for the sake of space.
    """
    return disk_used > (options.disk_force_ratio if refused else options.disk_full_ratio)


def parse_hours(text: str) -> tuple[int, ...]:
    """Read RocketMQ's `deleteWhen`: hours of the day with semicolons between, e.g. `04;16`."""
    try:
        hours = tuple(int(part) for part in text.split(";"))
    except ValueError:
        hours = (-1,)
    if not all(0 <= hour < 24 for hour in hours):
        raise InvalidInput(f"{text!r} is not a list of hours of the day, such as 04 or 04;16")
    return hours


class LogFiles:
    """What a plan needs of the log's files; each is read once."""

    def __init__(self) -> None:
        self._closed: dict[int, int] = {}

    def list(self, segments: Sequence[Segment], look_at: int) -> list[LogFile]:
        """Return the files; the time they were closed is read for the `look_at` oldest."""
        kept = {segment.start for segment in segments}
        self._closed = {start: time for start, time in self._closed.items() if start in kept}
        files = []
        for number, segment in enumerate(segments):
            time = None
            if number < look_at and number + 1 < len(segments):
                time = self._closed_ms(segment, segments[number + 1])
            files.append(LogFile(segment.start, segment.end - segment.start, time))
        return files

    def _closed_ms(self, segment: Segment, following: Segment) -> int | None:
        """Return when the first message went into the next file."""
        if segment.start not in self._closed:
            first = next(iter(SegmentScan(following, following.start)), None)
            if first is None:
                return None
            self._closed[segment.start] = first[4]
        return self._closed[segment.start]


class Retention:
    """Cleans up a log. Belongs to the writer's thread."""

    def __init__(
        self, options: StoreOptions, disk: FileSystem, log: CommitLog, drop: Callable[[], bool]
    ) -> None:
        """`drop` deletes the oldest file, or returns False if it cannot be deleted yet."""
        self.options = options
        self._disk = disk
        self._log = log
        self._drop = drop
        self._files = LogFiles()
        self._refusing = False
        self._asked = False

    def clean(self, now_ms: int, *, asked: bool = False) -> list[Deletion]:
        """Delete file after file, measuring the disk in between; return what was deleted.

        Some cannot be deleted yet: what was asked for once is tried again until all are gone.
        """
        done: list[Deletion] = []
        self._asked = self._asked or asked
        while True:
            conditions = self._measure(now_ms, asked=self._asked)
            most = at_once(conditions) - len(done)
            drops = plan(self._files.list(list(self._log.segments), most), self.options, conditions)
            if not drops:
                self._asked = False
            if not drops[:most] or not self._carry_out(drops[:most], done):
                break
        self._refusing = refuses_messages(
            self.options, conditions.disk_used, refused=self._refusing
        )
        self._log.refuse(self._refusing)
        return done

    def _measure(self, now_ms: int, *, asked: bool) -> Conditions:
        return Conditions(
            now_ms=now_ms,
            hour=localtime(now_ms / 1000).tm_hour,
            disk_used=1 - self._disk.free_ratio(),
            asked=asked,
        )

    def _carry_out(self, drops: list[Deletion], done: list[Deletion]) -> bool:
        for drop in drops:
            try:
                if not self._drop():
                    return False
            except StoreError as error:
                log.warning("deleting commit log file %d failed: %s", drop.start, error)
                return False
            log.info("deleted commit log file %d: %s", drop.start, drop.reason.value)
            done.append(drop)
        return True


def _is_old(file: LogFile, options: StoreOptions, conditions: Conditions) -> bool:
    if file.closed_ms is None:
        return False
    return conditions.now_ms - file.closed_ms >= options.retention * 1000


def _occasion(options: StoreOptions, conditions: Conditions) -> Reason | None:
    """Return the reason to delete old files now, if there is one."""
    if conditions.asked:
        return Reason.ASKED
    if not options.delete_hours or conditions.hour in options.delete_hours:
        return Reason.AGE
    if conditions.disk_used > options.disk_clean_ratio:
        return Reason.LITTLE_SPACE
    return None
