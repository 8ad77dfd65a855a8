"""What goes into the route table and what comes out of it, as values."""

from collections.abc import Hashable
from typing import NamedTuple

import msgspec

from pocketmq.model.route import MAX_ROUTE_QUEUES
from pocketmq.model.value import DataVersion
from pocketmq.protocol.requests.topics import TopicTableBody

SILENCE = 120.0
"""Seconds without a sign of life until a broker is forgotten, unless it names its own."""


class BrokerKey(NamedTuple):
    """What a live broker is known by: as in Java its cluster and its address."""

    cluster: str
    address: str


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says about itself when it registers."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str = ""
    zone: str | None = None
    acting_master: bool | None = None  # None: a 4.x broker, which does not know the word
    silence: float = SILENCE
    filter_servers: tuple[str, ...] | None = None  # None: a 3.x broker, which does not list them

    @property
    def key(self) -> BrokerKey:
        """What this broker is known by."""
        return BrokerKey(self.cluster, self.address)


class Topics(msgspec.Struct, frozen=True, kw_only=True):
    """The topics of a registration; `digest` tells its bytes from those of another."""

    table: TopicTableBody
    digest: bytes = b""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What a registration led to; the addresses are the master's, for a slave to follow."""

    first: bool = False  # nobody had the broker's id before
    master_address: str | None = None
    master_ha_address: str | None = None
    notify: "NotifyMinBrokerId | None" = None


class NotifyMinBrokerId(msgspec.Struct, frozen=True, kw_only=True):
    """Tell brokers of one name which of them has the lowest id now (905)."""

    receivers: tuple[str, ...]
    broker_id: int
    address: str
    offline_address: str | None = None
    ha_address: str | None = None


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is no longer known, and the connection it registered on last."""

    key: BrokerKey
    name: str
    connection: Hashable = None
    notify: NotifyMinBrokerId | None = None


class TableLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the table takes in before it refuses; far above what clusters have."""

    topics: int = 200_000
    brokers: int = 10_000
    replicas: int = 64
    filter_servers: int = 64
    queues: int = MAX_ROUTE_QUEUES
    name_length: int = 255


class Live(msgspec.Struct, kw_only=True):
    """A broker that was heard of. Changed by the table only."""

    name: str
    connection: Hashable
    since: float  # when it registered first on this connection
    heard: float
    silence: float
    version: DataVersion
    ha_address: str
    digests: set[bytes]  # registrations whose topics the table holds, all of them

    @property
    def deadline(self) -> float:
        """When it will have been silent for too long."""
        return self.heard + self.silence
