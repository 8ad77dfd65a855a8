"""Which brokers there are, and were: one that went down soon is no longer listed. Pure."""

from collections.abc import Iterable

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
