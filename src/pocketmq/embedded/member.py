"""When to start a broker again that ended by itself. Pure: time is an argument.
----
A broken network around one broker: all its connections pass through proxies that can fail.

One proxy stands before the broker, and the broker tells clients its address; the other stands
before the name server, for this broker alone.

----
One broker of a cluster over its whole time there, through several lives.
"""

import msgspec

from pocketmq.embedded.broker_runner import BrokerOrder, Ended, InProcessBroker, Runner
from pocketmq.embedded.child_process import ChildBroker, Process
from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.embedded.listening import wished_port
from pocketmq.embedded.server_logging import LogSettings
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.net import Address, parse_address

FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
STEADY = 60.0
"""Seconds a broker has to live for its past to be forgotten."""


def restart_wait(failures: int) -> float:
    """Return the seconds to wait before a start, after so many failures in a row."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(max(0, failures - 1), 30))


def failures_after(failures: int, lived: float) -> int:
    """Count a further failure of a broker that had lived for so many seconds."""
    return 1 if lived >= STEADY else failures + 1


class BrokerNetwork:
    """The ways from clients to a broker and from the broker to the name server."""

    def __init__(self, host: str, nameserver: str) -> None:
        self._nowhere = str(Address(host, 1))  # nobody listens on port 1
        self._front = FaultProxy(self._nowhere, host)
        self._behind = FaultProxy(nameserver, host)
        self.cut_off = False

    async def open(self) -> None:
        """Listen on both sides; clients wait until `lead_to` says where the broker is."""
        self._behind.accept()
        self._front.accept()
        await self._front.stop_accepting()

    @property
    def address(self) -> str:
        """Where clients find the broker."""
        return self._front.address

    @property
    def nameserver(self) -> str:
        """Where the broker finds the name server."""
        return self._behind.address

    def lead_to(self, broker: str) -> None:
        """Let clients through to where the broker listens now."""
        self._front.target = broker
        if not self.cut_off:
            self._front.accept()

    async def partition(self) -> None:
        """Let nothing pass, in silence: no end, no reset, newcomers hear nothing."""
        self.cut_off = True
        for proxy in (self._front, self._behind):
            proxy.hold(Way.BOTH)
            await proxy.stop_accepting()

    def heal(self) -> None:
        """Let everything pass at full speed; what was held back arrives now."""
        self.cut_off = False
        for proxy in (self._front, self._behind):
            proxy.pass_through()
            proxy.accept()

    def slow(self, delay: float) -> None:
        """Hold every piece back for so long, between clients and broker, each way."""
        self._front.delay(delay)

    def lead_nowhere(self) -> None:
        """Reset whoever comes, while the broker is down; the port stays ours."""
        self._front.target = self._nowhere

    async def close(self) -> None:
        """End every connection."""
        await self._front.close()
        await self._behind.close()


class ClusterHosts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster's parts are to each other and to their clients."""

    listening: str  # host
    told: str  # host
    nameserver: str  # address, as this machine reaches it


class BrokerMember:
    """A broker's place in the cluster: name, port, data, and whether it runs now."""

    def __init__(self, name: str, settings: ClusterSettings, port: int) -> None:
        self.name = name
        self.port = port
        self.address = ""  # what clients are told; kept while it is down
        self.running = False
        self.started_at = 0.0
        self.failures = 0
        self.network: BrokerNetwork | None = None
        self.runner: Runner | None = None
        self._settings = settings

    def prepare(self, ended: Ended, process: Process | None = None) -> None:
        """Get a place for its next life; a process begins to load its parts, unless given."""
        if self._settings.in_process:
            self.runner = InProcessBroker(self.name)
        else:
            self.runner = ChildBroker(self.name, ended, process)

    async def start(self, hosts: ClusterHosts) -> None:
        """Let it serve. Raises `CannotStart` or `PartEnded`."""
        assert self.runner is not None, "prepare it first"
        try:
            listening = parse_address(await self.runner.start(self._order(hosts)))
        except BaseException:
            self.runner = None
            raise
        self.running = True
        if self.network is not None:
            self.network.lead_to(str(listening))
            self.address = self.network.address
        else:
            self.port = listening.port
            self.address = str(Address(hosts.told, listening.port))

    async def stop(self) -> None:
        """Let it finish, if it runs."""
        runner = self.ended()
        if runner is not None:
            await runner.stop()

    async def kill(self) -> None:
        """End it at once, if it runs."""
        runner = self.ended()
        if runner is not None:
            await runner.kill()

    def ended(self) -> Runner | None:
        """Note that this life is over, and return what led it."""
        runner, self.runner = self.runner, None
        self.running = False
        if self.network is not None:
            self.network.lead_nowhere()
        return runner

    def _order(self, hosts: ClusterHosts) -> BrokerOrder:
        settings = self._settings
        network = self.network
        if network is not None:
            told, port = parse_address(network.address), 0
        else:
            port = self.port
            if settings.broker_port is None:
                port = wished_port(hosts.listening, port, self.name)
            told = Address(hosts.told, 0)  # 0: the port it listens on
        own = {
            "brokerName": self.name,
            "bindAddress": hosts.listening,
            "listenPort": str(port),
            "brokerIP1": told.host,
            "advertisedPort": str(told.port),
        } | settings.metrics(self.name)
        log = settings.log
        # A broker cut off from its name server serves its clients all the same, and soon.
        usual = {"registerBrokerTimeoutMills": "2000"} if network is not None else {}
        return BrokerOrder(
            properties=usual | settings.config | own,
            given=[*(settings.config.keys() - settings.from_file), *own],
            data=None if settings.data is None else str(settings.data / self.name),
            nameservers=[hosts.nameserver if network is None else network.nameserver],
            log=LogSettings(level=log.level, as_json=log.as_json, process=self.name),
        )
