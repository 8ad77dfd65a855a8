"""One asyncio transport for every part, server and client: frames, deadlines, limits.

Knows connections and commands; does not know what any request means.
"""

from pocketmq.net.address import Address, parse_address, parse_addresses
from pocketmq.net.connection import Connection
from pocketmq.net.dialer import Dialer
from pocketmq.net.limits import Limits
from pocketmq.net.owner import Owner
from pocketmq.net.server import Server, reachable_host

__all__ = [
    "Address",
    "Connection",
    "Dialer",
    "Limits",
    "Owner",
    "Server",
    "parse_address",
    "parse_addresses",
    "reachable_host",
]
