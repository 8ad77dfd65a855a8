"""A broker from start to stop.

Start: the port, the store, everything that works by itself, name servers. Stop: no new connections,
answers to requests that wait, everything synced, out of the routes.
"""

import asyncio
import gc
import ipaddress
import logging
import socket
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.broker.assembly import BrokerParts, open_store
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.saving import save_changes, save_offsets
from pocketmq.broker.settings import store_options, with_kept
from pocketmq.broker.state import BrokerState
from pocketmq.errors import InvalidInput, ListenFailed
from pocketmq.host import check_for_servers
from pocketmq.net import Address, Connection, Dialer, Limits, Owner, Server, reachable_host
from pocketmq.net.clock import SystemWallClock, WallClock
from pocketmq.protocol import Command
from pocketmq.protocol.hosts import encode_host

if TYPE_CHECKING:
    from pocketmq.broker.metrics.otel_export import OtelExport
    from pocketmq.broker.metrics.server import MetricsServer

logger = logging.getLogger("pocketmq.broker")

_FAST_PORT = 2
"""How far below its port a broker listens, too, for clients with vipChannelEnabled."""


class Broker:
    """One broker. Start and stop it on the loop it lives on; it cannot be started again."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        data: Path | None = None,
        name_servers: Sequence[str] = (),
        *,
        clock: WallClock | None = None,
        limits: Limits | None = None,
        own_process: bool = False,
        given: Collection[str] = (),
        any_port: bool = False,
    ) -> None:
        """Take settings, a directory (None: only memory) and the name servers' addresses.

        Settings that were changed in an earlier run override `config`, except the keys in `given`.

        `own_process`: nothing else runs in this process, so that the garbage collector may ignore
        everything that exists after the start. `any_port`: any free port does if its own is in use.
        """
        check_for_servers("a broker")
        self.config = config or BrokerConfig()
        self._data = data
        self._name_servers = [*name_servers] or _listed(self.config.namesrv_addr)
        self._clock = clock or SystemWallClock()
        self._limits = limits or Limits(memory=self.config.max_connection_memory)
        self._own_process = own_process
        self._given = frozenset(given)
        self._any_port = any_port
        self._front = _Front()
        self._server = Server(self._front, self._limits)
        self._to_name_servers = _Deaf()
        self._dialer = Dialer(self._to_name_servers, self._limits, self.config.client_tls())
        self._parts: BrokerParts | None = None
        self._metrics: MetricsServer | OtelExport | None = None
        self.metrics_address: Address | None = None  # where Prometheus finds it
        self.bound: Address | None = None  # where it listens, which need not be what it advertises

    @property
    def state(self) -> BrokerState:
        """The state of a running broker."""
        assert self._parts is not None, "the broker is not running"
        return self._parts.state

    async def start(self) -> Address:
        """Open the store, serve clients, register; return the address that clients use.

        Name servers that are down are retried later. Raises `ListenFailed` for a port in use,
        `StoreError` for a store that cannot be opened, `InvalidInput` for invalid settings.
        """
        config = self.config
        known_ip = await _looked_up(config.broker_ip1) if config.broker_ip1 else None
        self._server.guard(config.handshake(self._limits, self._data))
        try:
            self.bound = bound = await self._listen()
            if config.fast_listen_enable:
                await self._server.listen(config.bind_address, bound.port - _FAST_PORT)
            # From here to the end of `_build` the loop does nothing else: no request comes early.
            port = config.advertised_port or bound.port
            ip = known_ip or reachable_host(bound.host)
            address = Address(config.broker_ip1 or ip, port)
            parts = self._build(address, encode_host(str(Address(ip, port))))
        except BaseException:
            await self._server.close(0)
            raise
        if config.metrics_exporter_type != "DISABLE":
            await self._show_metrics(parts.state)
        await parts.registrar.start()
        if self._own_process:
            gc.collect()
            gc.freeze()
        logger.info("broker %s serves %s", config.broker_name, address)
        return address

    async def _listen(self) -> Address:
        config = self.config
        try:
            return await self._server.listen(config.bind_address, config.listen_port)
        except ListenFailed:
            if not self._any_port or config.listen_port == 0:
                raise
        port, name = config.listen_port, config.broker_name
        logger.warning("port %d is in use; %s uses any free port", port, name)
        return await self._server.listen(config.bind_address, 0)

    async def _show_metrics(self, state: BrokerState) -> None:
        # Imported here: most brokers do without.
        host, port = self.config.metrics_prom_exporter_host, self.config.metrics_prom_exporter_port
        try:
            if self.config.metrics_exporter_type == "PROM":
                from pocketmq.broker.metrics.server import MetricsServer

                self._metrics = server = MetricsServer(state)
                self.metrics_address = await server.start(host, port)
            else:
                from pocketmq.broker.metrics.otel_export import OtelExport

                self._metrics = export = OtelExport(state)
                export.start()
        except BaseException:
            await self.stop(0)
            raise

    def _build(self, address: Address, store_host: bytes) -> BrokerParts:
        store = open_store(self.config, self._data, store_host)
        try:
            self.config = with_kept(self.config, store, self._given)
            store.keep(store_options(self.config, in_memory=store.in_memory))
            parts = BrokerParts(
                self.config,
                store,
                self._clock,
                address=str(address),
                store_host=store_host,
                name_servers=self._name_servers,
                dialer=self._dialer,
            )
            if parts.state.gate is not None:
                self._server.distrust()
            parts.start()
        except BaseException:
            store.close()
            raise
        self._front.owner = parts.dispatcher
        self._to_name_servers.lost = parts.registrar.lost
        self._parts = parts
        return parts

    async def stop(self, grace: float = 1.0) -> None:
        """Shut down gracefully; answers that are in flight get `grace` seconds."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        self._server.stop_listening()
        if self._metrics is not None:
            await self._metrics.stop()
        leaving = asyncio.create_task(parts.registrar.stop())
        await parts.dispatcher.stop()
        await self._server.close(grace)
        await parts.stop()
        await leaving
        await parts.questions.stop()
        await self._dialer.close()
        try:
            parts.state.writer.write_now()
            save_changes(parts.state)
            await save_offsets(parts.state)
        finally:
            parts.state.store.close()
        logger.info("broker %s stopped", self.config.broker_name)

    async def abort(self) -> None:
        """Stop as a killed broker does, as clients see it: connections reset, nothing unregistered.

        Only within the process it differs: the store is closed.
        """
        for connection in self._server.connections:
            connection.abort()
        await self._dialer.close(0)
        await self.stop(0)


def _nobody(_: str) -> None:
    """Ignore it."""


class _Deaf:
    """Owner of the connections to name servers, which ask nothing of a broker."""

    def __init__(self) -> None:
        self.lost: Callable[[str], None] = _nobody

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to do."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Ignore requests."""

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Report the loss: a name server drops a broker with its connection."""
        del cause
        self.lost(connection.remote_address)


class _Front:
    """Owner of the clients' connections, which hands them to the dispatcher once that is built."""

    def __init__(self) -> None:
        self.owner: Owner = _Deaf()

    def connection_opened(self, connection: Connection) -> None:
        """Pass on."""
        self.owner.connection_opened(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Pass on."""
        self.owner.requests_received(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Pass on."""
        self.owner.connection_closed(connection, cause)


def _listed(addresses: str) -> list[str]:
    return [part.strip() for part in addresses.split(";") if part.strip()]


async def _looked_up(host: str) -> str:
    """Return the IP of a host; a name is resolved once, at startup."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidInput(f"brokerIP1={host} is not an address: {error}") from error
    return str(found[0][4][0])
