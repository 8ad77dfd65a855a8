"""The gRPC service behind a proxy's port: its calls, its clients, its timers.

Importing this file loads gRPC's library and the generated messages, so `server` does it late.
"""

from collections.abc import Callable

from pocketmq.client.clock import Clock, new_random
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.net.address import Address
from pocketmq.proxy.access import AccessGate
from pocketmq.proxy.cached_cluster import CachedCluster
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.grpc_port import GrpcPort
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.service_table import generic_handler
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.target_queues import TargetQueues
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits

_STOP_GRACE = 1.0
_SWEEP = 5.0


class Service:
    """gRPC's own port and all calls. Belongs to one event loop.

    `address_of` returns the address of a call's client by that of its connection, or None.
    """

    def __init__(
        self,
        session: Session,
        limits: ProxyLimits,
        access: ProxyAccess,
        clock: Clock,
        address_of: Callable[[str], str | None],
    ) -> None:
        random = new_random()
        self._limits = limits
        self._tasks = Tasks(f"{session.client_id}: proxy")
        self._clients = Clients(session.options, clock, random)
        self._renewals = Renewals(session, self._tasks, limits, clock)
        self._clients.on_gone = self._renewals.release
        state = ProxyState(
            cluster=CachedCluster(session),
            clients=self._clients,
            renewals=self._renewals,
            choice=TargetQueues(random),
            tasks=self._tasks,
            limits=limits,
            clock=clock,
            address_of=address_of,
        )
        handler = generic_handler(state, AccessGate(session, access).admit)
        self._grpc = GrpcPort(handler, limits)

    async def open(self, address: Address, moved: Callable[[int], None]) -> int:
        """Serve, and return the port; `moved` is called with it now and each time it changes.

        Raises RuntimeError if it cannot listen there.
        """
        port = await self._grpc.open(address, moved)
        tasks, period = self._tasks, self._limits.renew_interval
        tasks.every(period, self._renewals.renew_due, "renewals", first_after=period)

        async def sweep() -> None:
            await self._clients.drop_expired(self._limits.client_expiry)

        tasks.every(_SWEEP, sweep, "expiry of clients", first_after=_SWEEP)
        return port

    async def end_calls(self) -> None:
        """Report to health checks that it serves no more, and end all calls."""
        await self._grpc.leave()
        await self._grpc.close(_STOP_GRACE)

    async def close(self) -> None:
        """Unregister all clients, after the end of their calls."""
        await self._clients.close()
        await self._renewals.released()
        await self._tasks.stop()
