"""What an adaptive producer remembers of one broker, and of the queues that a topic has there.

A try costs a few steps, however many there are: no list is walked and no lock is taken. Threads
may share a record although it has no lock. The tries in flight are a dictionary, which each thread
changes in one step; of two latencies that are noted in the same instant one may get lost, which
changes an average by as much as one message does.
"""

from collections.abc import Sequence
from math import exp

from pocketmq.balance.producer.fault_table import BrokerHealth
from pocketmq.model import MessageQueue

TAU = 1.0
"""Seconds in which a past latency loses two thirds of its weight, with or without new ones."""
LEAST = 0.0001
"""Seconds below which latencies are not told apart: clocks and schedulers are not better."""
RISE, FALL = 0.5, 0.9
"""What is kept of the latency so far when an answer was slower, or quicker; less after a while."""
_SOON = 0.1  # seconds in which time takes less away than `FALL` does
_P99_RISE = 0.02
_P99_START = 0.1


class BrokerRecord:
    """The latency, the tries in flight and the failures of one broker.

    `latency` is an EWMA that rises quickly and falls by and by.
    """

    __slots__ = (
        "avoided_since", "back_at", "failures", "fresh", "in_flight", "latency", "name", "pause",
        "probe_at", "reason", "sampled_at", "silent", "tested", "unanswered",
    )  # fmt: skip

    def __init__(self, name: str, latency: float, now: float) -> None:
        self.name = name
        self.latency = latency
        self.sampled_at = now
        """When `latency` was last brought up to date."""
        self.fresh = True
        """Whether the first answer is to come, which may have waited for a connection."""
        self.tested = False
        """Whether a message is in flight that tests if it is still slow."""
        self.in_flight: dict[object, float] = {}
        """When each try was begun, the oldest first."""
        self.failures = 0
        """Failed tries since the last answer."""
        self.avoided_since: float | None = None
        """None: in use."""
        self.back_at = now
        """When it was last taken into use again."""
        self.probe_at = now
        """When to probe it while it is avoided."""
        self.pause = 0.0
        """Seconds from one probe to the next."""
        self.reason = ""
        """Why it is, or was last, avoided; empty if it never was."""
        self.silent = False
        """Whether it is avoided because it could not be reached, not because it refused."""
        self.unanswered = 0
        """Tries that were given up without an answer: each may have been stored."""

    def sample(self, latency: float, now: float) -> None:
        """Note how long an answer took."""
        known = self.latency
        kept = RISE if latency > known else FALL
        age = now - self.sampled_at
        if age > _SOON:
            kept = min(kept, exp(-age / TAU))
        self.latency = latency + (known - latency) * kept
        self.sampled_at = now

    def cost(self, floor: float, same: float, now: float) -> float:
        """Return what one more message costs here: tries in flight, times what slowness adds.

        Latencies up to `same` add nothing, longer ones their third power. A latency falls towards
        `floor`, that of the best broker, while there is no news: what was slow once is tried again.
        It rises while the oldest try waits longer than any did before.
        """
        latency = self.latency
        if latency > same:
            latency = floor + (latency - floor) * exp((self.sampled_at - now) / TAU)
        if not self.in_flight:
            return 1.0 if latency <= same else (latency / same) ** 3
        waited = now - self._oldest(now)
        latency = max(latency, waited)
        tries = len(self.in_flight) + 1
        return tries if latency <= same else tries * (latency / same) ** 3

    def health(self, now: float) -> BrokerHealth:
        """Return the state for display."""
        in_use = self.avoided_since is None
        return BrokerHealth(
            broker=self.name,
            latency=self.latency,
            available=in_use,
            available_in=0.0 if in_use else max(0.0, self.probe_at - now),
            reachable=in_use or not self.silent,
            reason=self.reason,
            unanswered=self.unanswered,
        )

    def _oldest(self, now: float) -> float:
        try:
            return next(iter(self.in_flight.values()), now)
        except RuntimeError:  # another thread has begun or ended a try meanwhile
            return now


class LatencyBound:
    """An estimate of the latency that 99 of 100 answers stay below, of all brokers together.

    It starts high, so that nothing is given up early before enough is known.
    """

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = _P99_START

    def sample(self, latency: float) -> None:
        """Note how long an answer took: one step up for 99 steps down keeps it in place."""
        bound = self.seconds
        if latency > bound:
            self.seconds = bound + bound * _P99_RISE
        elif bound > LEAST:
            self.seconds = bound - bound * (_P99_RISE / 99)


class BrokerQueues:
    """The queues of one topic on one broker, which take turns."""

    __slots__ = ("queues", "record", "turn")

    def __init__(self, record: BrokerRecord, queues: Sequence[MessageQueue], turn: int) -> None:
        self.record = record
        self.queues = queues
        self.turn = turn

    def next(self) -> MessageQueue:
        """Take the next queue."""
        self.turn = turn = (self.turn + 1) % len(self.queues)
        return self.queues[turn]


class TopicBrokers:
    """The brokers of one topic: all, and those that are in use.

    Made anew when the route changes. `usable` is for the fleet's `version` of that number.
    """

    __slots__ = ("all", "usable", "version")

    def __init__(self, places: Sequence[BrokerQueues]) -> None:
        self.all = tuple(places)
        self.usable = self.all
        self.version = -1

    def choose_from(self, version: int) -> tuple[BrokerQueues, ...]:
        """Return the brokers that are in use; all if none is."""
        if version != self.version:
            in_use = tuple(place for place in self.all if place.record.avoided_since is None)
            self.usable = in_use or self.all
            self.version = version
        return self.usable
