"""Ordered pops: a queue is locked until all that was taken is acknowledged, or its time is over.

Then the same messages are redelivered, from the first unacknowledged one on, with one more try
on its count. A client that did not get its answer asks again under the same attempt id, and gets
the same messages at once. Pure rules over values and `now_ms`, those of RocketMQ 5.x.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec


class OrderedAckRefusal(Enum):
    """Why an acknowledgement moves nothing."""

    STALE = "stale"  # of an earlier pop: no harm
    UNKNOWN = "unknown"  # of a message that was not taken


class OrderedPop(msgspec.Struct, array_like=True):
    """The latest ordered pop of a queue."""

    attempt_id: str | None
    pop_time_ms: int
    invisible_ms: int
    offsets: list[int]
    acked: int = 0  # bits, by place in `offsets`
    visible_ms: dict[int, int] = {}  # by offset, where it was changed
    counts: dict[int, int] = {}  # earlier tries, by offset

    def is_blocked(self, attempt_id: str | None, now_ms: int) -> bool:
        """Return whether another pop has to wait."""
        if self.attempt_id is not None and self.attempt_id == attempt_id:
            return False
        return self.free_at_ms(now_ms) > now_ms

    def free_at_ms(self, now_ms: int) -> int:
        """Return when the queue is free, now if it is."""
        standard = self.pop_time_ms + self.invisible_ms
        latest = now_ms
        for place, offset in enumerate(self.offsets):
            if not self.acked >> place & 1:
                latest = max(latest, self.visible_ms.get(offset, standard))
        return latest

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged."""
        return self.acked == (1 << len(self.offsets)) - 1

    @property
    def next_offset(self) -> int:
        """The first offset that is not acknowledged."""
        for place, offset in enumerate(self.offsets):
            if not self.acked >> place & 1:
                return offset
        return self.offsets[-1] + 1

    def ack(self, offset: int, pop_time_ms: int) -> OrderedAckRefusal | None:
        """Note an acknowledgement; None if it counts."""
        if pop_time_ms != self.pop_time_ms:
            return OrderedAckRefusal.STALE
        if offset not in self.offsets:
            return OrderedAckRefusal.UNKNOWN
        self.acked |= 1 << self.offsets.index(offset)
        return None

    def change(self, offset: int, pop_time_ms: int, visible_ms: int) -> bool:
        """Hide a message until another time; False if it is not in flight with this pop."""
        if pop_time_ms != self.pop_time_ms or offset not in self.offsets:
            return False
        self.visible_ms[offset] = visible_ms
        return True

    def hide_until(self, moment_ms: int) -> None:
        """Hide nothing for longer than until a time."""
        standard = self.pop_time_ms + self.invisible_ms
        for offset in self.offsets:
            self.visible_ms[offset] = min(self.visible_ms.get(offset, standard), moment_ms)

    def followed_by(self, following: "OrderedPop") -> None:
        """Carry counts over to the next pop of the queue.

        A further answer to the same attempt is no further try.
        """
        if self.attempt_id is not None and self.attempt_id == following.attempt_id:
            following.counts = dict(self.counts)
            return
        before = set(self.offsets)
        following.counts = {
            offset: self.counts.get(offset, 0) + 1
            for offset in following.offsets
            if offset in before
        }

    def count_of_queue(self) -> int:
        """Return the smallest count, for clients that read the queue's alone."""
        if len(self.counts) != len(self.offsets):
            return 0  # some come for the first time
        return min(self.counts.values(), default=0)


def ordered_pop(
    attempt_id: str | None, pop_time_ms: int, invisible_ms: int, offsets: Sequence[int]
) -> OrderedPop:
    """Make the value for a new pop."""
    return OrderedPop(attempt_id, pop_time_ms, invisible_ms, list(offsets))
