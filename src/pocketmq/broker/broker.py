"""A broker from start to stop: its parts in the order they need each other.

Start: store, tables, sockets, name servers, chores. Stop: nobody new, answers to those who wait,
everything on the device, out of the routes.
"""

import asyncio
import gc
import ipaddress
import logging
import os
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from pocketmq.broker.answers import SendAnswers
from pocketmq.broker.appending import tag_rules
from pocketmq.broker.clock import Clock, SystemClock
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.delays import Delays, delay_tag_rules
from pocketmq.broker.dispatch import Dispatcher
from pocketmq.broker.groups import GroupTable
from pocketmq.broker.handlers.by_code import HANDLERS
from pocketmq.broker.housekeeping import Housekeeping
from pocketmq.broker.long_polling import SuspendedPulls
from pocketmq.broker.offsets import OffsetTable
from pocketmq.broker.registration import Registrar
from pocketmq.broker.route_questions import RouteQuestions
from pocketmq.broker.saving import load_tables, save_changes, save_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.broker.system_topics import system_groups, system_topics
from pocketmq.broker.topics import TopicTable
from pocketmq.errors import InvalidInput
from pocketmq.model import properties as names
from pocketmq.net import Address, Connection, Dialer, Limits, Server
from pocketmq.net.server import reachable_host
from pocketmq.protocol.command import Command
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import encode_properties
from pocketmq.store import Flusher, MessageStore, StoreOptions

logger = logging.getLogger("pocketmq.broker")

_FAST_PORT = -2


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
    ) -> None:
        """Take settings, a directory (None: only memory) and the name servers' addresses.

        `own_process` says that nothing else runs here, so that the garbage collector may forget
        about everything that exists after the start.
        """
        self.config = config or BrokerConfig()
        self._data = data
        self._name_servers = [*name_servers] or _listed(self.config.namesrv_addr)
        self._clock = clock or SystemClock()
        self._limits = limits or Limits()
        self._own_process = own_process
        self._parts: _Parts | None = None

    @property
    def state(self) -> BrokerState:
        """What a running broker knows."""
        assert self._parts is not None, "the broker is not running"
        return self._parts.state

    async def start(self) -> Address:
        """Open the store, serve clients, register; give the address clients are told.

        Name servers that are down are tried again later. Raises `StoreError` for a store that
        cannot be opened and `ListenFailed` for a port that is not free.
        """
        loop = asyncio.get_running_loop()
        store = self._open_store(loop)
        try:
            self._parts = parts = _Parts(self, store, loop, self._clock, self._limits)
            address = await parts.listen(self.config)
            await parts.registrar.start()
        except BaseException:
            if self._parts is not None:
                await self._parts.server.close(0)
                await self._parts.dialer.close()
                self._parts = None
            store.close()
            raise
        parts.housekeeping.start()
        parts.delays.start()
        if self._own_process:
            gc.collect()
            gc.freeze()
        logger.info("broker %s serves %s", self.config.broker_name, address)
        return address

    async def stop(self, grace: float = 1.0) -> None:
        """Leave cleanly; answers that are on their way get `grace` seconds."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        parts.server.stop_listening()
        leaving = asyncio.create_task(parts.registrar.stop())
        parts.housekeeping.stop()
        parts.dispatcher.stop()
        await parts.delays.stop()
        await parts.server.close(grace)
        await leaving
        await parts.questions.stop()
        await parts.dialer.close()
        try:
            save_changes(parts.state)
            save_offsets(parts.state)
        finally:
            parts.state.store.close()
        logger.info("broker %s has stopped", self.config.broker_name)

    def _open_store(self, loop: asyncio.AbstractEventLoop) -> MessageStore:
        config = self.config
        options = StoreOptions(
            segment_size=config.mapped_file_size_commit_log,
            sync=config.sync_flush,
            retention=config.file_reserved_time * 3600.0,
            disk_clean_ratio=config.disk_max_used_space_ratio / 100,
            disk_full_ratio=config.disk_space_warning_level_ratio / 100,
        )
        flusher = Flusher(loop.call_soon_threadsafe)
        rules = tag_rules() | delay_tag_rules(config.message_delay_level)
        return MessageStore.open(self._data, options, flusher=flusher, tag_rules=rules)


class _Parts:
    """What a running broker consists of."""

    def __init__(
        self,
        broker: Broker,
        store: MessageStore,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        limits: Limits,
    ) -> None:
        config = broker.config
        now_ms = clock.now_ms()
        self.state = BrokerState(
            config=config,
            store=store,
            clock=clock,
            address="",
            topics=TopicTable(system_topics(config), now_ms=now_ms),
            groups=GroupTable(system_groups(), now_ms=now_ms),
            offsets=OffsetTable(now_ms=now_ms),
            send_answers=SendAnswers(config.region_id, bytes(8), trace_on=config.trace_on),
            unique_ids=_unique_ids(bytes(4)),
            waiting=SuspendedPulls(
                limit=config.max_suspended_pulls,
                connection_limit=config.max_suspended_pulls_of_connection,
            ),
            stamp=_stamp(config),
            steady=loop.time,
            booted_ms=now_ms,
        )
        load_tables(self.state)
        self.dispatcher = Dispatcher(self.state, HANDLERS, loop)
        self.server = Server(self.dispatcher, limits)
        self.dialer = Dialer(_Deaf(), limits)
        self.housekeeping = Housekeeping(self.state, self.dispatcher, loop)
        self.delays = Delays(self.state, self.dispatcher, loop)
        servers = broker._name_servers  # noqa: SLF001 - its own parts
        self.questions = RouteQuestions(servers, self.dialer)
        self.registrar = Registrar(self.state, servers, self.dialer)
        self.dispatcher.when_announced = self.registrar.when_announced
        self.state.routes.fetch = self.questions.fetch
        self.state.register_topics = self.registrar.register_topics

    async def listen(self, config: BrokerConfig) -> Address:
        """Serve clients, and settle what they are told the broker's address is."""
        bound = await self.server.listen(config.bind_address, config.listen_port)
        if config.fast_listen_enable and bound.port > -_FAST_PORT:
            await self.server.listen(config.bind_address, bound.port + _FAST_PORT)
        host = config.broker_ip1 or reachable_host(bound.host)
        address = Address(host, config.advertised_port or bound.port)
        store_host = await _encoded(address)
        state = self.state
        state.address = str(address)
        state.store.store_host = store_host
        state.send_answers = SendAnswers(config.region_id, store_host, trace_on=config.trace_on)
        state.unique_ids = _unique_ids(store_host[:-4])
        return address


class _Deaf:
    """Owner of the connections to name servers, which ask nothing of a broker."""

    def connection_opened(self, connection: Connection) -> None:
        """Nothing to do."""

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Leave questions without an answer."""

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Leave it to the next registration to connect again."""


def _listed(addresses: str) -> list[str]:
    return [part.strip() for part in addresses.split(";") if part.strip()]


def _stamp(config: BrokerConfig) -> bytes:
    return encode_properties(
        {
            names.MSG_REGION: config.region_id,
            names.TRACE_ON: "true" if config.trace_on else "false",
            names.CLUSTER: config.broker_cluster_name,
        }
    )


def _unique_ids(ip: bytes) -> UniqueIds:
    offset = time.localtime().tm_gmtoff
    return UniqueIds(ip, os.getpid(), secrets.randbits(32), utc_offset_ms=offset * 1000)


async def _encoded(address: Address) -> bytes:
    """Give the address as message ids hold it; a name is looked up once, at the start."""
    try:
        ipaddress.ip_address(address.host)
    except ValueError:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise InvalidInput(f"brokerIP1={address.host} is no address: {error}") from error
        return encode_host(str(Address(str(found[0][4][0]), address.port)))
    return encode_host(str(address))
