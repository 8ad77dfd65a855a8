"""How quickly a consumer pulls and consumes, as operators see it (Java: ConsumerStatsManager).

Counts are read every ten seconds for the last minute and every ten minutes for the last hour;
rates are what lies between the first and the last of seven readings. Belongs to one event loop.
"""

from collections import deque
from typing import NamedTuple

from pocketmq.protocol.requests.client_calls import ConsumeStatus

MINUTE_STEP = 10.0
HOUR_STEP = 600.0
_READINGS = 7


class CounterReading(NamedTuple):
    """A counter at some time."""

    at: float
    value: float
    times: int


class CounterWindow:
    """The last readings of a counter."""

    __slots__ = ("_readings", "_step")

    def __init__(self, step: float) -> None:
        self._step = step
        self._readings: deque[CounterReading] = deque(maxlen=_READINGS)

    def read(self, now: float, value: float, times: int) -> None:
        """Take a reading; before the first, the counter was 0 for one step."""
        if not self._readings:
            self._readings.append(CounterReading(now - self._step, 0, 0))
        self._readings.append(CounterReading(now, value, times))

    @property
    def total(self) -> float:
        """What was added within the window."""
        return self._readings[-1].value - self._readings[0].value if self._readings else 0

    @property
    def rate(self) -> float:
        """What was added in a second."""
        if not self._readings:
            return 0.0
        seconds = self._readings[-1].at - self._readings[0].at
        return self.total / seconds if seconds > 0 else 0.0

    @property
    def mean(self) -> float:
        """What was added at once, on average."""
        if not self._readings:
            return 0.0
        times = self._readings[-1].times - self._readings[0].times
        return self.total / times if times > 0 else 0.0


class Counter:
    """A sum that grows, and how it grew lately."""

    __slots__ = ("hour", "minute", "times", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.times = 0
        self.minute = CounterWindow(MINUTE_STEP)
        self.hour = CounterWindow(HOUR_STEP)

    def add(self, value: float, times: int = 1) -> None:
        """Add to the sum, as `times` values."""
        self.value += value
        self.times += times


class TopicHandlingStats:
    """The counters of one topic. Durations are milliseconds."""

    __slots__ = ("consume_rt", "failed", "ok", "pull_rt", "pulled")

    def __init__(self) -> None:
        self.pull_rt = Counter()
        self.pulled = Counter()
        self.consume_rt = Counter()
        self.ok = Counter()
        self.failed = Counter()

    def counters(self) -> tuple[Counter, ...]:
        """Return all counters."""
        return self.pull_rt, self.pulled, self.consume_rt, self.ok, self.failed

    def status(self) -> ConsumeStatus:
        """Return the rates in wire form."""
        spent = self.consume_rt
        # Java: with nothing consumed within the minute, the mean of the hour is used.
        recent = spent.minute if spent.minute.total else spent.hour
        return ConsumeStatus(
            pull_rt=self.pull_rt.minute.mean,
            pull_tps=self.pulled.minute.rate,
            consume_rt=recent.mean,
            consume_ok_tps=self.ok.minute.rate,
            consume_failed_tps=self.failed.minute.rate,
            consume_failed_msgs=int(self.failed.hour.total),
        )


class HandlingStats:
    """The counters of a consumer, by topic as on the wire."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicHandlingStats] = {}

    def of(self, topic: str) -> TopicHandlingStats:
        """Return the counters of a topic."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicHandlingStats()
        return found

    def status(self, topic: str) -> ConsumeStatus:
        """Return the rates of a topic; all 0 for an unknown one."""
        found = self._topics.get(topic)
        return ConsumeStatus() if found is None else found.status()

    def read_minute(self, now: float) -> None:
        """Take the readings that are due every ten seconds."""
        for topic in self._topics.values():
            for counter in topic.counters():
                counter.minute.read(now, counter.value, counter.times)

    def read_hour(self, now: float) -> None:
        """Take the readings that are due every ten minutes."""
        for topic in self._topics.values():
            for counter in topic.counters():
                counter.hour.read(now, counter.value, counter.times)
