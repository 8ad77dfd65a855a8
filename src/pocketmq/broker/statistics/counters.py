"""Counters of a broker: totals, rates, times of storing, and statistics by topic and group.

Counting is a few additions per batch or pull; rates come from samples, which housekeeping takes as
Java does: every 10 s, 10 min and hour. Statistics have Java's names (VIEW_BROKER_STATS_DATA, 315).
Sizes are those of records as stored, for delayed and timed messages those of bodies. Independent of
store and wire. Belongs to the broker's loop.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from pocketmq.protocol.requests.stats import BrokerStats, StatsItem

SAMPLE_PERIOD = 10.0
"""Seconds between samples; tools show rates over 10 s, 1 min and 10 min."""
_WINDOWS = (1, 6, 60)
_STEPS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
_STEPS = (
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s",
    "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
)  # fmt: skip
"""How Java groups the times that messages take to be stored."""

SECONDS, MINUTES, HOURS = 10.0, 600.0, 3600.0
"""Between samples of a minute, an hour and a day."""
_KEPT = {SECONDS: 7, MINUTES: 7, HOURS: 25}

Sample: TypeAlias = tuple[float, int, int, int]
"""When, messages, bytes, times."""
Pair: TypeAlias = tuple[str, str]
"""Topic and group."""


class BrokerTotals:
    """Counters of one broker. Belongs to its loop."""

    __slots__ = (
        "_day", "_mornings", "_samples", "_times", "bytes_in", "messages_in", "messages_out",
        "pulls_found", "pulls_missed", "refused", "slowest_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.messages_out = 0
        self.pulls_found = 0
        self.pulls_missed = 0
        self.refused = 0  # sends
        self.slowest_ms = 0
        self._times = [0] * len(_STEPS)
        self._samples: deque[tuple[float, int, int, int, int]] = deque(maxlen=_WINDOWS[-1] + 1)
        self._day = -1
        self._mornings = ((0, 0), (0, 0))  # in and out, yesterday's and today's

    def took(self, messages: int, size: int, elapsed_ms: int) -> None:
        """Count messages that were stored together, and how long that took."""
        self.messages_in += messages
        self.bytes_in += size
        if elapsed_ms <= 0:
            self._times[0] += messages
            return
        self._times[bisect_left(_STEPS_MS, elapsed_ms)] += messages
        self.slowest_ms = max(self.slowest_ms, elapsed_ms)

    def sample(self, now: float) -> None:
        """Store a sample of the totals."""
        self._samples.append(
            (now, self.messages_in, self.messages_out, self.pulls_found, self.pulls_missed)
        )

    def see_day(self, day: int) -> None:
        """Record the day it is: totals as of its morning are remembered."""
        if day != self._day:
            first = self._day < 0
            self._day = day
            now = (0, 0) if first else (self.messages_in, self.messages_out)
            self._mornings = self._mornings[1], now

    @property
    def mornings(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Messages in and out since the start, as of yesterday's morning and as of today's."""
        return self._mornings

    def times(self) -> str:
        """Show how long messages took to be stored, as Java shows it."""
        return " ".join(
            f"[{step}]:{count}" for step, count in zip(_STEPS, self._times, strict=True)
        )

    def time_of_part(self, part: float) -> float:
        """Return the milliseconds within which that part of the messages was stored, at most."""
        wanted, seen = part * sum(self._times), 0
        for limit, count in zip(_STEPS_MS, self._times, strict=False):
            seen += count
            if seen >= wanted:
                return float(min(limit, self.slowest_ms))
        return float(self.slowest_ms)

    def rates(self) -> dict[str, tuple[float, float, float]]:
        """Return messages and pulls a second, each over 10 s, 1 min and 10 min."""
        names = ("in", "out", "found", "missed")
        return {name: self._rates(column) for column, name in enumerate(names, 1)}

    def _rates(self, column: int) -> tuple[float, float, float]:
        samples = self._samples
        rates = []
        for window in _WINDOWS:
            if len(samples) <= 1:
                rates.append(0.0)
                continue
            last = samples[-1]
            first = samples[max(0, len(samples) - 1 - window)]
            rates.append((last[column] - first[column]) / max(last[0] - first[0], 1e-9))
        return rates[0], rates[1], rates[2]


class CountSeries:
    """A count over time: messages, their bytes, and the number of batches."""

    __slots__ = ("_samples", "messages", "size", "times")

    def __init__(self) -> None:
        self.messages = 0
        self.size = 0
        self.times = 0
        self._samples: dict[float, deque[Sample]] = {}

    def add(self, messages: int, size: int, times: int = 1) -> None:
        """Count a batch."""
        self.messages += messages
        self.size += size
        self.times += times

    def sample(self, period: float, now: float) -> None:
        """Store a sample of the totals; a new series starts one period ago with zero."""
        samples = self._samples.get(period)
        if samples is None:
            samples = deque([(now - period, 0, 0, 0)], _KEPT[period])
            self._samples[period] = samples
        samples.append((now, self.messages, self.size, self.times))

    def span(self, period: float, *, sizes: bool = False) -> StatsItem:
        """Return the sum and rate of messages, or of their bytes, over what the samples span."""
        samples = self._samples.get(period)
        if samples is None:
            return StatsItem()
        first, last = samples[0], samples[-1]
        total = last[2] - first[2] if sizes else last[1] - first[1]
        times = last[3] - first[3]
        rate = total / max(last[0] - first[0], 1e-9)
        return StatsItem(sum=total, tps=rate, avgpt=total / times if times else 0.0)


class TopicStatistics:
    """All statistics of one broker."""

    def __init__(self, cluster: str = "", now: float = 0.0) -> None:
        self.stored: dict[str, CountSeries] = {}  # by topic
        self.given: dict[Pair, CountSeries] = {}
        self.sent_back: dict[Pair, CountSeries] = {}
        self.dead: dict[Pair, CountSeries] = {}
        self.acked: dict[Pair, CountSeries] = {}
        self.popped: dict[Pair, CountSeries] = {}
        self._all_stored, self._all_given = CountSeries(), CountSeries()
        self._cluster = cluster
        self._sampled = dict.fromkeys(_KEPT, now)

    def were_stored(self, by_topic: Mapping[str, list[int]]) -> None:
        """Count messages, bytes and batches that topics got in one write."""
        for topic, counts in by_topic.items():
            self.was_stored(topic, *counts)

    def was_stored(self, topic: str, messages: int, size: int, times: int) -> None:
        """Count messages, bytes and batches that a topic got."""
        flow = self.stored.get(topic)
        if flow is None:
            flow = self.stored[topic] = CountSeries()
        every = self._all_stored  # written out: each send comes here
        flow.messages += messages
        flow.size += size
        flow.times += times
        every.messages += messages
        every.size += size
        every.times += times

    def were_given(self, topic: str, group: str, messages: int, size: int) -> None:
        """Count messages that a group has pulled or popped."""
        try:
            flow = self.given[topic, group]
        except KeyError:
            flow = self.given[topic, group] = CountSeries()
        flow.add(messages, size)
        self._all_given.add(messages, size)

    def count(
        self, table: dict[Pair, CountSeries], topic: str, group: str, messages: int = 1
    ) -> None:
        """Count what is rare: requeued messages, dead letters, acknowledgements."""
        table.setdefault((topic, group), CountSeries()).add(messages, 0)

    def stored_rate(self, topic: str) -> float:
        """Return the messages a second that a topic gets."""
        flow = self.stored.get(topic)
        return 0.0 if flow is None else flow.span(SECONDS).tps

    def given_rate(self, topic: str, group: str) -> float:
        """Return the messages a second that a group takes of a topic."""
        flow = self.given.get((topic, group))
        return 0.0 if flow is None else flow.span(SECONDS).tps

    def sample(self, now: float) -> None:
        """Take the samples that are due; called every ten seconds."""
        for period, last in self._sampled.items():
            if now - last >= period or period == SECONDS:
                self._sampled[period] = now
                for flow in self._flows():
                    flow.sample(period, now)

    def forget_topic(self, topic: str) -> None:
        """Drop what is counted for a topic that is deleted."""
        self.stored.pop(topic, None)
        for table in self._pairs():
            for pair in [pair for pair in table if pair[0] == topic]:
                del table[pair]

    def forget_group(self, group: str) -> None:
        """Drop what is counted for a group that is deleted."""
        for table in self._pairs():
            for pair in [pair for pair in table if pair[1] == group]:
                del table[pair]

    def view(self, name: str, key: str) -> BrokerStats | None:
        """Return a statistic by Java's name and key (a topic, `topic@group`, or the cluster)."""
        flow = self._find(name.removesuffix("_SIZE").removesuffix("_NUMS"), key)
        if flow is None:
            return None
        sizes = name.endswith("_SIZE")
        return BrokerStats(
            stats_minute=flow.span(SECONDS, sizes=sizes),
            stats_hour=flow.span(MINUTES, sizes=sizes),
            stats_day=flow.span(HOURS, sizes=sizes),
        )

    def _find(self, kind: str, key: str) -> CountSeries | None:
        if kind == "TOPIC_PUT":
            return self.stored.get(key)
        if key == self._cluster and kind in ("BROKER_PUT", "BROKER_GET"):
            return self._all_stored if kind == "BROKER_PUT" else self._all_given
        tables = {
            "GROUP_GET": self.given,
            "SNDBCK_PUT": self.sent_back,
            "DLQ_PUT": self.dead,
            "GROUP_ACK": self.acked,
            "GROUP_CK": self.popped,
        }
        topic, _, group = key.partition("@")
        return tables.get(kind, {}).get((topic, group))

    def _pairs(self) -> tuple[dict[Pair, CountSeries], ...]:
        return self.given, self.sent_back, self.dead, self.acked, self.popped

    def _flows(self) -> list[CountSeries]:
        listed = [self._all_stored, self._all_given, *self.stored.values()]
        for table in self._pairs():
            listed += table.values()
        return listed
