"""The queues of a stream: where they start, where they end by now, which were recreated.

Queues that the checkpoint has must be there: they are waited for, and their absence is never taken
for an empty queue. Used by one thread, on the driver.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.spark.attendance import UNSUBSCRIBED
from pocketmq.spark.cluster_view import Look, view_of
from pocketmq.spark.offsets import FirstMessage, Offsets, StreamOffset
from pocketmq.spark.planning import data_lost, fail_or_warn, recreated, suspects
from pocketmq.spark.source_options import SourceOptions
from pocketmq.spark.waiting import Waiting

SAMPLED = 16
"""Queues whose messages are sampled for their size: those with the longest backlog."""
_PAUSE = 0.2
_SAMPLE = 32
_SAMPLE_BYTES = 256 << 10

Since = dict[MessageQueue, FirstMessage]


class NextQueues(NamedTuple):
    """What the next micro-batch can read."""

    ends: Offsets
    begin: Offsets
    """The start of queues that are new, or were recreated."""
    since: Since
    """The first message of each queue, for the checkpoint."""


class StreamQueues:
    """The driver's knowledge of the queues that a stream reads."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._strict = options.pulling.fail_on_data_loss
        self._view = view_of(options)
        self._clock = clock
        self._waiting = Waiting(options.reach.retry_timeout, strict=self._strict, clock=clock)
        self._target: Offsets | None = None  # the end of an AvailableNow run
        self._checked_at: float | None = None  # when first messages were compared last

    @property
    def stops(self) -> bool:
        """Whether the stream reads no further than to the ends that were recorded."""
        return self._target is not None

    def begin(self) -> Offsets:
        """Return where a new stream starts in each queue. Raises `OptionInvalid`, `DataLost`."""
        options, view, strict = self._options, self._view, self._strict
        look = self._waiting.complete(lambda: view.first_look(strict=strict))
        starting = options.starting
        if starting.of_group:
            starting = view.of_group(options.pulling.group, starting, look)
        return view.offsets_at(starting, look, "startingOffsets", strict=strict)

    def stop_here(self) -> None:
        """Record the current ends, and read no further from now on."""
        self._target = dict(self._view.ends(fresh=True).found)

    def latest(self, age: float) -> Offsets:
        """Return the ends of the queues that respond, at most `age` seconds old."""
        return self._view.ends(age=age).found

    def next(self, before: StreamOffset) -> NextQueues:
        """Return what can be read after an offset. Raises `DataLost`."""
        ends = self._ends(before.queues)
        since = self._first_messages(before, ends)
        begin = before.queues if before.fresh else {}
        anew = {queue for queue in recreated(before.since, since) if queue in before.queues}
        for queue in anew:
            self._report_recreated(queue, before, since[queue])
        shrunk = {queue for queue, end in ends.items() if before.queues.get(queue, end) > end}
        for queue in shrunk - anew:
            at, why = before.queues[queue], f"it ends at {ends[queue]} now"
            why += ", as if the topic had been recreated"
            fail_or_warn(data_lost(queue, (at, at), why), fail=self._strict)
        new = {queue for queue in ends if queue not in before.queues}
        firsts = self._firsts(new | anew | shrunk)
        begin = begin | firsts
        # A queue whose first offset is unknown by now is read from the next micro-batch on.
        lacking = (new | anew | shrunk) - firsts.keys()
        ends = {queue: end for queue, end in ends.items() if queue not in lacking}
        # Until then a recreated one must be recognised again.
        since = {queue: first for queue, first in since.items() if queue not in lacking}
        return NextQueues(ends, begin, before.since | since)

    def _ends(self, known: Offsets) -> Offsets:
        """Return the ends of the queues that can be read now; raises `DataLost`.

        Waits for missing queues, and for those that are shorter than was read: a broker may be
        restarting, a slave may be behind.
        """
        if self._target is not None and _covers(self._target, known):
            return self._target
        among = self._view.topics.among(known)
        selected = {queue: at for queue, at in known.items() if queue in among}
        dropped = {queue: UNSUBSCRIBED for queue in known if queue not in selected}
        self._waiting.waive(dropped, known)
        fresh = False

        def look() -> Look[int]:
            nonlocal fresh
            seen = self._view.ends(fresh=fresh)
            fresh = True
            listing = self._view.listing()
            gone = {
                queue: listing.why_not(queue)
                for queue in selected
                if queue not in seen.found and queue not in seen.absent
            }
            return Look(seen.found, seen.absent | gone | dropped)

        ends = self._waiting.complete(look, known).found
        self._view.rest(self._waiting.waived)
        ends = self._wait_for_slaves(ends, selected)
        if self._target is None:
            return ends
        # What was away when the run began belongs to it; what was created since then does not.
        self._target |= {
            queue: end
            for queue, end in ends.items()
            if queue in known and queue not in self._target
        }
        return self._target

    def _wait_for_slaves(self, ends: Offsets, known: Offsets) -> Offsets:
        """Return ends that are not behind what was read, if there are such in time."""
        deadline = self._clock() + self._options.reach.retry_timeout
        while any(known.get(queue, end) > end for queue, end in ends.items()):
            if self._clock() > deadline:
                break
            time.sleep(_PAUSE)
            ends = self._view.ends(fresh=True).found
        return ends

    def _first_messages(self, before: StreamOffset, ends: Offsets) -> Since:
        """Return the first message of queues where it is unknown or has changed.

        Compared as often as queues are listed: a request for the time alone for each of them.
        """
        now = self._clock()
        if self._checked_at is not None and now - self._checked_at < self._options.discovery:
            return {}
        self._checked_at = now
        reader = self._view.reader
        stored = {
            queue: answer
            for queue, answer in reader.first_times(ends).items()
            if not isinstance(answer, MQError)
        }
        found: Since = {}
        for queue, first in reader.first_messages(suspects(before.since, stored)).items():
            if not isinstance(first, MQError):
                found[queue] = FirstMessage(*first)
        return found

    def _report_recreated(
        self, queue: MessageQueue, before: StreamOffset, first: FirstMessage
    ) -> None:
        at, kept = before.queues[queue], before.since[queue]
        why = (
            f"it was recreated: its first message, offset {first.offset}, was stored at "
            f"{first.stored_ms}, and that of offset {kept.offset} was stored at {kept.stored_ms} "
            "(ms since 1970) when the stream read it"
        )
        fail_or_warn(data_lost(queue, (at, at), why), fail=self._strict)

    def _firsts(self, queues: set[MessageQueue]) -> Offsets:
        """Return the first offset of queues; those of brokers that do not respond are left out."""
        if not queues:
            return {}
        bounds = self._view.look(self._view.reader.all_bounds, queues).found
        return {queue: held.first for queue, held in bounds.items()}

    def sizes(self, waiting: Offsets, positions: Offsets) -> dict[MessageQueue, float]:
        """Return the average stored size of the next messages of the queues that hold most."""
        reader, found = self._view.reader, {}
        queues = sorted((queue for queue in waiting if waiting[queue]), key=lambda q: -waiting[q])
        for queue in queues[:SAMPLED]:
            at = positions[queue]
            try:
                pulled = reader.pull(queue, at, max_messages=_SAMPLE, max_bytes=_SAMPLE_BYTES)
            except MQError:
                continue
            if pulled.records and pulled.next_offset > at:
                found[queue] = len(pulled.records) / (pulled.next_offset - at)
        return found

    def close(self) -> None:
        """Close connections."""
        self._view.reader.close()


def _covers(target: Offsets, known: Offsets) -> bool:
    return all(queue in target and at <= target[queue] for queue, at in known.items())
