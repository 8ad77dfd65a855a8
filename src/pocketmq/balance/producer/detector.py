"""The reachability detector of 5.x: which brokers to probe now, and how.

A probe is a cheap request (GET_MAX_OFFSET of queue 0 of some topic the producer knows) to the
broker's master. Any answer in time makes the broker reachable again; silence changes nothing.
"""

from collections.abc import Callable

import msgspec

from pocketmq.balance.producer.fault_table import FaultTable

ROUND_INTERVAL = 3.0
"""Seconds between rounds, and before the first."""
PROBE_INTERVAL = 2.0
"""Seconds before the same broker is due again."""
PROBE_TIMEOUT = 0.2


class Probe(msgspec.Struct, frozen=True):
    """Ask the broker for something small; on an answer call `FaultTable.mark_reachable`."""

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
    """Plan one round: probe every broker that is due, forget those whose address is unknown.

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
