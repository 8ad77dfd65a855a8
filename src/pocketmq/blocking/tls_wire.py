"""The same connection over TLS.

It keeps its own time: the kernel's timers would only end reads of the bytes underneath, and TLS
would go on reading.
"""

import socket
import time

from pocketmq.blocking.connection import BlockingConnection, MakeConnection
from pocketmq.net import Limits, Tls, parse_address
from pocketmq.net.tls import Contexts

_READ = 64 * 1024


class TlsWire(BlockingConnection):
    """A wire whose socket speaks TLS."""

    __slots__ = ()

    def _allow(self, seconds: float) -> None:
        self._socket.settimeout(max(seconds, 0.001))

    def _receive(self) -> bytes:
        return self._socket.recv(_READ)  # TLS gives no more than a record at a time


def tls_wires(tls: Tls) -> MakeConnection:
    """Give what makes wires that speak TLS; files that changed count from the next one on.

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
        return TlsWire(address, spoken, limits)

    return make
