"""The addresses of brokers by name, collected from all routes, and the brokers' versions.

A table and the rules for choosing from it, which are Java's. Sends nothing. Changed by one event
loop; other threads may read.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pocketmq.errors import BrokerNotFound, InvalidInput
from pocketmq.model import MASTER_ID, BrokerData, MessageQueue, TopicRoute
from pocketmq.net import parse_address

logger = logging.getLogger("pocketmq.client")

UNKNOWN_VERSION = 0


class BrokerProcess(NamedTuple):
    """A broker process: the master or a slave of a broker name."""

    broker: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        return self.broker_id == MASTER_ID


class BrokerAddresses:
    """The brokers in a client's routes."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, str]] = {}
        self._processes: dict[str, dict[int, BrokerProcess]] = {}
        """The same as `for_reading` returns them."""
        self.masters: dict[str, str] = {}
        """Addresses by the broker's name; replaced as a whole when one of them changes."""
        self._leaders: dict[MessageQueue, str] = {}
        """The brokers of logical queues; replaced as a whole."""
        self._versions: dict[str, int] = {}
        self._known: frozenset[str] = frozenset()
        self.changes = 0
        """The number of changes so far."""

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, address: object) -> bool:
        """Whether a route has a broker at this address."""
        return address in self._known

    def take(self, brokers: Iterable[BrokerData]) -> None:
        """Take over the brokers of a changed route; they replace those of the same names.

        Invalid addresses are ignored: such a broker counts as one that is down, so that a send goes
        to another one instead of failing as if its caller had made a mistake.
        """
        for data in brokers:
            table = {key: at for key, at in data.broker_addrs.items() if _is_address(at)}
            for key in data.broker_addrs.keys() - table.keys():
                logger.warning(
                    "broker %s: invalid address in route: %r; ignored",
                    data.broker_name, data.broker_addrs[key],
                )  # fmt: skip
            self._by_name[data.broker_name] = table
        self._index()

    def lead(self, topic: str, leaders: Mapping[MessageQueue, str]) -> None:
        """Take over which brokers lead the logical queues of a static topic."""
        others = {each: name for each, name in self._leaders.items() if each.topic != topic}
        self._leaders = others | dict(leaders)
        self.changes += 1

    def holder(self, queue: MessageQueue) -> str:
        """Return the name of the broker that serves a queue. Any thread may call it.

        It is the queue's own, but for the logical queues of a static topic.
        """
        found = self._leaders
        return found.get(queue, queue.broker_name) if found else queue.broker_name

    def keep_only(self, routes: Iterable[TopicRoute]) -> list[str]:
        """Drop and return addresses that no route has any more (Java: cleanOfflineBroker)."""
        alive = {
            address
            for route in routes
            for data in route.broker_datas
            for address in data.broker_addrs.values()
        }
        gone = sorted(self._known - alive)
        if gone:
            for name, table in list(self._by_name.items()):
                left = {key: address for key, address in table.items() if address in alive}
                if left:
                    self._by_name[name] = left
                else:
                    del self._by_name[name]
            logger.info("dropped brokers that no route has any more: %s", ", ".join(gone))
            self._index()
        return gone

    def places(self, *, masters_only: bool = False) -> list[BrokerProcess]:
        """Return all broker processes."""
        return [
            BrokerProcess(name, broker_id, address)
            for name, table in self._by_name.items()
            for broker_id, address in table.items()
            if broker_id == MASTER_ID or not masters_only
        ]

    def master(self, broker: str) -> str:
        """Return the address of a broker's master; raises `BrokerNotFound`."""
        address = self.masters.get(broker)
        if address is None:
            raise BrokerNotFound(broker)
        return address

    def writer(self, queue: MessageQueue) -> str:
        """Return the address of the master that takes a queue's messages.

        Raises `BrokerNotFound`.
        """
        name = self.holder(queue) if self._leaders else queue.broker_name
        address = self.masters.get(name)
        if address is None:
            raise BrokerNotFound(name)
        return address

    def any_of(self, broker: str) -> BrokerProcess:
        """Return the master, or a slave if there is none; raises `BrokerNotFound`."""
        return self.for_reading(broker, MASTER_ID)

    def for_reading(self, broker: str, broker_id: int, *, only_this: bool = False) -> BrokerProcess:
        """Return the process to pull from, that with `broker_id` if there is one.

        If a slave is missing, the next id is tried, then any process, unless `only_this`.
        Raises `BrokerNotFound`.
        """
        table = self._processes.get(broker)
        found = None if table is None else table.get(broker_id)
        if found is None and table and broker_id != MASTER_ID:
            found = table.get(broker_id + 1)
        if found is None:
            if only_this or not table:
                raise BrokerNotFound(broker)
            found = table[min(table)]
        return found

    def note_version(self, address: str, version: int) -> None:
        """Record the version that a broker reported."""
        self._versions[address] = version

    def version(self, address: str) -> int:
        """Return the version in a broker's last heartbeat response, or 0."""
        return self._versions.get(address, UNKNOWN_VERSION)

    def version_of(self, broker: str) -> int:
        """Return the version of a broker's master, or 0."""
        address = self.masters.get(broker)
        return UNKNOWN_VERSION if address is None else self.version(address)

    def _index(self) -> None:
        self.changes += 1
        tables = self._by_name.items()
        self._processes = {
            name: {key: BrokerProcess(name, key, address) for key, address in table.items()}
            for name, table in tables
        }
        # Replaced as a whole: other threads look up masters meanwhile.
        self.masters = {name: table[MASTER_ID] for name, table in tables if MASTER_ID in table}
        self._known = frozenset(
            address for table in self._by_name.values() for address in table.values()
        )
        for address in self._versions.keys() - self._known:
            del self._versions[address]


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except InvalidInput:
        return False
    return True
