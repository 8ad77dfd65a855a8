"""A running proxy: its ports, its client session, its timers."""

import logging
from pathlib import Path
from typing import Self

from pocketmq.client.clock import Clock, SystemClock, new_random
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import CannotStart, ListenFailed
from pocketmq.net.address import Address
from pocketmq.net.handshake import Handshake
from pocketmq.net.limits import Limits
from pocketmq.net.self_signed import SelfSigned
from pocketmq.net.tls import ServerTls
from pocketmq.proxy.access import AccessGate, ProxyAccess
from pocketmq.proxy.cached_cluster import CachedCluster
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.front import INSIDE, Front
from pocketmq.proxy.grpc_port import GrpcPort
from pocketmq.proxy.port_tls import port_tls
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.service_table import generic_handler
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.target_queues import TargetQueues
from pocketmq.proxy.translation.caller import peer_address
from pocketmq.proxy.translation.limits import ProxyLimits

logger = logging.getLogger("pocketmq.proxy")

DEFAULT_PORT = 8081
_ANY_INSIDE = Address(INSIDE, 0)
_STOP_GRACE = 1.0
_SWEEP = 5.0


class Proxy:
    """RocketMQ 5's gRPC service in front of a cluster. Belongs to one event loop.

    `options` say how to reach the cluster; with access control, as which super user. Port 0 is any
    free one. Clients may use TLS or not, unless `tls` says otherwise; without it the certificate is
    self-signed, and kept in the file `self_signed` if there is one.
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
        self._grpc: GrpcPort | None = None
        self._clients: Clients | None = None
        self._tasks: Tasks | None = None
        self._renewals: Renewals | None = None
        self.address = ""
        """Where it listens, once it is started."""

    async def start(self) -> Self:
        """Reach the cluster and listen. Raises `CannotStart`, `NameServersUnreachable`."""
        self._lease = await lease_session(self._options)
        try:
            state = self._assemble(self._lease)
            await self._listen(state)
        except BaseException:
            await self.stop()
            raise
        tasks, limits = state.tasks, self._limits
        period = limits.renew_interval
        tasks.every(period, state.renewals.renew_due, "renewals", first_after=period)

        async def sweep() -> None:
            await state.clients.drop_expired(limits.client_expiry)

        tasks.every(_SWEEP, sweep, "expiry of clients", first_after=_SWEEP)
        return self

    async def stop(self) -> None:
        """End all calls, unregister all clients and leave the cluster."""
        front, self._front = self._front, None
        if front is not None:
            front.stop_listening()
        grpc, self._grpc = self._grpc, None
        if grpc is not None:
            await grpc.leave()
            await grpc.close(_STOP_GRACE)
        if front is not None:
            await front.close()
        clients, self._clients = self._clients, None
        if clients is not None:
            await clients.close()
        if self._renewals is not None:
            await self._renewals.released()
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            await tasks.stop()
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    def _assemble(self, lease: Lease) -> ProxyState:
        session, random = lease.session, new_random()
        self._tasks = tasks = Tasks(f"{session.client_id}: proxy")
        self._clients = clients = Clients(self._options, self._clock, random)
        self._renewals = renewals = Renewals(session, tasks, self._limits, self._clock)
        clients.on_gone = renewals.release
        if self._tls is not None:
            self._front = Front(Handshake(self._tls, (), self._network), self._network)
        return ProxyState(
            cluster=CachedCluster(session),
            clients=clients,
            renewals=renewals,
            choice=TargetQueues(random),
            tasks=tasks,
            limits=self._limits,
            clock=self._clock,
            address_of=peer_address if self._front is None else self._front.address_of,
        )

    async def _listen(self, state: ProxyState) -> None:
        gate = AccessGate(state.cluster.session, self._access)
        handler = generic_handler(state, gate.admit)
        self._grpc = grpc = GrpcPort(handler, self._limits.largest_request)
        wanted, front = Address(self._host, self._port), self._front
        try:
            if front is None:
                port = await grpc.open(wanted, _nothing)
            else:
                await grpc.open(_ANY_INSIDE, front.lead_to)
                port = (await front.listen(*wanted)).port
        except (RuntimeError, ListenFailed) as error:
            reason = error.reason if isinstance(error, ListenFailed) else error
            text = f"it cannot listen on {wanted}: {reason}"
            raise CannotStart("the proxy", text) from error
        self.address = str(Address(self._host, port))
        logger.info("proxy listens: address=%s %s", self.address, _shown(self._tls))


def _nothing(_: int) -> None:
    """Do nothing: clients have the port themselves."""


def _shown(tls: ServerTls | SelfSigned | None) -> str:
    if tls is None:
        return "tls=disabled"
    if isinstance(tls, SelfSigned):
        return "tls=permissive certificate=self-signed"
    return f"tls={tls.mode} certificate={tls.cert}"
