"""A running proxy: its port and its client session; the service behind it starts with a client.

Must not import protobuf's library and grpcio: `service` and `grpc_port` do, when they are needed.
"""

import asyncio
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pocketmq.client.clock import Clock, SystemClock
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import CannotStart, ListenFailed
from pocketmq.net import Address, Handshake, Limits, ServerTls
from pocketmq.net.self_signed import SelfSigned
from pocketmq.proxy.front import Front, LateStart, port_tls
from pocketmq.proxy.native_inlet import NativeInlet, native_core
from pocketmq.proxy.relay_inlet import INSIDE, RelayInlet
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits

if TYPE_CHECKING:
    from pocketmq.proxy.grpc_port import GrpcPort
    from pocketmq.proxy.service import Service

logger = logging.getLogger("pocketmq.proxy")

DEFAULT_PORT = 8081
_ANY_INSIDE = Address(INSIDE, 0)
_STOP_GRACE = 1.0


class Proxy:
    """RocketMQ 5's gRPC service in front of a cluster. Belongs to one event loop.

    `options` say how to reach the cluster; with access control, as which super user. Port 0 is any
    free one. Clients may use TLS or not, unless `tls` says otherwise; without it the certificate is
    self-signed, and kept in the file `self_signed` if there is one.

    The libraries it needs are loaded with the first client. Without the native core grpcio serves;
    if TLS is disabled then, grpcio has the port itself and is loaded at the start.
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
        self._inlet: NativeInlet | RelayInlet | None = None
        self._grpcio: GrpcPort | None = None
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
            if self._tls is None and native_core() is None:
                port = await self._serve_by_grpcio(wanted)
            else:
                port = (await self._listen(wanted, sockets)).port
        except (RuntimeError, ListenFailed) as error:
            await self.stop()
            reason = error.reason if isinstance(error, ListenFailed) else error
            text = f"it cannot listen on {wanted}: {reason}"
            raise CannotStart("the proxy", text) from error
        except BaseException:
            await self.stop()
            raise
        self.address = str(Address(self._host, port))
        logger.info("proxy listening: address=%s %s", self.address, _shown(self._tls))
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
            service.leave()
        if self._grpcio is not None:
            await self._grpcio.close(_STOP_GRACE)
        if isinstance(self._inlet, NativeInlet):
            await self._inlet.end_calls(_STOP_GRACE)
        if front is not None:
            await front.close()
        if service is not None:
            await service.close()
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    async def _listen(self, wanted: Address, sockets: list[socket.socket] | None) -> Address:
        """Accept clients; the first of them starts the service."""
        self._late = late = LateStart(self._serve)
        core = native_core()
        if core is None:
            self._inlet = RelayInlet(self._network, late.done)
        else:
            self._inlet = NativeInlet(core, self._limits, self._network, late.done)
        handshake = Handshake(self._tls, (), self._network)
        self._front = front = Front(handshake, self._network, self._inlet)
        return front.listen_on(sockets) if sockets else await front.listen(*wanted)

    async def _serve(self) -> None:
        """Start the service for the first client."""
        if isinstance(self._inlet, NativeInlet):
            service = await self._load()
            self._inlet.serve(service.methods, service.shortcuts)
        else:
            await self._serve_by_grpcio(_ANY_INSIDE)

    async def _serve_by_grpcio(self, address: Address) -> int:
        """Let grpcio listen on an address, and return its port."""
        relay, service = self._inlet, await self._load()
        port_class = await asyncio.to_thread(_grpc_port_class)
        if isinstance(relay, RelayInlet):
            self._grpcio = port_class(service.methods, self._limits, relay.address_of)
            return await self._grpcio.open(address, relay.lead_to)
        self._grpcio = port_class(service.methods, self._limits, str)
        return await self._grpcio.open(address, lambda _: None)

    async def _load(self) -> "Service":
        """Load the libraries, in a thread, and start the service; a failed start is repeated."""
        if self._service is None:
            assert self._lease is not None
            kind = await asyncio.to_thread(_service_class)
            self._service = kind(self._lease.session, self._limits, self._access, self._clock)
        return self._service


def _service_class() -> "type[Service]":
    from pocketmq.proxy.service import Service

    return Service


def _grpc_port_class() -> "type[GrpcPort]":
    from pocketmq.proxy.grpc_port import GrpcPort

    return GrpcPort


def _shown(tls: ServerTls | SelfSigned | None) -> str:
    if tls is None:
        return "tls=disabled"
    if isinstance(tls, SelfSigned):
        return "tls=permissive certificate=self-signed"
    return f"tls={tls.mode} certificate={tls.cert}"
