"""A broker from start to stop.

Start: the port, the store, everything that works by itself, name servers. Stop: nobody new, answers
to those who wait, everything on the device, out of the routes.
"""

import asyncio
import gc
import ipaddress
import logging
import socket
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.broker.clock import Clock, SystemClock
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.kept_settings import with_kept
from pocketmq.broker.parts import Parts, open_store
from pocketmq.broker.retention import store_options
from pocketmq.broker.saving import save_changes, save_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.errors import InvalidInput
from pocketmq.net import Address, Connection, Dialer, Limits, Owner, Server
from pocketmq.net.server import reachable_host
from pocketmq.protocol.command import Command
from pocketmq.protocol.hosts import encode_host

if TYPE_CHECKING:
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
        clock: Clock | None = None,
        limits: Limits | None = None,
        own_process: bool = False,
        given: Collection[str] = (),
    ) -> None:
        """Take settings, a directory (None: only memory) and the name servers' addresses.

        What was changed while the broker ran before counts again, but for the keys in `given`.

        `own_process` says that nothing else runs here, so that the garbage collector may forget
        about everything that exists after the start.
        """
        self.config = config or BrokerConfig()
        self._data = data
        self._name_servers = [*name_servers] or _listed(self.config.namesrv_addr)
        self._clock = clock or SystemClock()
        self._limits = limits or Limits(memory=self.config.max_connection_memory)
        self._own_process = own_process
        self._given = frozenset(given)
        self._front = _Front()
        self._server = Server(self._front, self._limits)
        self._to_name_servers = _Deaf()
        self._dialer = Dialer(self._to_name_servers, self._limits, self.config.client_tls())
        self._parts: Parts | None = None
        self._metrics: MetricsServer | None = None
        self.metrics_address: Address | None = None  # where Prometheus finds it
        self.bound: Address | None = None  # where it listens, which need not be what it tells

    @property
    def state(self) -> BrokerState:
        """What a running broker knows."""
        assert self._parts is not None, "the broker is not running"
        return self._parts.state

    async def start(self) -> Address:
        """Open the store, serve clients, register; give the address clients are told.

        Name servers that are down are tried again later. Raises `ListenFailed` for a port that is
        not free, `StoreError` for a store that cannot be opened, `InvalidInput` for settings.
        """
        config = self.config
        known_ip = await _looked_up(config.broker_ip1) if config.broker_ip1 else None
        self._server.guard(config.doorway(self._limits))
        try:
            self.bound = bound = await self._server.listen(config.bind_address, config.listen_port)
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
        if config.metrics_exporter_type == "PROM":
            await self._show_metrics(parts.state)
        await parts.registrar.start()
        if self._own_process:
            gc.collect()
            gc.freeze()
        logger.info("broker %s serves %s", config.broker_name, address)
        return address

    async def _show_metrics(self, state: BrokerState) -> None:
        from pocketmq.broker.metrics.server import MetricsServer  # most brokers do without

        host, port = self.config.metrics_prom_exporter_host, self.config.metrics_prom_exporter_port
        self._metrics = MetricsServer(state)
        try:
            self.metrics_address = await self._metrics.start(host, port)
        except BaseException:
            await self.stop(0)
            raise

    def _build(self, address: Address, store_host: bytes) -> Parts:
        store = open_store(self.config, self._data, store_host)
        try:
            self.config = with_kept(self.config, store, self._given)
            store.keep(store_options(self.config, in_memory=store.in_memory))
            parts = Parts(
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
        """Leave cleanly; answers that are on their way get `grace` seconds."""
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
            parts.dispatcher.end_turn()
            save_changes(parts.state)
            await save_offsets(parts.state)
        finally:
            parts.state.store.close()
        logger.info("broker %s has stopped", self.config.broker_name)

    async def abort(self) -> None:
        """End as a killed broker does, as others see it: reset, no answer, no name server told.

        Only within the process it differs: what was stored is closed in good order.
        """
        for connection in self._server.connections:
            connection.abort()
        await self._dialer.close(0)
        await self.stop(0)


def _nobody(_: str) -> None:
    """Tell nobody."""


class _Deaf:
    """Owner of the connections to name servers, which ask nothing of a broker."""

    def __init__(self) -> None:
        self.lost: Callable[[str], None] = _nobody

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to do."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Leave questions without an answer."""

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Tell who lost it: a name server forgets a broker with its connection."""
        del cause
        self.lost(connection.remote_address)


class _Front:
    """Owner of the clients' connections until the parts are there that really are."""

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
    """Give the IP of a host; a name is looked up once, at the start."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidInput(f"brokerIP1={host} is no address: {error}") from error
    return str(found[0][4][0])
