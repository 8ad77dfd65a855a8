"""Statistics by topic and group, under Java's names (VIEW_BROKER_STATS_DATA, 315).

Counting is a few additions per batch or pull. What happened in the last minute, hour and day comes
from samples, taken by housekeeping as Java takes them: every 10 s, 10 min and hour. Sizes are those
of records as stored, for delayed and timed messages those of bodies. Independent of store and
wire. Belongs to the broker's loop.
"""

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from pocketmq.protocol.bodies.stats import BrokerStats, StatsItem

SECONDS, MINUTES, HOURS = 10.0, 600.0, 3600.0
"""Between samples of a minute, an hour and a day."""
_KEPT = {SECONDS: 7, MINUTES: 7, HOURS: 25}

Sample: TypeAlias = tuple[float, int, int, int]
"""When, messages, bytes, times."""
Pair: TypeAlias = tuple[str, str]
"""Topic and group."""


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
        everything = self._all_stored
        for topic, (messages, size, times) in by_topic.items():
            flow = self.stored.get(topic)
            if flow is None:
                flow = self.stored[topic] = CountSeries()
            flow.add(messages, size, times)
            everything.add(messages, size, times)

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
