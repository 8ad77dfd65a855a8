"""Walking a stretch of the commit log and collecting the words of its records."""

from pocketmq.errors import MessageMalformed
from pocketmq.protocol import RecordView
from pocketmq.protocol.record_scan import scan_records
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.key_index_run import REGION_BITS, KeyRun, RunInfo
from pocketmq.store.key_index_words import KeyHash, KeyWords, is_rolled_back
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.segments import Segment

_WINDOW = 1 << 17  # bytes taken at once: about half a millisecond's work with small messages
_SINGLE = 256  # records taken one by one before trying many at once again


class LogStretch(KeyWords):
    """A part of the log that is being indexed: up to `stop`, or for None as far as it will grow."""

    __slots__ = ("_sorted", "position", "start", "stop")

    def __init__(self, key_hash: KeyHash, start: int, stop: int | None = None) -> None:
        super().__init__(key_hash)
        self.start = self.position = start
        self.stop = stop
        self._sorted = 0

    @property
    def left_region(self) -> bool:
        """Whether what comes next must go into another run."""
        return self.position >> REGION_BITS != self.start >> REGION_BITS

    def advance(self, log: CommitLog) -> bool:
        """Take in a little more; return whether there was anything."""
        stop = log.written if self.stop is None else self.stop
        segment = log.segments.at(self.position) if self.position < stop else None
        if segment is None:
            return False
        region_end = (self.start >> REGION_BITS) + 1 << REGION_BITS
        end = min(self.position + _WINDOW, segment.end, stop, region_end) - segment.start
        data = bytes(segment.view[self.position - segment.start : end])
        taken = self.take_many(data, self.position)
        if taken:
            self.position += taken
        else:
            self._take_singly(segment, min(segment.end, stop), region_end)
        return True

    def as_run(self) -> KeyRun:
        """Return what has been collected so far, to be searched before anything is added."""
        if self._sorted < len(self.words):
            self.words.sort()
            self._sorted = len(self.words)
        info = RunInfo(
            start=self.start,
            end=self.position,
            oldest_ms=self.oldest_ms,
            newest_ms=self.newest_ms,
            time_ordered=self.time_ordered,
        )
        return KeyRun(info, self.words)

    def _take_singly(self, segment: Segment, stop: int, region_end: int) -> None:
        """Index records of any form and size; skip a blank, or damage."""
        view, base = segment.view, segment.start
        for _ in range(_SINGLE):
            if self.position >= min(stop, region_end):
                return
            record = RecordView(view, self.position - base)
            try:
                found = next(scan_records(view, record.position, stop - base), None)
            except MessageMalformed:
                self._pass_damage(segment, stop)
                return
            if found is None:  # the unused rest of the file
                self.position = stop
                return
            if record.commit_log_offset != self.position:
                self._pass_damage(segment, stop)
                return
            if not is_rolled_back(record.sys_flag):
                self.take(
                    self.position,
                    record.topic_bytes,
                    record.property_bytes,
                    record.store_timestamp_ms,
                )
            self.position += found[1]

    def _pass_damage(self, segment: Segment, stop: int) -> None:
        """Continue at the next sound record, or at the end."""
        beyond = (found[0] for found in SegmentScan(segment, self.position))
        self.position = next((place for place in beyond if place > self.position), stop)
