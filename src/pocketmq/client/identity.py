"""RocketMQ's client id: `<ip>@<instance name>[@unit][@STREAM][@pm1]`.

It identifies a client to brokers and to the members of a group, and strategies sort by it. Brokers
and Java clients read nothing out of it. The last part marks members that hand queues over
(STICKY): it is in every member list, so all members see alike who does.
"""

import os
import socket
from ipaddress import ip_address

from pocketmq.client.clock import Clock
from pocketmq.model.group_balance import HANDOVER_MARK

DEFAULT_INSTANCE = "DEFAULT"
STREAM = "STREAM"
HANDOVER_VERSION = 1
"""The version of the hand-over protocol that is spoken here."""

# Reserved for documentation: no host has them, and nothing is sent. The kernel's choice of our own
# address for such a connection is the address that other hosts see.
_NOWHERE = (
    (socket.AF_INET, "192.0.2.1"),
    (socket.AF_INET6, "2001:db8::1"),
)
_LOOPBACK = "127.0.0.1"


def client_id(
    ip: str, instance: str, unit: str = "", *, stream: bool = False, hands_over: bool = False
) -> str:
    """Return a client id; `stream` marks pull consumers, as in Java."""
    parts = [ip, instance]
    if unit.strip():
        parts.append(unit)
    if stream:
        parts.append(STREAM)
    mark = f"{HANDOVER_MARK}{HANDOVER_VERSION}" if hands_over else ""
    return "@".join(parts) + mark


def instance_name(configured: str, clock: Clock, *, shared: bool = False) -> str:
    """Return a client's instance name.

    As in Java, a client without a configured name gets a unique one, `<pid>#<nanoseconds>`, except
    for consumers that broadcast (`shared`): their local offsets are stored under the client id,
    which must be the same after a restart.
    """
    if configured != DEFAULT_INSTANCE or shared:
        return configured
    return f"{os.getpid()}#{clock.tick()}"


def local_ip() -> str:
    """Return this machine's address, IPv4 if it has one; IPv6 in brackets."""
    for family, nowhere in _NOWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((nowhere, 9))
                found: str = probe.getsockname()[0]
        except OSError:
            continue
        if not ip_address(found.partition("%")[0]).is_unspecified:
            return f"[{found}]" if family == socket.AF_INET6 else found
    return _LOOPBACK
