"""Starts, supervises and stops a cluster's parts: one name server and its brokers.

Belongs to one event loop. The name server runs on that loop; brokers do, too, or have processes of
their own. A broker that ends by itself is logged and, with `revive`, restarted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from pocketmq.broker.config import BrokerConfig
from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.embedded import listening
from pocketmq.embedded.broker_runner import raising_cannot_start
from pocketmq.embedded.child_process import ChildBroker, Process
from pocketmq.embedded.member import (
    BrokerMember,
    BrokerNetwork,
    ClusterHosts,
    failures_after,
    restart_wait,
)
from pocketmq.embedded.queries import ClusterQueries
from pocketmq.embedded.settings import ClusterSettings, nameserver_settings, nameserver_supers
from pocketmq.errors import CannotStart, InvalidInput, MQError
from pocketmq.host import check_for_servers
from pocketmq.nameserver import NameServer
from pocketmq.net import Address
from pocketmq.store.directory import refuse_java

logger = logging.getLogger("pocketmq.cluster")

KNOWN_DEADLINE = 60.0
"""Seconds until brokers or topics must have reached the name server."""
POLL_STEP = 0.005
NAMESERVER_FOLDER = "namesrv"


class Supervisor:
    """A cluster's parts. Methods that take a broker's name raise `InvalidInput` for another."""

    def __init__(
        self, settings: ClusterSettings, processes: Mapping[str, Process] | None = None
    ) -> None:
        """Take the settings, and forked processes that wait for their orders, if any."""
        self.settings = settings
        self._processes = dict(processes or {})
        self.address = ""
        self.members: dict[str, BrokerMember] = {}
        self._hosts: ClusterHosts | None = None
        self._nameserver: NameServer | None = None
        self._queries: ClusterQueries | None = None
        self.own_options: ClientOptions | None = None
        """How parts of the cluster connect to it as clients, once its name server listens."""
        self._reviving: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> str:
        """Start everything, wait until brokers are registered, return the name server's address.

        Raises `CannotStart` or `PartEnded`, and leaves nothing running.
        """
        check_for_servers("a cluster")
        try:
            self._make_members()
            for member in self.members.values():
                self._prepare(member)
            await self._start_nameserver()
            await self._start_brokers()
            await self._until_registered(set(self.members))
            self._remember_ports()
        except BaseException:
            await self.stop()
            raise
        return self.address

    async def stop(self) -> None:
        """Stop everything: brokers first, so that they can unregister from the name server."""
        if self.address:
            logger.info("stopping")
        for task in self._reviving.values():
            task.cancel()
        await asyncio.gather(*self._reviving.values(), return_exceptions=True)
        for name, process in self._processes.items():  # forked, but never got an order
            await ChildBroker(name, _ignore, process).kill()
        self._processes.clear()
        stops = (member.stop() for member in self.members.values())
        outcomes = await asyncio.gather(*stops, return_exceptions=True)
        for member in self.members.values():
            member.let_port_go()
            if member.network is not None:
                await member.network.close()
        if self._queries is not None:
            await self._queries.close()
        if self._nameserver is not None:
            await self._nameserver.stop()
        self._queries = self._nameserver = self._hosts = None
        self.address = ""
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def abandon(self) -> None:
        """Kill every broker process without waiting; for a caller about to end itself."""
        for member in self.members.values():
            if isinstance(member.runner, ChildBroker):
                member.runner.kill_now()

    # Faults and repair

    async def kill(self, name: str) -> None:
        """Kill a broker as a crash would; it stays down."""
        member = self.member(name)
        self._leave_dead(member)
        await member.kill()
        member.hold_port()

    async def restart(self, name: str) -> None:
        """Start a broker that is down, or stop and start it; it keeps its name and address."""
        member = self.member(name)
        self._leave_dead(member)
        await member.stop()
        member.hold_port()
        self._prepare(member)
        await self._start(member)
        if member.network is None or not member.network.cut_off:
            await self._until_registered({name})

    def network(self, name: str) -> BrokerNetwork:
        """Return what can break the network around a broker."""
        network = self.member(name).network
        if network is None:
            raise InvalidInput("only a cluster made with faults=True has a network to break")
        return network

    def member(self, name: str) -> BrokerMember:
        """Find a broker."""
        if self._hosts is None:
            raise InvalidInput("the cluster is not running; start it first")
        if name not in self.members:
            raise InvalidInput(f"no broker {name!r}; the brokers are {', '.join(self.members)}")
        return self.members[name]

    async def create_topic(self, topic: str, queues: int, message_type: str) -> None:
        """Create a topic on every broker that runs, and wait until clients can find it."""
        hosts, queries = self._hosts, self._queries
        if hosts is None or queries is None:
            raise InvalidInput("the cluster is not running; start it first")
        running = [member for member in self.members.values() if member.running]
        await asyncio.gather(
            *(queries.create_topic(each.address, topic, queues, message_type) for each in running)
        )
        wanted = {member.name for member in running}

        async def known() -> bool:
            return wanted <= await queries.brokers_of(hosts.nameserver, topic)

        await _until(known, f"the route of topic {topic}")

    # Inside

    def _make_members(self) -> None:
        settings = self.settings
        if settings.data is not None:
            with raising_cannot_start("the cluster"):
                refuse_java(settings.data)  # none of our folders among its files
                settings.data.mkdir(0o700, parents=True, exist_ok=True)
                _warn_of_unused_data(settings)
        ports = listening.read_ports(settings.data) if settings.broker_port is None else {}
        first = settings.broker_port
        if first is None:
            first = listening.FIRST_BROKER_PORT if settings.port else 0
        self.members = {
            name: BrokerMember(
                name, settings, ports.get(name, listening.default_port(first, number))
            )
            for number, name in enumerate(settings.names)
        }

    async def _start_nameserver(self) -> None:
        settings = self.settings
        part = "the name server"
        host = await listening.resolved(settings.host, part)
        data = None if settings.data is None else settings.data / NAMESERVER_FOLDER
        config = BrokerConfig.from_properties(settings.config)
        self._nameserver = NameServer(
            nameserver_settings(settings.config | settings.shared), data, nameserver_supers(config)
        )
        with raising_cannot_start(part):
            port = (await self._nameserver.start(host, settings.port)).port
        advertised = settings.advertise or listening.advertised_host(host)
        self.address = str(Address(advertised, port))
        listening.warn_if_open(host, guarded=config.guarded)
        self._hosts = ClusterHosts(
            listening=host,
            advertised=advertised,
            nameserver=str(Address(listening.own_host(host), port)),
        )
        own = config.name_server_user()
        users = config.initial_users() or ([(own.access_key, own.secret_key)] if own else [])
        self._queries = ClusterQueries(config.client_tls(), users)
        self.own_options = ClientOptions(
            name_servers=self._hosts.nameserver,
            tls=config.client_tls(),
            credentials=Credentials(access_key=users[-1][0], secret_key=users[-1][1])
            if users
            else None,
        )
        if settings.faults:
            for member in self.members.values():
                member.network = BrokerNetwork(listening.own_host(host), self._hosts.nameserver)
                await member.network.open()

    async def _start_brokers(self) -> None:
        starts = (self._start(member) for member in self.members.values())
        for outcome in await asyncio.gather(*starts, return_exceptions=True):
            if outcome is not None:
                raise outcome

    def _prepare(self, member: BrokerMember) -> None:
        process = self._processes.pop(member.name, None)
        with raising_cannot_start(member.name):
            member.prepare(lambda how: self._ended(member, how), process)

    async def _start(self, member: BrokerMember) -> None:
        assert self._hosts is not None
        await member.start(self._hosts)
        member.started_at = asyncio.get_running_loop().time()

    async def _until_registered(self, names: set[str]) -> None:
        """Wait until the name server returns the brokers' addresses."""
        hosts, queries = self._hosts, self._queries
        assert hosts is not None
        assert queries is not None
        wanted = {(name, self.members[name].address) for name in names}

        async def known() -> bool:
            return wanted <= (await queries.brokers(hosts.nameserver)).items()

        await _until(known, ", ".join(sorted(names)))

    def _remember_ports(self) -> None:
        if self.settings.port and not self.settings.faults:
            ports = {member.name: member.port for member in self.members.values()}
            with raising_cannot_start("the cluster"):
                listening.write_ports(self.settings.data, ports)

    def _ended(self, member: BrokerMember, how: str) -> None:
        """Handle a broker process that has ended without being asked to."""
        lived = asyncio.get_running_loop().time() - member.started_at
        runner = member.ended()
        member.hold_port()
        pid = 0 if runner is None else runner.pid
        lost = "" if self.settings.data else "; its messages were in memory and are lost"
        logger.error("%s (pid %d) %s%s", member.name, pid, how, lost)
        if self.settings.revive:
            member.failures = failures_after(member.failures, lived)
            task = asyncio.get_running_loop().create_task(self._revive(member))
            self._reviving[member.name] = task

    async def _revive(self, member: BrokerMember) -> None:
        while True:
            wait = restart_wait(member.failures)
            logger.warning("%s restarts in %g s", member.name, wait)
            await asyncio.sleep(wait)
            try:
                self._prepare(member)
                await self._start(member)
            except (MQError, OSError) as problem:
                member.failures += 1
                logger.error("%s", problem)  # noqa: TRY400 - the message says it all
            else:
                logger.info("%s restarted at %s", member.name, member.address)
                return

    def _leave_dead(self, member: BrokerMember) -> None:
        task = self._reviving.pop(member.name, None)
        if task is not None:
            task.cancel()


def _ignore(_how: str) -> None:
    """Do nothing when a process ends."""


def _warn_of_unused_data(settings: ClusterSettings) -> None:
    assert settings.data is not None
    for entry in sorted(settings.data.glob("broker-*")):
        if entry.is_dir() and entry.name not in settings.names:
            logger.warning(
                "data directory not used: %s; this cluster has no broker of that name", entry
            )


async def _until(known: Callable[[], Awaitable[bool]], what: str) -> None:
    """Poll until brokers have registered something: the name server sends no notification."""
    try:
        async with asyncio.timeout(KNOWN_DEADLINE):
            while not await known():  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(POLL_STEP)
    except MQError:  # a request that timed out is a TimeoutError, too
        raise
    except TimeoutError:
        reason = f"not registered with the name server within {KNOWN_DEADLINE:g} s"
        raise CannotStart(what, reason) from None
