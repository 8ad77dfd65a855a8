"""One asyncio transport for every part, server and client: frames, deadlines, limits.

Handles connections and commands; independent of what a request means.
"""

from pocketmq.net.address import Address, parse_address, parse_addresses
from pocketmq.net.connection import Connection
from pocketmq.net.dialer import Dialer
from pocketmq.net.handshake import Handshake, parse_networks
from pocketmq.net.handshake_settings import HandshakeSettings
from pocketmq.net.inbox import Owner
from pocketmq.net.limits import Limits
from pocketmq.net.server import Server, reachable_host
from pocketmq.net.tls import ClientAuth, ServerTls, Tls, TlsMode

__all__ = [
    "Address",
    "ClientAuth",
    "Connection",
    "Dialer",
    "Handshake",
    "HandshakeSettings",
    "Limits",
    "Owner",
    "Server",
    "ServerTls",
    "Tls",
    "TlsMode",
    "parse_address",
    "parse_addresses",
    "parse_networks",
    "reachable_host",
]
