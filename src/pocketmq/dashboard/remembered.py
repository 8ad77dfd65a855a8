"""What one poll cannot tell, since it takes the polls before. Pure: times are arguments.

Which brokers there were: one that went down soon is no longer listed. Whether a group is
settling: when a member joins or leaves, or queues come or go, queues are without an owner, or
have two, for a moment. That is a problem only if it lasts.
"""

from collections.abc import Hashable, Iterable

from pocketmq.admin.findings import GroupFinding
from pocketmq.admin.gathered import ServerPlace

REMEMBERED = 3600.0
"""Seconds for which a broker is shown that no name server lists any more."""


class BrokerRoll:
    """The brokers that were listed lately, by address."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[ServerPlace, float]] = {}

    def call(self, listed: Iterable[ServerPlace] | None, now: float) -> list[ServerPlace]:
        """Return the brokers listed now and lately; None if no server could be asked."""
        if listed is not None:
            here = list(listed)
            taken = {(place.cluster, place.broker, place.broker_id) for place in here}
            # A broker that has moved is not also down at its old address.
            self._seen = {
                address: (place, at)
                for address, (place, at) in self._seen.items()
                if (place.cluster, place.broker, place.broker_id) not in taken
                and now - at < REMEMBERED
            }
            self._seen |= {place.address: (place, now) for place in here}
        return sorted(
            (place for place, _ in self._seen.values()),
            key=lambda place: (place.cluster, place.broker, place.broker_id),
        )


GRACE = 20.0
"""Seconds after a change in which members settle; they check every 20 by themselves."""
_PASSING = {"unowned queues", "owned twice"}

Findings = tuple[GroupFinding, ...]


class Settling:
    """Separates problems of one group from what passes."""

    def __init__(self) -> None:
        self._shape: Hashable | None = None
        self._changed: float | None = None

    def sort(
        self, findings: Iterable[GroupFinding], shape: Hashable, at: float
    ) -> tuple[Findings, Findings]:
        """Return the problems, and what is normal for now; `shape` is members and queues."""
        if self._shape is not None and shape != self._shape:
            self._changed = at
        self._shape = shape
        found = tuple(findings)
        if self._changed is None or at - self._changed >= GRACE:
            return found, ()
        passing = tuple(each for each in found if each.kind in _PASSING)
        return tuple(each for each in found if each.kind not in _PASSING), passing


def passing_text(passing: Findings) -> str:
    """Return what is normal for now as one line, empty if there is nothing."""
    if not passing:
        return ""
    told = ", ".join(f"{each.kind} ({each.subject})" for each in passing)
    return f"A rebalance is in progress. Normal for some seconds: {told}."
