"""The driver's view of a cluster: the queues that are read, and their bounds.

The list of queues is refreshed now and then, their ends with every call. A look never waits for a
broker: queues that cannot be read are part of the result, with the reason. Whether to wait for
them, and what their absence means, is up to the caller (`waiting`). Used by one thread.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from pocketmq import errors
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.model import MessageQueue
from pocketmq.spark import attendance
from pocketmq.spark.connections import may_pass
from pocketmq.spark.offsets import Offsets, OffsetSpec
from pocketmq.spark.planning import data_lost, fail_or_warn
from pocketmq.spark.source_options import SourceOptions

logger = logging.getLogger("pocketmq.spark")

T = TypeVar("T")
Ask = Callable[[Iterable[MessageQueue]], Mapping[MessageQueue, T | errors.MQError]]

REST = 5.0
"""Seconds for which a broker that does not respond is skipped once it was waited for in vain."""


class Look(msgspec.Struct, Generic[T], frozen=True):
    """What one look at a cluster found, and the queues that could not be read, with the reason."""

    found: dict[MessageQueue, T]
    absent: dict[MessageQueue, str] = {}


class ClusterView:
    """The queues of some topics."""

    def __init__(
        self,
        reader: RecordReader,
        topics: attendance.TopicSelection,
        *,
        discovery: float = 2.0,
        patience: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader = reader
        self.topics = topics
        self._discovery = discovery
        self._first_patience = patience
        self._resting: dict[str, tuple[float, str]] = {}  # brokers: when to retry, and their error
        self._clock = clock
        self._listing = attendance.Listing()
        self._listed_at: float | None = None
        self._ends: Look[int] = Look({})
        self._ends_at: float | None = None

    def listing(self, *, fresh: bool = False) -> attendance.Listing:
        """Return the queues that are registered; while no name server responds, the last list."""
        now = self._clock()
        known = self._listed_at is not None and now - self._listed_at < self._discovery
        if fresh or not known:
            try:
                self._listing = self._find()
            except errors.NameServersUnreachable as error:
                if self._listed_at is None:
                    raise
                logger.warning("name servers unreachable; keeping the known queues: %s", error)
            self._listed_at = now
        return self._listing

    def rest(self, queues: Iterable[MessageQueue]) -> None:
        """Skip the brokers of queues for a while that do not respond: they were waited for."""
        now = self._clock()
        for queue in queues:
            why = self._ends.absent.get(queue)
            if why is not None and now >= self._resting.get(queue.broker_name, (now, ""))[0]:
                self._resting[queue.broker_name] = (now + REST, why)

    def look(self, ask: Ask[T], queues: Iterable[MessageQueue]) -> Look[T]:
        """Ask the brokers of queues; raises errors that waiting does not cure."""
        now, resting = self._clock(), self._resting
        asleep = {name: why for name, (until, why) in resting.items() if now < until}
        wanted = list(queues)
        found: dict[MessageQueue, T] = {}
        absent = {each: asleep[each.broker_name] for each in wanted if each.broker_name in asleep}
        answers = ask([each for each in wanted if each not in absent])
        for queue, answer in answers.items():
            if not isinstance(answer, errors.MQError):
                found[queue] = answer
            elif may_pass(answer):
                answers_not = isinstance(answer, errors.TransportError | errors.BrokerNotFound)
                verb = "does not respond" if answers_not else "does not serve it"
                absent[queue] = f"its broker {verb} ({answer})"
            else:
                raise answer
        return Look(found, absent)

    def ends(self, *, age: float = 0.0, fresh: bool = False) -> Look[int]:
        """Return the end of each queue, at most `age` seconds old; `fresh` lists queues again."""
        now = self._clock()
        if fresh or self._ends_at is None or now - self._ends_at >= age:
            self._ends = self.look(self.reader.ends, self.listing(fresh=fresh).queues)
            self._ends_at = now
        return self._ends

    # The start of a query

    def first_look(self, *, strict: bool) -> Look[Bounds]:
        """Return the bounds of all queues that options select, and those that are absent.

        Raises `OptionInvalid` for a topic or queue that does not exist, as far as is known, unless
        data loss is tolerated and others do.
        """
        listing = self.listing(fresh=True)
        departed = self._departed(listing)
        self._check(listing, departed, strict=strict)
        look = self.look(self.reader.all_bounds, listing.queues)
        gone = {queue: attendance.LEFT for queue in departed if queue not in look.found}
        return Look(look.found, look.absent | gone)

    def _departed(self, listing: attendance.Listing) -> list[MessageQueue]:
        """Return the selected queues of brokers that have left, by the name server's word."""
        listed = {queue.topic for queue in listing.queues}
        there = self.reader.departed_topics() if self.topics.pattern is not None else ()
        topics = dict.fromkeys((*self.topics.topics(there), *listed, *listing.unrouted))
        found = [queue for topic in topics for queue in self.reader.departed(topic)]
        missing = self.topics.among(found).difference(listing.queues)
        return [each for each in found if each in missing]

    def _check(
        self, listing: attendance.Listing, departed: list[MessageQueue], *, strict: bool
    ) -> None:
        wrong: list[errors.OptionInvalid] = []
        remembered = {queue.topic for queue in departed}
        unknown = [topic for topic in listing.unrouted if topic not in remembered]
        if unknown and self.topics.pattern is None:
            existing: list[str] = []
            with suppress(errors.MQError):  # a name server may refuse to list them
                existing = self.reader.topics()
            wrong += [
                attendance.unknown_topic(self.topics.option, topic, existing) for topic in unknown
            ]
        there = {*listing.queues, *departed}
        for queue in self.topics.assigned:
            if queue not in there and queue.topic not in unknown:
                wrong.append(attendance.unknown_queue(queue, self._queues_of(queue.topic)))
        if wrong and (strict or not there):
            raise wrong[0]
        for error in wrong:
            logger.warning("%s; reading without it, because failOnDataLoss is false", error)

    def _queues_of(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic, also those of brokers that have left."""
        found = self.reader.departed(topic)
        with suppress(errors.RouteNotFound):
            found += self.reader.queues(topic)
        return found

    # Offsets

    def offsets_at(
        self, spec: OffsetSpec, look: Look[Bounds], option: str, *, strict: bool
    ) -> Offsets:
        """Return the offset in each queue that an option asks for.

        Raises `OptionInvalid` for an offset of a queue that is not read, and `DataLost` for one
        that the queue does not hold; if not `strict`, the nearest one that it holds is taken.
        """
        bounds = look.found
        for queue in spec.named():
            if queue not in bounds and queue not in look.absent:
                raise errors.OptionInvalid(
                    option, f"names {queue}, which is not among the queues read"
                )
        times = spec.times(bounds)
        at_times = self.look(lambda _: self.reader.offsets_at(times), times)
        found: Offsets = {}
        for queue, held in bounds.items():
            if queue in at_times.absent:
                raise data_lost(queue, (held.first, held.first), at_times.absent[queue])
            offset = spec.of(queue, held, lambda _, at=queue: at_times.found[at])  # type: ignore[misc]
            near = min(max(offset, held.first), held.end)
            if near != offset and queue in spec.each:
                span = (offset, held.first) if offset < held.first else (held.end, offset)
                why = f"{option} says {offset}, and it holds {held.first} to {held.end - 1}"
                fail_or_warn(data_lost(queue, span, why), fail=strict)
            found[queue] = near
        return found

    def of_group(self, group: str, spec: OffsetSpec, look: Look[Bounds]) -> OffsetSpec:
        """Return a spec with a group's committed offsets; raises `DataLost` if a broker is lost."""
        seen = self.look(lambda queues: self.reader.all_committed(group, queues), look.found)
        if seen.absent:
            raise attendance.absence(seen.absent, {})
        each = {queue: offset for queue, offset in seen.found.items() if offset is not None}
        return msgspec.structs.replace(spec, each=each)

    # Queues

    @property
    def _patience(self) -> float:
        """Seconds to wait for a name server: only for the first list."""
        return self._first_patience if self._listed_at is None else 0.0

    def _find(self) -> attendance.Listing:
        by_pattern = self.topics.pattern is not None
        existing = self.reader.topics(patience=self._patience) if by_pattern else ()
        queues: list[MessageQueue] = []
        unrouted: list[str] = []
        for name in self.topics.topics(existing):
            try:
                queues += self.reader.queues(name, patience=self._patience)
            except errors.RouteNotFound:
                unrouted.append(name)
        if self.topics.assigned:
            there = set(queues)
            queues = [queue for queue in self.topics.assigned if queue in there]
        return attendance.Listing(tuple(queues), tuple(unrouted))


def view_of(options: SourceOptions) -> ClusterView:
    """Return a view for a source."""
    pulling = options.pulling
    # It never waits: what is absent is waited for by the caller, all of it together.
    reader = RecordReader(pulling.reach.client(), group=pulling.group, patience=0.0)
    return ClusterView(
        reader,
        options.topics,
        discovery=options.discovery,
        patience=pulling.reach.retry_timeout,
    )
