"""How connections of callers are made: plain ones, and those over TLS.

The rules for certificates are those of `net.tls`, as on the loop.
"""

import socket
import time
from collections.abc import Callable, Sequence

from pocketmq.blocking.connection import READ, BlockingConnection
from pocketmq.errors import ConnectFailed
from pocketmq.net import Limits, Tls, parse_address
from pocketmq.net.reasons import reason_of
from pocketmq.net.tls import Contexts

MakeConnection = Callable[[str, socket.socket, Limits], BlockingConnection]
"""Makes a connection of a connected socket; raises OSError."""


class TlsBlockingConnection(BlockingConnection):
    """A connection over TLS.

    It keeps its own time: the kernel's timers would only end reads of the bytes underneath, and
    TLS would go on reading.
    """

    __slots__ = ()

    def _allow(self, seconds: float) -> None:
        self._socket.settimeout(max(seconds, 0.001))

    def _new_spin(self, sock: socket.socket) -> None:
        """Return None: what the socket brings is encrypted."""

    def _receive(self) -> bytes:
        return self._socket.recv(READ)  # TLS returns one record at a time at most


def tls_connections(tls: Tls) -> MakeConnection:
    """Return a function that makes TLS connections; changed files count from the next one on.

    Raises `InvalidInput` if its files cannot be used.
    """
    contexts = Contexts(tls, time.monotonic)

    def make(address: str, sock: socket.socket, limits: Limits) -> BlockingConnection:
        host, _ = parse_address(address)
        try:
            spoken = contexts.current().wrap_socket(sock, server_hostname=tls.server_name or host)
        except BaseException:
            sock.close()
            raise
        return TlsBlockingConnection(address, spoken, limits)

    return make


def connect(
    address: str,
    places: Sequence[tuple[str, int]],
    limits: Limits,
    deadline: float,
    make: MakeConnection | None = None,
) -> BlockingConnection:
    """Connect to the first of `places` that accepts, until `deadline` by the monotonic clock.

    `make` makes the connection of a socket, whose timeout is what is left. Raises `ConnectFailed`.
    """
    failure = ConnectFailed(address, "the host name does not resolve to any address")
    for place in places:
        left = min(limits.connect, deadline - time.monotonic())
        if left <= 0:
            raise ConnectFailed(address, "no connection in the time allowed")
        try:
            sock = socket.create_connection(place, left)
            return (make or BlockingConnection)(address, sock, limits)
        except TimeoutError as error:
            failure = ConnectFailed(address, f"no connection within {left:g} s")
            failure.__cause__ = error
        except (OSError, UnicodeError) as error:
            failure = ConnectFailed(address, reason_of(error))
            failure.__cause__ = error
    raise failure
