"""Choosing the broker for a message by how brokers do now (`queue_choice="adaptive"`).

Of two brokers drawn at random the one with the lower cost gets the message; its queues take turns.
The cost grows with the latency to expect and with the tries in flight. A broker that lets a try
time out, cannot be connected to, or fails three times in a row is avoided until a probe reaches it.
If all are avoided, the least bad one is used: nothing is ever refused here.

Where this leaves the textbook (two random choices on peak EWMA × outstanding), and why:

* latencies that differ by less than half, or by a millisecond, count as equal, and so do costs
  that differ by less than a factor of two; otherwise one of two healthy brokers would get
  everything for a while;
* beyond that the latency counts by its third power: with many tries in flight, a broker that is
  five times slower would otherwise still get enough messages to be seen in the slowest hundredth;
* a broker that gets no messages because it was slow is tried by a message now and then, and is
  back at once if that was quick. Decay alone takes seconds, and longer the slower it was.

State that threads may share (see `broker_record`); clock and chance are arguments.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from pocketmq import errors
from pocketmq.balance.producer import broker_record
from pocketmq.balance.producer.fault_table import BrokerHealth
from pocketmq.model import MessageQueue

Draw = Callable[[], float]
"""Returns a number from 0 up to, but not including, 1, as `random.random` does."""

SAME = 1.5
"""Latencies up to this many times the best broker's count as equal to it, ..."""
MARGIN = 0.001
"""... and so do those that are this many seconds longer: no more than a busy machine adds."""
CLEARLY = 2.0
"""One cost must be this many times another for the lower one to be preferred."""
FAILURES = 3
"""Failures in a row after which a broker is avoided."""
PROBE_AFTER = 0.5
"""Seconds before a broker that is avoided, or gets no messages, is tried."""
PROBE_MOST = 2.0
"""The pause between probes doubles up to this while the broker fails again right after each."""
TRIAL = 5.0
"""Seconds after its return in which one failure is enough to avoid a broker again."""
TEST_EVERY = 200
"""Messages for one that tests a slow broker: it must not be seen in the slowest hundredth."""
LONGEST_TRY = 1.0
SHORTEST_TRY = 0.25
BYTES_PER_SECOND = 1 << 20
"""Bodies get the time that a slow line needs for them."""
_FLOOR_AGE = 0.1  # seconds for which the floor is taken to be the same
_SICK = frozenset(
    {
        errors.ResponseCode.SYSTEM_ERROR,
        errors.ResponseCode.SYSTEM_BUSY,
        errors.ResponseCode.SERVICE_NOT_AVAILABLE,
        errors.ResponseCode.FLOW_CONTROL,
        errors.ResponseCode.GO_AWAY,
    }
)
"""Refusals that are the broker's fault; others are about the message or the topic."""


class Fleet:
    """The brokers of one producer, for all its topics."""

    def __init__(self, draw: Draw) -> None:
        self.bound = broker_record.LatencyBound()
        self.version = 0
        """Changes whenever a broker is avoided or taken into use again."""
        self._draw = draw
        self._records: dict[str, broker_record.BrokerRecord] = {}
        self._floor = broker_record.LEAST
        self._same = broker_record.LEAST + MARGIN
        self._floor_at = float("-inf")
        self._untested = 0  # messages since the last one that tested a slow broker

    # The route

    def topic(
        self,
        queues: Iterable[MessageQueue],
        now: float,
        before: broker_record.TopicBrokers | None = None,
    ) -> broker_record.TopicBrokers:
        """Return the brokers of a topic's queues, whose turns go on from those `before`.

        A new broker starts at the median of the others: neither flooded nor left out.
        """
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        turns = {} if before is None else {each.record.name: each.turn for each in before.all}
        places = []
        for name, own in by_broker.items():
            record = self._records.get(name)
            if record is None:
                record = self._records[name] = broker_record.BrokerRecord(name, self._median(), now)
            turn = turns.get(name)
            turn = int(self._draw() * len(own)) if turn is None else turn % len(own)
            places.append(broker_record.BrokerQueues(record, tuple(own), turn))
        return broker_record.TopicBrokers(places)

    def keep_only(self, brokers: Collection[str]) -> None:
        """Forget brokers that no topic has any more."""
        for name in self._records.keys() - brokers:
            del self._records[name]

    # The choice

    def choose(
        self,
        topic: broker_record.TopicBrokers,
        now: float,
        tried: Sequence[broker_record.BrokerRecord] = (),
    ) -> broker_record.BrokerQueues:
        """Choose a broker; those `tried` for this message only if there is no other in use."""
        places: Sequence[broker_record.BrokerQueues] = topic.choose_from(self.version)
        if tried or places[0].record.avoided_since is not None:
            places = _best_left(topic.all, tried)
        count = len(places)
        if count == 1:
            return places[0]
        # One draw for the pair: the first of `count`, the second of the others.
        first, second = divmod(int(self._draw() * count * (count - 1)), count - 1)
        one, other = places[first], places[second + (second >= first)]
        if now - self._floor_at > _FLOOR_AGE:
            self._find_floor(now)
        floor, same = self._floor, self._same
        cost = one.record.cost(floor, same, now)
        better, worse = one, other
        if other.record.cost(floor, same, now) * CLEARLY <= cost:
            better, worse = other, one
        self._untested += 1
        if self._untested >= TEST_EVERY and self._is_untested(worse.record, now):
            self._untested = 0
            worse.record.tested = True
            return worse
        return better

    def _is_untested(self, record: broker_record.BrokerRecord, now: float) -> bool:
        """Return whether a broker gets no messages because it was slow, and may be quick again."""
        return (
            record.latency > self._same
            and not record.in_flight
            and now - record.sampled_at >= PROBE_AFTER
        )

    def _find_floor(self, now: float) -> float:
        records = list(self._records.values())  # in one step: routes change on another thread
        used = [each for each in records if each.avoided_since is None]
        self._floor = floor = max(
            broker_record.LEAST, min((each.latency for each in used), default=broker_record.LEAST)
        )
        self._same = max(floor * SAME, floor + MARGIN)
        self._floor_at = now
        return floor

    def _median(self) -> float:
        known = sorted(each.latency for each in self._records.values())
        return known[len(known) // 2] if known else broker_record.LEAST

    def patience(  # noqa: PLR0917 - for each message: keywords would cost
        self,
        topic: broker_record.TopicBrokers,
        place: broker_record.BrokerQueues,
        tried: Sequence[broker_record.BrokerRecord],
        left: float,
        tries: int,
        size: int,
    ) -> float:
        """Return for how long a try may wait, of `left` seconds and `tries` tries.

        It is all there is, unless another broker that is in use waits to be tried, and brokers are
        quick: giving up early may store a message twice, so it must be good for something. While
        even the best broker takes its time, all are overloaded, and would get more to do by it.
        """
        if tries < 2:
            return left
        first = not tried and place.record.avoided_since is None
        if not (first and len(topic.choose_from(self.version)) > 1) and not any(
            each.record.avoided_since is None and each is not place and each.record not in tried
            for each in topic.all
        ):
            return left
        bound = self.bound.seconds
        limit = min(LONGEST_TRY, max(SHORTEST_TRY, 10 * bound)) + size / BYTES_PER_SECOND
        if limit < 4 * self._floor:
            return left
        return min(left, limit, max(left / tries, 3 * bound))

    # What became of a try

    def answered(self, record: broker_record.BrokerRecord, latency: float, now: float) -> None:
        """Note that a broker has stored a message, or refused it for what the message is."""
        self.bound.sample(latency)
        if record.fresh:
            record.fresh = False
            latency = min(latency, record.latency)
        elif record.tested:
            record.tested = False
            if latency <= self._same:
                record.latency = latency
        record.sample(latency, now)
        record.failures = 0
        if record.avoided_since is not None:
            self.use_again(record, now)

    def failed(
        self, record: broker_record.BrokerRecord, error: errors.MQError, latency: float, now: float
    ) -> None:
        """Note that a try got an error."""
        if isinstance(error, errors.ServerError) and error.code not in _SICK:
            self.answered(record, latency, now)
            return
        if isinstance(error, errors.RequestTimedOut) and error.outcome_unknown:
            record.unanswered += 1
            if latency < min(SHORTEST_TRY, 10 * self.bound.seconds):
                record.sample(latency, now)  # the caller's own haste proves little
                return
        record.failures += 1
        alone_enough = isinstance(
            error, errors.RequestTimedOut | errors.ConnectFailed | errors.BrokerNotFound
        )
        counts = isinstance(
            error, errors.ServerError | errors.ConnectionLost | errors.ProtocolError
        )
        on_trial = now - record.back_at < TRIAL and record.reason
        if alone_enough or (counts and (on_trial or record.failures >= FAILURES)):
            self.avoid(record, str(error), now, silent=alone_enough)

    def avoid(
        self, record: broker_record.BrokerRecord, reason: str, now: float, *, silent: bool
    ) -> None:
        """Leave a broker alone until it is reached by a probe."""
        record.tested = False
        if record.avoided_since is not None:
            return
        record.silent = silent
        again = bool(record.reason) and now - record.back_at < TRIAL
        record.pause = min(PROBE_MOST, record.pause * 2) if again else PROBE_AFTER
        record.avoided_since = now
        record.reason = reason
        self.version += 1

    def use_again(self, record: broker_record.BrokerRecord, now: float) -> None:
        """Take a broker into use again, as quick as the best one until it shows otherwise."""
        if record.avoided_since is None:
            return
        record.avoided_since = None
        record.back_at = now
        record.failures = 0
        record.latency = self._find_floor(now)
        record.sampled_at = now
        record.fresh = True
        self.version += 1

    # Probes and the view

    def next_probe(self, record: broker_record.BrokerRecord, now: float) -> float | None:
        """Return the seconds until a broker is to be probed; None if it need not be (any more)."""
        if record.avoided_since is None or self._records.get(record.name) is not record:
            return None
        record.probe_at = now + record.pause
        return record.pause

    def snapshot(self, now: float) -> tuple[BrokerHealth, ...]:
        """Return the health of every broker, by name."""
        return tuple(record.health(now) for _, record in sorted(self._records.items()))


def _best_left(
    places: Sequence[broker_record.BrokerQueues], tried: Sequence[broker_record.BrokerRecord]
) -> Sequence[broker_record.BrokerQueues]:
    """Return the brokers for a retry, or for a message while all are avoided.

    In use and not tried yet; in use; not tried yet, the least bad of them. A broker that refused a
    message may take it now; one that is avoided most likely does not.
    """
    in_use = [each for each in places if each.record.avoided_since is None]
    fresh = [each for each in in_use if each.record not in tried]
    if fresh or in_use:
        return fresh or in_use
    left = [each for each in places if each.record not in tried] or list(places)
    return [min(left, key=_badness)]


def _badness(place: broker_record.BrokerQueues) -> tuple[bool, float]:
    """Rank brokers that are avoided: rather one that answers, then the one that did so last."""
    record = place.record
    return record.silent, -(record.avoided_since or 0.0)
