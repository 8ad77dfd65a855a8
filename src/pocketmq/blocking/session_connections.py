"""Connections of callers beside those of their session: the same servers, limits and TLS settings.

Host names are resolved on the loop, whose resolver can be left at a deadline.
"""

import asyncio
import socket
import time
from collections.abc import Sequence
from ipaddress import ip_address
from socket import SOCK_STREAM

from pocketmq.blocking.connection import BlockingConnection
from pocketmq.blocking.connection_pool import (
    ConnectionPool,
    MakeConnection,
    Resolve,
    tls_connections,
)
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.client.session import Session
from pocketmq.errors import ConnectFailed
from pocketmq.net import Limits, Tls, parse_address
from pocketmq.net.reasons import reason_of


def connections_of(session: Session, thread: LoopThread) -> ConnectionPool:
    """Return a pool of connections as the session would make them."""
    tls = session.options.tls
    make = None if tls is None else _read_when_needed(tls)
    return ConnectionPool(_resolver(thread), session.calls.dialer.limits, make)


def _read_when_needed(tls: Tls) -> MakeConnection:
    """Return what makes TLS connections; certificates are read for the first one, as on the loop.

    The function raises `InvalidInput` if they cannot be used.
    """
    made: list[MakeConnection] = []

    def make(address: str, sock: socket.socket, limits: Limits) -> BlockingConnection:
        try:
            if not made:
                made.append(tls_connections(tls))
        except BaseException:
            sock.close()
            raise
        return made[0](address, sock, limits)

    return make


def _resolver(thread: LoopThread) -> Resolve:
    def resolve(address: str, deadline: float) -> Sequence[tuple[str, int]]:
        host, port = parse_address(address)
        try:
            ip_address(host)
        except ValueError:
            return thread.call(_look_up(address, host, port, deadline))
        return [(host, port)]

    return resolve


async def _look_up(address: str, host: str, port: int, deadline: float) -> list[tuple[str, int]]:
    """Resolve a host name on the loop: a thread could not stop waiting for it at the deadline."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            found = await loop.getaddrinfo(host, port, type=SOCK_STREAM)
    except TimeoutError:
        raise ConnectFailed(address, "the host name was not resolved in time") from None
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(address, reason_of(error)) from error
    return [(str(place[0]), int(place[1])) for *_, place in found]
