"""A running proxy: its port and its client session; the service behind it starts with a client.

Must not import gRPC's library: `service` does, when it is needed.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pocketmq.client.clock import Clock, SystemClock
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import CannotStart, ListenFailed
from pocketmq.net.address import Address
from pocketmq.net.handshake import Handshake
from pocketmq.net.limits import Limits
from pocketmq.net.self_signed import SelfSigned
from pocketmq.net.tls import ServerTls
from pocketmq.proxy.front import INSIDE, Front
from pocketmq.proxy.late_start import LateStart
from pocketmq.proxy.port_tls import port_tls
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits

if TYPE_CHECKING:
    from pocketmq.proxy.service import Service

logger = logging.getLogger("pocketmq.proxy")

DEFAULT_PORT = 8081
_ANY_INSIDE = Address(INSIDE, 0)


class Proxy:
    """RocketMQ 5's gRPC service in front of a cluster. Belongs to one event loop.

    `options` say how to reach the cluster; with access control, as which super user. Port 0 is any
    free one. Clients may use TLS or not, unless `tls` says otherwise; without it the certificate is
    self-signed, and kept in the file `self_signed` if there is one.

    gRPC's library is loaded with the first client. If TLS is disabled, that library has the port
    itself and is loaded at the start.
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        limits: ProxyLimits | None = None,
        access: ProxyAccess | None = None,
        tls: ServerTls | None = None,
        self_signed: Path | None = None,
        network: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options
        self._host = host
        self._port = port
        self._limits = limits or ProxyLimits()
        self._access = access or ProxyAccess()
        self._tls = port_tls(tls, self_signed)
        self._network = network or Limits()
        self._clock = clock or SystemClock()
        self._lease: Lease | None = None
        self._front: Front | None = None
        self._service: Service | None = None
        self._late: LateStart | None = None
        self.address = ""
        """Where it listens, once it is started."""

    async def start(self, sockets: list[socket.socket] | None = None) -> Self:
        """Reach the cluster and listen, on sockets of another process if there are any.

        Raises `CannotStart`, `NameServersUnreachable`.
        """
        self._lease = await lease_session(self._options)
        wanted = Address(self._host, self._port)
        try:
            if self._tls is None:
                port = await self._serve(wanted, str, _nothing)
            else:
                port = (await self._listen(self._tls, wanted, sockets)).port
        except (RuntimeError, ListenFailed) as error:
            await self.stop()
            reason = error.reason if isinstance(error, ListenFailed) else error
            text = f"it cannot listen on {wanted}: {reason}"
            raise CannotStart("the proxy", text) from error
        except BaseException:
            await self.stop()
            raise
        self.address = str(Address(self._host, port))
        logger.info("proxy listens: address=%s %s", self.address, _shown(self._tls))
        return self

    async def stop(self) -> None:
        """End all calls, unregister all clients and leave the cluster."""
        front, self._front = self._front, None
        if front is not None:
            front.stop_listening()
        if self._late is not None:
            await self._late.close()
        service, self._service = self._service, None
        if service is not None:
            await service.end_calls()
        if front is not None:
            await front.close()
        if service is not None:
            await service.close()
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    async def _listen(
        self, tls: ServerTls | SelfSigned, wanted: Address, sockets: list[socket.socket] | None
    ) -> Address:
        """Accept clients; the first of them starts the service."""

        async def serve() -> None:
            await self._serve(_ANY_INSIDE, front.address_of, front.lead_to)

        self._late = LateStart(serve)
        handshake = Handshake(tls, (), self._network)
        self._front = front = Front(handshake, self._network, self._late.done)
        return front.listen_on(sockets) if sockets else await front.listen(*wanted)

    async def _serve(
        self,
        address: Address,
        address_of: Callable[[str], str | None],
        moved: Callable[[int], None],
    ) -> int:
        """Load gRPC's library, in a thread, and serve on an address of its own."""
        assert self._lease is not None
        session, kind = self._lease.session, await asyncio.to_thread(_service_class)
        service = kind(session, self._limits, self._access, self._clock, address_of)
        try:
            port = await service.open(address, moved)
        except BaseException:
            await service.end_calls()
            await service.close()
            raise
        self._service = service
        return port


def _service_class() -> "type[Service]":
    from pocketmq.proxy.service import Service

    return Service


def _nothing(_: int) -> None:
    """Do nothing: clients have the port themselves."""


def _shown(tls: ServerTls | SelfSigned | None) -> str:
    if tls is None:
        return "tls=disabled"
    if isinstance(tls, SelfSigned):
        return "tls=permissive certificate=self-signed"
    return f"tls={tls.mode} certificate={tls.cert}"
