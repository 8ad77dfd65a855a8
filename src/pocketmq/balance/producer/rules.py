"""The producer's constants that differ between RocketMQ 4.x and 5.x, as one table per line.

Kept exactly, because operators compare: a slow broker must be left alone for as long by a Python
producer as by a Java producer of the same line.
"""

import msgspec

from pocketmq.balance.profile import Profile
from pocketmq.errors import InvalidInput, ResponseCode

SEND_TIMEOUT = 3.0
RETRIES = 2
COMPRESS_FROM = 4096

_RETRY_CODES = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)


class ProducerRules(msgspec.Struct, frozen=True, kw_only=True):
    """What one client line does with slow brokers and with failed tries. Times are seconds."""

    pauses: tuple[tuple[float, float], ...]
    """Pairs of a latency and the pause it earns, slowest first; faster brokers earn none."""
    isolation_latency: float
    """The latency a failed try counts as."""
    pause_only_extends: bool
    """Whether a shorter pause, or none, leaves a longer one in place."""
    tracks_reachability: bool
    client_error_isolates: bool
    """Whether a broker is blamed when only its address is unknown."""
    retry_codes: frozenset[int]
    """The refusals after which a synchronous send asks another broker."""

    def pause_for(self, latency: float) -> float:
        """Give how long a broker is left alone after answering this slowly."""
        for slow_from, pause in self.pauses:
            if latency >= slow_from:
                return pause
        return 0.0


RULES: dict[str, ProducerRules] = {
    "4.x": ProducerRules(
        pauses=((15, 600), (3, 180), (2, 120), (1, 60), (0.55, 30), (0.1, 0), (0.05, 0)),
        isolation_latency=30,
        pause_only_extends=False,
        tracks_reachability=False,
        client_error_isolates=True,
        retry_codes=_RETRY_CODES,
    ),
    "5.x": ProducerRules(
        pauses=((15, 30), (5, 10), (3, 6), (1.8, 5), (0.55, 2), (0.1, 0), (0.05, 0)),
        isolation_latency=10,
        pause_only_extends=True,
        tracks_reachability=True,
        client_error_isolates=False,
        retry_codes=_RETRY_CODES | {ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY},
    ),
}


def rules_of(profile: Profile) -> ProducerRules:
    """Give the table of a profile's line. Raises `InvalidInput` for a line nobody knows."""
    try:
        return RULES[profile.line]
    except KeyError:
        raise InvalidInput(f"no producer rules for the line {profile.line!r}") from None
