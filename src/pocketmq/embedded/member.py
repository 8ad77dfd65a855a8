"""One broker of a cluster over its whole time there, through several lives."""

import msgspec

from pocketmq.embedded.broker_runner import BrokerOrder, Ended, Runner
from pocketmq.embedded.child_process import ChildBroker, Process
from pocketmq.embedded.listening import preferred_port
from pocketmq.embedded.member import BrokerNetwork
from pocketmq.embedded.server_logging import LogSettings
from pocketmq.embedded.settings import ClusterSettings
from pocketmq.net import Address, parse_address


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster's parts are to each other and to their clients."""

    listening: str  # host
    told: str  # host
    nameserver: str  # address, as this machine reaches it


class Member:
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
            from pocketmq.embedded.broker_runner import InProcessBroker  # brings the broker's parts

            self.runner = InProcessBroker(self.name)
        else:
            self.runner = ChildBroker(self.name, ended, process)

    async def start(self, place: Place) -> None:
        """Let it serve. Raises `CannotStart` or `PartEnded`."""
        assert self.runner is not None, "prepare it first"
        try:
            listening = parse_address(await self.runner.start(self._order(place)))
        except BaseException:
            self.runner = None
            raise
        self.running = True
        if self.network is not None:
            self.network.lead_to(str(listening))
            self.address = self.network.address
        else:
            self.port = listening.port
            self.address = str(Address(place.told, listening.port))

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
        """Note that this life is over, and give what led it."""
        runner, self.runner = self.runner, None
        self.running = False
        if self.network is not None:
            self.network.lead_nowhere()
        return runner

    def _order(self, place: Place) -> BrokerOrder:
        settings = self._settings
        network = self.network
        if network is not None:
            told, port = parse_address(network.address), 0
        else:
            port = self.port
            if settings.broker_port is None:
                port = preferred_port(place.listening, port, self.name)
            told = Address(place.told, 0)  # 0: the port it listens on
        own = {
            "brokerName": self.name,
            "bindAddress": place.listening,
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
            nameservers=[place.nameserver if network is None else network.nameserver],
            log=LogSettings(level=log.level, as_json=log.as_json, process=self.name),
        )
