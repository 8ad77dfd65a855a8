"""Who a client is: `<ip>@<instance name>[@unit][@STREAM]`, RocketMQ's client id.

Brokers and members of a group tell clients apart by it, and strategies sort by it.
"""

import os
import socket
from ipaddress import ip_address

from pocketmq.client.clock import Clock

DEFAULT_INSTANCE = "DEFAULT"
STREAM = "STREAM"

# Reserved for documentation: nobody is there, and nothing is sent. Asking the kernel which of our
# addresses it would use gives the one that others see.
_NOWHERE = (
    (socket.AF_INET, "192.0.2.1"),
    (socket.AF_INET6, "2001:db8::1"),
)
_LOOPBACK = "127.0.0.1"


def client_id(ip: str, instance: str, unit: str = "", *, stream: bool = False) -> str:
    """Put a client id together; `stream` marks pull consumers, as Java does."""
    parts = [ip, instance]
    if unit.strip():
        parts.append(unit)
    if stream:
        parts.append(STREAM)
    return "@".join(parts)


def instance_name(configured: str, clock: Clock, *, shared: bool = False) -> str:
    """Give the instance name a client goes by.

    Java gives each client that was not named a name of its own, `<pid>#<nanoseconds>`, except for
    consumers that broadcast (`shared`): their local offsets are kept under the client id, which
    must be the same after a restart.
    """
    if configured != DEFAULT_INSTANCE or shared:
        return configured
    return f"{os.getpid()}#{clock.tick()}"


def local_ip() -> str:
    """Give this machine's address, IPv4 if it has one; IPv6 in brackets."""
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
