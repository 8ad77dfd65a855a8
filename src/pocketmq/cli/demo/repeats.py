"""Messages given more than once: which of them a crash explains, and which nothing explains.

Pure: works on what members reported and on the crashes of the play. A message is named by its queue
and offset, so one that a producer's retry stored twice is two messages here.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from pocketmq.pipelines.health import DeliveryRecord

OFFSETS_SAVED_EVERY = 5.0
"""Seconds between two times that a broker saves offsets (Java: flushConsumerOffsetInterval)."""
GRACE = 2.0
"""Seconds that a handler, a commit and its answer may take on a busy machine."""
CommittedOffsets = dict[tuple[str, int], int]
"""The committed offset of each queue, named by broker and number."""


class DemoDelivery(DeliveryRecord, frozen=True, kw_only=True):
    """The delivery of an order, with its number and when a broker stored it."""

    number: int
    stored: float


class MemberKilled(msgspec.Struct, frozen=True):
    """A member that was killed at a time, and what its group had committed just before."""

    client_id: str
    at: float
    committed: CommittedOffsets


class BrokerKilled(msgspec.Struct, frozen=True):
    """A broker that was killed at a time and was started again at another."""

    broker: str
    at: float
    back: float


class Crashes(msgspec.Struct, frozen=True):
    """The crashes of a play."""

    members: tuple[MemberKilled, ...] = ()
    brokers: tuple[BrokerKilled, ...] = ()


class Repeat(msgspec.Struct, frozen=True):
    """Two deliveries of one message, one after the other."""

    earlier: DemoDelivery
    later: DemoDelivery

    def __str__(self) -> str:
        one, two = self.earlier, self.later
        place = f"{one.broker}:{one.queue} offset {one.offset}"
        return f"{place} to {one.client_id}, {two.time - one.time:.2f} s later to {two.client_id}"


class Repeats(msgspec.Struct, frozen=True):
    """The repeated deliveries of a group, by what explains them."""

    by_member: list[Repeat]
    """A killed member had started them, and could not commit them any more."""
    by_broker: list[Repeat]
    """A broker was killed before it had saved the offsets that were committed."""
    by_handover: list[Repeat]
    """No crash explains them: queues changed hands."""

    @property
    def total(self) -> int:
        """The number of deliveries that were not a message's first."""
        return len(self.by_member) + len(self.by_broker) + len(self.by_handover)


def repeats_of(deliveries: Iterable[DemoDelivery], crashes: Crashes, uncommitted: float) -> Repeats:
    """Sort the repeated deliveries of one group by their causes.

    A crash excuses no more than it must: of a killed member what was not committed, and was begun
    at most `uncommitted` seconds (between two commits) before it died, plus `GRACE`; of a killed
    broker what was committed after it had last saved offsets, and came again after its restart.
    """
    found = Repeats([], [], [])
    for times in _by_message(deliveries):
        for earlier, later in pairwise(times):
            repeat = Repeat(earlier, later)
            if any(_by_member(repeat, killed, uncommitted) for killed in crashes.members):
                found.by_member.append(repeat)
            elif any(_by_broker(repeat, killed, uncommitted) for killed in crashes.brokers):
                found.by_broker.append(repeat)
            else:
                found.by_handover.append(repeat)
    return found


def waits(deliveries: Iterable[DemoDelivery], crashes: Crashes, since: float = 0.0) -> list[float]:
    """Return how long each message stored after `since` waited for its first delivery.

    Messages that waited for their broker's restart are left out: no group could have got them.
    """
    return [
        max(0.0, first.time - first.stored)
        for first, *_ in _by_message(deliveries)
        if first.stored >= since
        and not any(
            first.broker == killed.broker and first.stored < killed.back and first.time >= killed.at
            for killed in crashes.brokers
        )
    ]


def _by_message(deliveries: Iterable[DemoDelivery]) -> Iterable[Sequence[DemoDelivery]]:
    given: dict[tuple[str, int, int], list[DemoDelivery]] = defaultdict(list)
    for one in deliveries:
        given[one.broker, one.queue, one.offset].append(one)
    return [sorted(times, key=lambda delivery: delivery.time) for times in given.values()]


def _by_member(repeat: Repeat, killed: MemberKilled, uncommitted: float) -> bool:
    earlier, later = repeat.earlier, repeat.later
    return (
        earlier.client_id == killed.client_id
        and later.client_id != killed.client_id
        and earlier.offset >= killed.committed.get((earlier.broker, earlier.queue), 0)
        and earlier.time >= killed.at - uncommitted - GRACE
        and later.time >= killed.at
    )


def _by_broker(repeat: Repeat, killed: BrokerKilled, uncommitted: float) -> bool:
    earlier, later = repeat.earlier, repeat.later
    forgotten = killed.at - OFFSETS_SAVED_EVERY - uncommitted - GRACE
    return (
        earlier.broker == killed.broker
        and forgotten <= earlier.time < killed.back
        and later.time >= killed.back
    )
