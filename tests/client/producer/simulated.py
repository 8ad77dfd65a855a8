"""Producers and brokers in simulated time: the shipped rule, and everything else made up.

A producer's rule is driven as a shell drives it: tries come out, outcomes go in. Brokers answer
after a while that has a tail, with so many messages at a time; a fault changes that for a while.
Ten thousand sends take a second or two, and the same seed gives the same story.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pocketmq.balance.producer.adaptive import Fleet
from pocketmq.balance.producer.broker_record import BrokerRecord
from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import RoundRobin
from pocketmq.balance.profile import V5
from pocketmq.client.producer.hooks import SendHooks
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.tries import AdaptiveRule, SendRule, Tries
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import ConnectFailed, RequestTimedOut, SendFailed, server_error
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus

BODY = b"42 EUR"
TIMEOUT = 3.0
Fault = Callable[["World", float], tuple[str, float]]
"""What happens to a request: `ok`, `busy`, `silent` or `refused`, and how many times slower."""


def none(_: "World", __: float) -> tuple[str, float]:
    return "ok", 1.0


def killed(_: "World", __: float) -> tuple[str, float]:
    return "refused", 1.0


def stopped(_: "World", __: float) -> tuple[str, float]:
    return "silent", 1.0


def slower(times: float) -> Fault:
    return lambda _, __: ("ok", times)


def gray(world: "World", _: float) -> tuple[str, float]:
    return ("busy" if world.random.random() < 0.5 else "ok"), 1.0


def hiccups(world: "World", _: float) -> tuple[str, float]:
    return "ok", (200.0 if world.random.random() < 0.05 else 1.0)


def flapping(_: "World", now: float) -> tuple[str, float]:
    return ("silent" if now % 4 < 1 else "ok"), 1.0


class ListeningFleet(Fleet):
    """Tells the world when a broker is to be probed."""

    world: "World"

    def avoid(self, record: BrokerRecord, reason: str, now: float, *, silent: bool) -> None:
        before = record.avoided_since
        super().avoid(record, reason, now, silent=silent)
        if before is None:
            self.world.changes.append((now, record.name, "avoided"))
            self.world.probe(self, record)

    def use_again(self, record: BrokerRecord, now: float) -> None:
        self.world.changes.append((now, record.name, "used again"))
        super().use_again(record, now)


@dataclass
class Sent:
    """One message: when it was sent, how long it took, where it was stored."""

    at: float
    took: float = 0.0
    failed: bool = False
    brokers: list[str] = field(default_factory=list)  # of its tries
    stored: list[str] = field(default_factory=list)


class World:
    """Producers that send to brokers named 0, 1, …; broker 0 is faulty from 10 s to 20 s."""

    def __init__(
        self,
        brokers: int,
        fault: Fault,
        *,
        adaptive: bool = True,
        producers: int = 1,
        rate: float = 500.0,
        callers: int = 0,
        until: float = 30.0,
        seed: int = 1,
        mean: float = 0.002,
        servers: int = 8,
        retries: int = 2,
        mode: SendMode = SendMode.SYNC,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.sent: list[Sent] = []
        self.changes: list[tuple[float, str, str]] = []
        self._fault, self._until, self._mean, self._mode = fault, until, mean, mode
        self._free = {str(number): [0.0] * servers for number in range(brokers)}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.fleets: list[ListeningFleet] = []
        queues = tuple(
            MessageQueue("orders", name, number) for name in self._free for number in range(4)
        )
        message = Message("orders", BODY)
        self._outgoing = Outgoing("orders", BODY, "", "1", messages=(message,))
        for number in range(producers):
            rule, publication = self._producer(queues, seed * 1000 + number, adaptive, retries)
            if callers:  # each sends its next message when the last one has ended
                for _ in range(callers):
                    self._again(rule, publication)
            else:
                self._arrive(rule, publication, rate / producers)

    def _producer(
        self, queues: tuple[MessageQueue, ...], seed: int, adaptive: bool, retries: int
    ) -> tuple[SendRule, Publication]:
        own = random.Random(seed)
        fleet = ListeningFleet(own.random)
        fleet.world = self
        self.fleets.append(fleet)
        nothing: Any = None  # no session: there are no hooks to call, and no table to keep
        faults: Any = SimpleNamespace(
            table=None, detector=False, fleet=fleet, update=lambda _: None
        )
        hooks = SendHooks(nothing, "shop", [])
        rule = (AdaptiveRule if adaptive else SendRule)(
            ProducerOptions(group="shop", retries=retries),
            V5, faults, hooks,
            now=lambda: self.now, chance=own.randrange, refresh_route=lambda _: None,
        )  # fmt: skip
        publication = Publication("orders", RoundRobin(own.randrange(64)))
        publication.take(queues)
        publication.by_broker = fleet.topic(queues, 0.0)
        return rule, publication

    def run(self) -> "World":
        while self._events:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        return self

    def at(self, when: float, happen: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, happen))

    # What producers do

    def _arrive(self, rule: SendRule, publication: Publication, rate: float) -> None:
        def arrive() -> None:
            if self.now < self._until:
                self._send(rule, publication, lambda: None)
                self.at(self.now + self.random.expovariate(rate), arrive)

        self.at(self.random.expovariate(rate), arrive)

    def _again(self, rule: SendRule, publication: Publication) -> None:
        def again() -> None:
            if self.now < self._until:
                self._send(rule, publication, again)

        self.at(0.0, again)

    def _send(self, rule: SendRule, publication: Publication, then: Callable[[], None]) -> None:
        sent = Sent(self.now)
        self.sent.append(sent)
        tries = rule.tries(self._outgoing, publication, None, self._mode, TIMEOUT, self.now)
        self._go_on(sent, tries, None, then)

    def _go_on(self, sent: Sent, tries: Tries, outcome: Any, then: Callable[[], None]) -> None:
        try:
            queue, timeout = tries.send(outcome)
        except (StopIteration, SendFailed) as end:
            sent.took = self.now - sent.at
            sent.failed = isinstance(end, SendFailed)
            then()
            return
        sent.brokers.append(queue.broker_name)
        answer = self._serve(sent, queue)
        after, result = next(answer)
        if after is None or after - self.now > timeout:
            result = RequestTimedOut("it", "SEND", timeout)
            after = self.now + timeout
        self.at(after, lambda: self._go_on(sent, tries, result, then))

    # What brokers do

    def _serve(self, sent: Sent, queue: MessageQueue) -> Iterator[tuple[float | None, Any]]:
        name = queue.broker_name
        kind, times = self._now_at(name)
        wire = 0.0002
        if kind == "silent":
            yield None, None
        if kind == "refused":
            yield self.now + wire, ConnectFailed(name, "connection refused")
        if kind == "busy":
            yield self.now + wire, server_error(2, "busy", request="SEND", address=name)
        began = max(self.now, self._free[name][0])
        took = self.random.lognormvariate(0.0, 0.4) * self._mean * times
        heapq.heapreplace(self._free[name], began + took)
        sent.stored.append(name)
        yield began + took + wire, SendReceipt(
            status=SendStatus.SEND_OK, message_id="1", offset_message_id="2", queue=queue,
            queue_offset=7,
        )  # fmt: skip

    def _now_at(self, name: str) -> tuple[str, float]:
        faulty = name == "0" and 10.0 <= self.now < 20.0
        return self._fault(self, self.now) if faulty else ("ok", 1.0)

    def probe(self, fleet: Fleet, record: BrokerRecord) -> None:
        pause = fleet.next_probe(record, self.now)

        def ask() -> None:
            kind, _ = self._now_at(record.name)
            if record.avoided_since is None:
                return
            if kind in {"ok", "busy"}:
                fleet.use_again(record, self.now)
            else:
                self.probe(fleet, record)

        if pause is not None:
            self.at(self.now + pause, ask)

    # What came of it

    def during(self, begin: float, end: float) -> list[Sent]:
        return [each for each in self.sent if begin <= each.at < end]

    def share(self, begin: float, end: float, broker: str = "0") -> float:
        """The part of the messages sent meanwhile whose first try went to a broker."""
        counts = Counter(each.brokers[0] for each in self.during(begin, end))
        return counts[broker] / counts.total()

    def slowest(self, part: float, begin: float, end: float) -> float:
        took = sorted(each.took for each in self.during(begin, end))
        return took[int(part * (len(took) - 1))]

    def errors(self) -> int:
        return sum(each.failed for each in self.sent)

    def twice(self) -> int:
        return sum(len(each.stored) > 1 for each in self.sent)
