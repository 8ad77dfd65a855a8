"""One broker of a cluster, over all its restarts: its network, its runs, its restart delays.

With `faults` all connections of the broker pass through two proxies that can fail: one in front of
the broker, whose address clients get, and one in front of the name server, for this broker alone.
"""

import msgspec

from pocketmq.embedded.broker_runner import BrokerOrder, Ended, InProcessBroker, Runner
from pocketmq.embedded.child_process import ChildBroker, Process
from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.embedded.listening import HeldPort
from pocketmq.embedded.server_logging import LogSettings
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.net import Address, parse_address

FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
STEADY = 60.0
"""Seconds a broker has to run for its earlier failures to be forgotten."""


def restart_wait(failures: int) -> float:
    """Return the seconds to wait before a start, after a number of failures in a row."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(max(0, failures - 1), 30))


def failures_after(failures: int, lived: float) -> int:
    """Return the number of failures after one more, of a broker that ran for `lived` seconds."""
    return 1 if lived >= STEADY else failures + 1


class BrokerNetwork:
    """The connections from clients to a broker, and from the broker to the name server."""

    def __init__(self, host: str, nameserver: str) -> None:
        self._nowhere = str(Address(host, 1))  # no server listens on port 1
        self._front = FaultProxy(self._nowhere, host)
        self._behind = FaultProxy(nameserver, host)
        self.cut_off = False

    async def open(self) -> None:
        """Listen on both sides; clients wait until `lead_to` sets the broker's address."""
        self._behind.accept()
        self._front.accept()
        await self._front.stop_accepting()

    @property
    def address(self) -> str:
        """The address at which clients reach the broker."""
        return self._front.address

    @property
    def nameserver(self) -> str:
        """The address at which the broker reaches the name server."""
        return self._behind.address

    def lead_to(self, broker: str) -> None:
        """Let clients through to where the broker listens now."""
        self._front.target = broker
        if not self.cut_off:
            self._front.accept()

    async def partition(self) -> None:
        """Drop everything silently: no end, no reset, new connections get no answer."""
        self.cut_off = True
        for proxy in (self._front, self._behind):
            proxy.hold(Way.BOTH)
            await proxy.stop_accepting()

    def heal(self) -> None:
        """Pass everything at full speed again; what was held back arrives now."""
        self.cut_off = False
        for proxy in (self._front, self._behind):
            proxy.pass_through()
            proxy.accept()

    def slow(self, delay: float) -> None:
        """Delay every piece by `delay` seconds, between clients and broker, each way."""
        self._front.delay(delay)

    def lead_nowhere(self) -> None:
        """Reset new connections while the broker is down; the port stays ours."""
        self._front.target = self._nowhere

    async def close(self) -> None:
        """End every connection."""
        await self._front.close()
        await self._behind.close()


class ClusterHosts(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of a cluster: where its parts listen, and how they are reached."""

    listening: str  # host
    advertised: str  # host clients connect to
    nameserver: str  # address, as this machine reaches it


class BrokerMember:
    """A broker of the cluster: name, port, data, and whether it runs now."""

    def __init__(self, name: str, settings: ClusterSettings, port: int) -> None:
        self.name = name
        self.port = port
        self.address = ""  # what clients connect to; kept while it is down
        self.running = False
        self.started_at = 0.0
        self.failures = 0
        self.network: BrokerNetwork | None = None
        self.runner: Runner | None = None
        self._settings = settings
        self._host = ""
        self._held = HeldPort()  # its port, while it is down

    def prepare(self, ended: Ended, process: Process | None = None) -> None:
        """Make the runner of its next start; a new process begins to load, unless given one."""
        if self._settings.in_process:
            self.runner = InProcessBroker(self.name)
        else:
            self.runner = ChildBroker(self.name, ended, process)

    async def start(self, hosts: ClusterHosts) -> None:
        """Start it. Raises `CannotStart` or `PartEnded`."""
        assert self.runner is not None, "prepare it first"
        try:
            place = parse_address(await self.runner.start(self._order(hosts)))
        except BaseException:
            self.runner = None
            raise
        self.running = True
        if self.network is not None:
            self.network.lead_to(str(place))
            self.address = self.network.address
        else:
            self._host, self.port = hosts.listening, place.port
            self.address = str(Address(hosts.advertised, place.port))
        self.let_port_go()

    def hold_port(self) -> None:
        """Let no other process be given its port while it is down."""
        if self.network is None:
            self._held.hold(self._host, self.port)

    def let_port_go(self) -> None:
        """Give up the port; a broker that listens there keeps it."""
        self._held.let_go()

    async def stop(self) -> None:
        """Stop it gracefully, if it runs."""
        runner = self.ended()
        if runner is not None:
            await runner.stop()

    async def kill(self) -> None:
        """Kill it, if it runs."""
        runner = self.ended()
        if runner is not None:
            await runner.kill()

    def ended(self) -> Runner | None:
        """Note that this run is over, and return its runner."""
        runner, self.runner = self.runner, None
        self.running = False
        if self.network is not None:
            self.network.lead_nowhere()
        return runner

    def _order(self, hosts: ClusterHosts) -> BrokerOrder:
        settings = self._settings
        network = self.network
        if network is not None:
            advertised, port = parse_address(network.address), 0
        else:
            port = self.port
            advertised = Address(hosts.advertised, 0)  # 0: the port it listens on
        own = {
            "brokerName": self.name,
            "bindAddress": hosts.listening,
            "listenPort": str(port),
            "brokerIP1": advertised.host,
            "advertisedPort": str(advertised.port),
        }
        own |= settings.metrics(self.name) | settings.shared
        log = settings.log
        # A broker that cannot reach its name server still serves its clients, and starts soon.
        extra = {"registerBrokerTimeoutMills": "2000"} if network is not None else {}
        return BrokerOrder(
            properties=extra | settings.config | own,
            given=[*(settings.config.keys() - settings.from_file), *own],
            any_port=network is None and settings.broker_port is None,
            data=None if settings.data is None else str(settings.data / self.name),
            nameservers=[hosts.nameserver if network is None else network.nameserver],
            log=LogSettings(level=log.level, as_json=log.as_json, process=self.name),
        )
