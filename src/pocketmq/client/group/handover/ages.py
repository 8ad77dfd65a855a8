"""How long ago a broker stored a notice, though its clock and this machine's may disagree.

A broker's clock is compared with the loop's by the member's own notices: one was stored after it
was sent and before it was heard. All its notices together bound the difference of the two clocks.
Ages are the lowest that these bounds allow, so a notice never looks older than it is; what was
heard late cannot spoil them. Belongs to one event loop.
"""

from collections.abc import Callable

import msgspec

_MOST_SENT = 16
"""Notices to a broker that were sent and not heard yet. Others are lost, or the bus is behind."""
_TICK = 0.001
"""Brokers note whole milliseconds."""


class ClockBounds(msgspec.Struct, frozen=True):
    """What a broker's clock is ahead of the loop's, in seconds: at least, at most."""

    least: float
    most: float

    def narrowed(self, seen: "ClockBounds") -> "ClockBounds":
        """Return what both allow; what was seen last if they exclude each other.

        Then a clock was set, the two drifted apart, or another process is the broker now.
        """
        both = ClockBounds(max(self.least, seen.least), min(self.most, seen.most))
        return both if both.least <= both.most else seen


class NoticeAges:
    """The ages of notices on the buses of one member."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sent: dict[str, dict[int, float]] = {}  # by broker, then by the hash of the body
        self._bounds: dict[str, ClockBounds] = {}

    def sent(self, broker: str, body: bytes) -> None:
        """Note that this member is about to send a notice."""
        sent = self._sent.setdefault(broker, {})
        if len(sent) >= _MOST_SENT:
            del sent[next(iter(sent))]
        sent[hash(body)] = self._now()

    def heard(self, broker: str, body: bytes, stored: float) -> float:
        """Return the age of a notice by its store time; 0 as long as nothing bounds it."""
        now = self._now()
        sent_at = self._sent.get(broker, {}).pop(hash(body), None)
        known = self._bounds.get(broker)
        if sent_at is not None:
            seen = ClockBounds(stored - now, stored + _TICK - sent_at)
            known = self._bounds[broker] = seen if known is None else known.narrowed(seen)
        return 0.0 if known is None else max(0.0, now - (stored - known.least))

    def forget(self, broker: str) -> None:
        """Forget a broker whose bus is not listened to any more."""
        self._sent.pop(broker, None)
        self._bounds.pop(broker, None)
