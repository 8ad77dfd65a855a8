"""Hand-overs of queues as their two members report them, put together. Pure.

The giver tells when it stopped and when its last message was finished, the heir when it started.
Both times are wall-clock times, perhaps of two machines. They are never corrected: a difference of
clocks cannot be told from a pause or from two owners. A queue whose heir started before its giver
stopped counts as owned twice for that time; `one_clock` says whether that is certain.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from pocketmq.balance.story.timeline import name_of
from pocketmq.model import QueueName
from pocketmq.model.rebalance_event import Handover, RebalanceEvent

LOST = "lost"
T = TypeVar("T")
MOST_APART = 120.0
"""Seconds between the times of a giver and an heir up to which they may tell of one hand-over."""


class HandedOver(msgspec.Struct, frozen=True, kw_only=True):
    """One queue's way from a member to the next; None where neither of them reported."""

    queue: QueueName
    kind: str
    giver: str | None
    heir: str | None
    offset: int | None
    stopped: float | None
    started: float | None
    drained: float | None

    @property
    def without_owner(self) -> float | None:
        """Seconds in which no member started messages; 0 if the heir started first."""
        if self.stopped is None or self.started is None:
            return None
        return max(0.0, self.started - self.stopped)

    @property
    def two_owners(self) -> float | None:
        """Seconds from the heir's start to the giver's stop; 0 if the giver stopped first."""
        if self.stopped is None or self.started is None:
            return None
        return max(0.0, self.stopped - self.started)

    @property
    def draining(self) -> float | None:
        """Seconds from the giver's stop until its last message was finished and stored."""
        if self.stopped is None or self.drained is None:
            return None
        return max(0.0, self.drained - self.stopped)

    @property
    def one_clock(self) -> bool:
        """Whether giver and heir ran on one machine, by the address that client ids begin with."""
        return on_one_machine(self.giver, self.heir)

    @property
    def at(self) -> float:
        """When it happened, as far as reported."""
        return next((t for t in (self.started, self.stopped, self.drained) if t is not None), 0.0)


def on_one_machine(one: str | None, other: str | None) -> bool:
    """Return whether two client ids begin with the same address, so that their clocks are one."""
    host, mark, _ = (one or "").partition("@")
    return bool(host and mark) and (other or "").startswith(f"{host}@")


def handed_over(events: Iterable[RebalanceEvent]) -> list[HandedOver]:
    """Return the hand-overs that events tell of, each once, in order of time.

    Version 1 tells of none. Records are of one hand-over if queue, giver, heir and offset are the
    same. What remains is matched more loosely: a giver that left does not know its heir.
    """
    told: dict[QueueName, _Told] = defaultdict(_Told)
    for event in events:
        for record in event.handovers:
            told[name_of(record.queue)].add(record, event.client_id)
    found = [one for queue, records in told.items() for one in records.joined(queue)]
    return sorted(found, key=lambda one: (one.at, one.queue))


_Named = tuple[str | None, str | None, int | None]
_Key = tuple[str | None, str | None, int | None, float | None]


class _Told:
    """What was reported of one queue."""

    def __init__(self) -> None:
        self._givers: dict[_Key, Handover] = {}
        self._heirs: dict[_Key, Handover] = {}

    def add(self, record: Handover, teller: str) -> None:
        """Add a record; one that tells more of the same is put together with the earlier one."""
        gave = record.giver == teller or (record.giver is None and record.heir != teller)
        records = self._givers if gave else self._heirs
        key = (*_whose(record), record.stopped if gave else record.started)
        if gave and record.stopped is None:  # it tells the end of what it told before
            alike = [each for each, told in records.items() if _whose(told) == _whose(record)]
            key = alike[-1] if alike else key
        records[key] = _united(records.get(key, record), record)

    def joined(self, queue: QueueName) -> Iterator[HandedOver]:
        """Yield the hand-overs of the queue."""
        named: dict[_Named, list[Handover]] = defaultdict(list)
        for one in sorted(self._givers.values(), key=lambda one: one.stopped or 0.0):
            named[_whose(one)].append(one)
        heirs = []
        for heir in sorted(self._heirs.values(), key=lambda one: one.started or 0.0):
            same = named[_whose(heir)] if heir.giver is not None else []
            giver = _nearest(heir, same)
            if giver is None:
                heirs.append(heir)
            else:
                same.remove(giver)
                yield _pair(queue, giver, heir)
        givers = [one for some in named.values() for one in some]
        for heir in heirs:
            giver = _nearest(heir, [one for one in givers if _compatible(one, heir)])
            if giver is not None:
                givers.remove(giver)
            yield _pair(queue, giver or heir, heir)
        for alone in givers:
            yield _pair(queue, alone, alone)


def _whose(record: Handover) -> _Named:
    return record.giver, record.heir, record.offset


def _compatible(giver: Handover, heir: Handover) -> bool:
    """Return whether two records contradict each other in nothing that both tell.

    An heir that does not name its giver can only have started after it.
    """
    if giver.giver is None or giver.giver == heir.heir:
        return False
    if heir.giver is None and (giver.stopped or 0.0) > (heir.started or 0.0):
        return False
    pairs = zip(_whose(giver), _whose(heir), strict=True)
    return all(one is None or other is None or one == other for one, other in pairs)


def _nearest(heir: Handover, givers: list[Handover]) -> Handover | None:
    """Return the record nearest in time; of equally near ones the earliest."""

    def apart(giver: Handover) -> float:
        if giver.stopped is None or heir.started is None:
            return 0.0
        return abs(heir.started - giver.stopped)

    near = [giver for giver in givers if apart(giver) <= MOST_APART]
    return min(near, key=apart, default=None)


def _united(one: Handover, other: Handover) -> Handover:
    return msgspec.structs.replace(
        other,
        stopped=_first(other.stopped, one.stopped),
        started=_first(other.started, one.started),
        drained=_first(other.drained, one.drained),
    )


def _pair(queue: QueueName, giver: Handover, heir: Handover) -> HandedOver:
    return HandedOver(
        queue=queue,
        # A lock that was refused is the news, even if the heir found the queue without an owner.
        kind=LOST if giver.kind == LOST else heir.kind,
        giver=_first(giver.giver, heir.giver),
        heir=_first(heir.heir, giver.heir),
        offset=_first(heir.offset, giver.offset),
        stopped=_first(giver.stopped, heir.stopped),
        started=_first(heir.started, giver.started),
        drained=_first(giver.drained, heir.drained),
    )


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one
