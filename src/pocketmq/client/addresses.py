"""Where brokers are: the addresses of each name, gathered from all routes, and their versions.

A table and the rules for choosing from it, which are Java's. Sends nothing. Belongs to one loop.
"""

import logging
from collections.abc import Iterable
from typing import NamedTuple

from pocketmq.errors import BrokerNotFound, InvalidInput
from pocketmq.model.route import MASTER_ID, BrokerData, TopicRoute
from pocketmq.net import parse_address

logger = logging.getLogger("pocketmq.client")

UNKNOWN_VERSION = 0


class BrokerProcess(NamedTuple):
    """One broker process."""

    broker: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        return self.broker_id == MASTER_ID


class BrokerAddresses:
    """The brokers a client knows."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, str]] = {}
        self._versions: dict[str, int] = {}
        self._known: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, address: object) -> bool:
        """Whether a broker is known at this address."""
        return address in self._known

    def take(self, brokers: Iterable[BrokerData]) -> None:
        """Take over what a changed route says; it replaces what was known under these names.

        What is no address is passed over: a broker nobody can reach is tried like one that is not
        there, and does not look like a mistake of whoever sends.
        """
        for data in brokers:
            table = {key: at for key, at in data.broker_addrs.items() if _is_address(at)}
            if len(table) < len(data.broker_addrs):
                logger.warning(
                    "name servers tell of broker %s at %s, where something is no address",
                    data.broker_name, ", ".join(map(repr, data.broker_addrs.values())),
                )  # fmt: skip
            self._by_name[data.broker_name] = table
        self._index()

    def keep_only(self, routes: Iterable[TopicRoute]) -> list[str]:
        """Drop addresses that no route has any more, and give them (Java: cleanOfflineBroker)."""
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
            logger.info("brokers that no route has any more are forgotten: %s", ", ".join(gone))
            self._index()
        return gone

    def places(self, *, masters_only: bool = False) -> list[BrokerProcess]:
        """List all brokers known."""
        return [
            BrokerProcess(name, broker_id, address)
            for name, table in self._by_name.items()
            for broker_id, address in table.items()
            if broker_id == MASTER_ID or not masters_only
        ]

    def master(self, broker: str) -> str:
        """Give the address of a broker's master; raises `BrokerNotFound`."""
        address = self._by_name.get(broker, {}).get(MASTER_ID)
        if address is None:
            raise BrokerNotFound(broker)
        return address

    def any_of(self, broker: str) -> BrokerProcess:
        """Give the master, or a slave if there is none; raises `BrokerNotFound`."""
        return self.for_reading(broker, MASTER_ID)

    def for_reading(self, broker: str, broker_id: int, *, only_this: bool = False) -> BrokerProcess:
        """Give the process to pull from, `broker_id` if it is there.

        A slave that is missing is looked for under the next id, then any process will do, unless
        `only_this`. Raises `BrokerNotFound`.
        """
        table = self._by_name.get(broker, {})
        wanted = [broker_id] if broker_id == MASTER_ID else [broker_id, broker_id + 1]
        for each in wanted:
            if each in table:
                return BrokerProcess(broker, each, table[each])
        if only_this or not table:
            raise BrokerNotFound(broker)
        first = min(table)
        return BrokerProcess(broker, first, table[first])

    def note_version(self, address: str, version: int) -> None:
        """Remember which version a broker said it has."""
        self._versions[address] = version

    def version(self, address: str) -> int:
        """Give the version a broker told with its last heartbeat reply, or 0."""
        return self._versions.get(address, UNKNOWN_VERSION)

    def version_of(self, broker: str) -> int:
        """Give the version of a broker's master, or 0."""
        address = self._by_name.get(broker, {}).get(MASTER_ID)
        return UNKNOWN_VERSION if address is None else self.version(address)

    def _index(self) -> None:
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
