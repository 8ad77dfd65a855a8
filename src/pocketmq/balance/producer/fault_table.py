"""What a producer remembers of its brokers: which was slow or failed, and until when to avoid it.

Off by default, as in Java (`sendLatencyFaultEnable`): then a retry avoids the broker that has just
failed, and nothing more; `adaptive` is the third way. What follows for the choice of a queue is in
`choice`; the pauses by latency are in `balance.profile`. One table serves all topics of a producer.
It is state that one thread or loop may touch at a time; the clock is the caller's and may be any
that does not run backwards.

5.x also has a detector. Its probe is a cheap request (GET_MAX_OFFSET of queue 0 of some topic the
producer has a route for) to the broker's master. Any answer in time makes the broker reachable
again; silence changes nothing.
"""

from collections.abc import Callable

import msgspec

from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.balance.profile import Profile, rules_of

_NEVER = float("-inf")
ROUND_INTERVAL = 3.0
"""Seconds between rounds, and before the first."""
PROBE_INTERVAL = 2.0
"""Seconds before the same broker is due again."""
PROBE_TIMEOUT = 0.2


class BrokerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One broker's entry at one time, for display."""

    broker: str
    latency: float
    """Seconds the last try took."""
    available: bool
    available_in: float
    """Seconds until the broker is used normally again; 0 when it is available."""
    reachable: bool
    reason: str
    """Why the broker is or was last avoided; empty if it never was."""
    unanswered: int = 0
    """Adaptive producers: tries given up without an answer. Each may have stored its message."""


class _Item:
    __slots__ = ("check_at", "latency", "reachable", "reason", "until")

    def __init__(self) -> None:
        self.latency = 0.0
        self.until = _NEVER
        self.reachable = True
        self.check_at = _NEVER
        self.reason = ""


class FaultTable:
    """The latency fault table (Java: MQFaultStrategy with LatencyFaultToleranceImpl).

    `detector` says that unreachable brokers are probed (5.x), so that being unreachable means
    something; see `plan_round`.
    """

    def __init__(self, profile: Profile, *, detector: bool = False, worst_index: int = 0) -> None:
        self.profile = profile
        self.rules = rules_of(profile)
        self.detector = detector and self.rules.tracks_reachability
        self._items: dict[str, _Item] = {}
        self._worst = RoundRobin(worst_index)

    def update(
        self, broker: str, latency: float, *, isolate: bool, reachable: bool = True, now: float
    ) -> None:
        """Record a try: how long it took, and whether it counts as a failure.

        4.x forgets the earlier pause with every try, even a successful one; 5.x only ever makes a
        pause longer, so one quick answer does not bring a broker back.
        """
        item = self._items.get(broker)
        if item is None:
            item = self._items[broker] = _Item()
        pause = self.rules.pause_for(self.rules.isolation_latency if isolate else latency)
        item.latency = latency
        if not self.rules.pause_only_extends or (pause > 0 and now + pause > item.until):
            item.until = now + pause
            if pause > 0:
                why = "a try failed" if isolate else f"a try took {latency:.3f} s"
                item.reason = f"{why}: avoided for {pause:g} s"
        if self.rules.tracks_reachability:
            item.reachable = reachable

    def is_available(self, broker: str, now: float) -> bool:
        """Return whether a broker's pause is over; an unknown broker has none."""
        item = self._items.get(broker)
        return item is None or now >= item.until

    def is_reachable(self, broker: str) -> bool:
        """Return whether the last try, or a probe since, reached the broker. Always true in 4.x."""
        item = self._items.get(broker)
        return item is None or item.reachable

    def mark_reachable(self, broker: str) -> None:
        """Note that a probe got an answer. The pause stays as it is."""
        item = self._items.get(broker)
        if item is not None:
            item.reachable = True

    def forget(self, broker: str) -> None:
        """Remove a broker from the table."""
        self._items.pop(broker, None)

    def take_due(self, now: float, interval: float) -> list[str]:
        """List the brokers whose probe is due, and make their next one due after `interval`."""
        due = [broker for broker, item in self._items.items() if now >= item.check_at]
        for broker in due:
            self._items[broker].check_at = now + interval
        return due

    def least_bad(self, now: float) -> str | None:
        """Pick a broker when all are paused, as 4.x does: the better half take turns.

        Better is available, then quicker, then free again sooner; ties keep the order in which
        brokers were added (Java: its hash table's order).
        """
        names = sorted(self._items, key=lambda name: self._badness(name, now))
        if not names:
            return None
        half = len(names) // 2
        return names[self._worst.advance() % half] if half else names[0]

    def _badness(self, broker: str, now: float) -> tuple[bool, float, float]:
        item = self._items[broker]
        return now < item.until, item.latency, item.until

    def snapshot(self, now: float) -> tuple[BrokerHealth, ...]:
        """Return every broker of the table, by name."""
        return tuple(
            BrokerHealth(
                broker=broker,
                latency=item.latency,
                available=now >= item.until,
                available_in=max(0.0, item.until - now),
                reachable=item.reachable,
                reason=item.reason,
            )
            for broker, item in sorted(self._items.items())
        )


class Probe(msgspec.Struct, frozen=True):
    """Send the broker a cheap request; on an answer call `FaultTable.mark_reachable`."""

    broker: str
    address: str
    timeout: float = PROBE_TIMEOUT


def plan_round(
    faults: FaultTable,
    address_of: Callable[[str], str | None],
    now: float,
    *,
    interval: float = PROBE_INTERVAL,
    timeout: float = PROBE_TIMEOUT,
) -> list[Probe]:
    """Plan one round: probe every broker that is due, remove those whose address is unknown.

    Healthy brokers of the table are probed too, as in Java. Empty unless the table's detector is
    on, which needs the 5.x line.
    """
    if not faults.detector:
        return []
    probes = []
    for broker in faults.take_due(now, interval):
        address = address_of(broker)
        if address is None:
            faults.forget(broker)
        else:
            probes.append(Probe(broker, address, timeout))
    return probes
