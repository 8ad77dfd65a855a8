"""Where a message was born: the sender's address as records carry it."""

from pocketmq.errors import InvalidInput
from pocketmq.net import Connection
from pocketmq.protocol.hosts import V4_SIZE, encode_host

_KEY = "born_host"
_MAPPED = b"\0" * 10 + b"\xff\xff"
_UNKNOWN = bytes(V4_SIZE)


def born_host(connection: Connection) -> bytes:
    """Give a connection's address, 8 bytes for IPv4, 20 for IPv6."""
    try:
        host: bytes = connection.context[_KEY]
    except KeyError:
        host = connection.context[_KEY] = encode_peer(connection.remote_address)
    return host


def encode_peer(address: str) -> bytes:
    """Encode what a socket calls its peer; IPv4 inside IPv6 becomes IPv4, as in Java."""
    ip, _, port = address.rpartition(":")
    ip = ip.partition("%")[0].removesuffix("]")  # a zone has no place in a record
    text = f"{ip}]:{port}" if ip.startswith("[") else f"{ip}:{port}"
    try:
        host = encode_host(text)
    except InvalidInput:
        return _UNKNOWN
    if host.startswith(_MAPPED):
        return host[len(_MAPPED) :]
    return host
