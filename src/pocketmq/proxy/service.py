"""The service behind a proxy's port: its methods, its clients, its timers.

Importing this file loads protobuf's library and the messages, so `server` does it late.
"""

from pocketmq.client.clock import Clock, new_random
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.proxy import reflection
from pocketmq.proxy.access import AccessGate
from pocketmq.proxy.cached_cluster import CachedCluster
from pocketmq.proxy.calls.shortcuts import Shortcuts
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.health import ProxyHealth
from pocketmq.proxy.methods import Methods
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.service_table import service_methods
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.target_queues import TargetQueues
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits

_SWEEP = 5.0


class Service:
    """All methods of a proxy. Belongs to one event loop."""

    def __init__(
        self, session: Session, limits: ProxyLimits, access: ProxyAccess, clock: Clock
    ) -> None:
        random = new_random()
        self._tasks = Tasks(f"{session.client_id}: proxy")
        self._clients = Clients(session.options, clock, random)
        self._renewals = Renewals(session, self._tasks, limits, clock)
        self._clients.on_gone = self._renewals.release
        self._health = ProxyHealth()
        state = ProxyState(
            cluster=CachedCluster(session),
            clients=self._clients,
            renewals=self._renewals,
            choice=TargetQueues(random),
            tasks=self._tasks,
            limits=limits,
            clock=clock,
        )
        gate = AccessGate(session, access)
        short_ways = not access.authenticate
        self.shortcuts = Shortcuts.chosen(state) if short_ways else None
        """What plain calls need in the core; None without it."""
        own = service_methods(state, gate.admit, self.shortcuts, short_ways=short_ways)
        self.methods: Methods = {**own, **self._health.methods, **reflection.methods()}
        """What a port serves."""
        period = limits.renew_interval
        self._tasks.every(period, self._renewals.renew_due, "renewals", first_after=period)

        async def sweep() -> None:
            await self._clients.drop_expired(limits.client_expiry)

        self._tasks.every(_SWEEP, sweep, "expiry of clients", first_after=_SWEEP)

    def leave(self) -> None:
        """Report to health checks that it serves no more."""
        self._health.leave()

    async def close(self) -> None:
        """Unregister all clients, after the end of their calls."""
        await self._clients.close()
        await self._renewals.released()
        await self._tasks.stop()
