"""Registrations: the values that go into and come out of `route_registry`, and their checks.

Sizes and names are checked before anything is stored; Java's name server stores whatever it is sent
and hands it to every client. Names need not follow the rules for topics: brokers register topics
named after themselves, which may be host names.
"""

import re
from collections.abc import Hashable
from typing import NamedTuple

import msgspec

from pocketmq.errors import ResponseCode, ServerError, SystemFailure
from pocketmq.model import DataVersion, QueueData
from pocketmq.model.route import MAX_ROUTE_QUEUES
from pocketmq.protocol.requests.topics import TopicTableBody

SILENCE = 120.0
"""Seconds without a heartbeat until a broker is removed, unless it sets its own timeout."""

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class BrokerKey(NamedTuple):
    """The key of a live broker: as in Java its cluster and its address."""

    cluster: str
    address: str


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's description of itself when it registers."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str = ""
    zone: str | None = None
    acting_master: bool | None = None  # None: a 4.x broker, which does not have it
    silence: float = SILENCE
    filter_servers: tuple[str, ...] | None = None  # None: a 3.x broker, which does not list them

    @property
    def key(self) -> BrokerKey:
        """The key of this broker."""
        return BrokerKey(self.cluster, self.address)


class RegisteredTopics(msgspec.Struct, frozen=True, kw_only=True):
    """The topics of a registration; `digest` identifies its bytes."""

    table: TopicTableBody
    digest: bytes = b""


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """What a registration led to; the addresses are the master's, for a slave to follow."""

    first: bool = False  # no broker had this id before
    master_address: str | None = None
    master_ha_address: str | None = None
    notify: "NotifyMinBrokerId | None" = None


class NotifyMinBrokerId(msgspec.Struct, frozen=True, kw_only=True):
    """Notify brokers of one name which of them has the lowest id now (905)."""

    receivers: tuple[str, ...]
    broker_id: int
    address: str
    offline_address: str | None = None
    ha_address: str | None = None


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was removed, and the connection it registered on last."""

    key: BrokerKey
    name: str
    connection: Hashable = None
    notify: NotifyMinBrokerId | None = None


class TableLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits beyond which registrations are refused; far above what clusters have."""

    topics: int = 200_000
    brokers: int = 10_000
    replicas: int = 64
    filter_servers: int = 64
    queues: int = MAX_ROUTE_QUEUES
    name_length: int = 255


class LiveBroker(msgspec.Struct, kw_only=True):
    """A registered broker and its last heartbeat. Changed by `RouteRegistry` only."""

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
        """When its heartbeat is overdue."""
        return self.heard + self.silence


def refused(reason: str) -> ServerError:
    """Return the error for what this name server does not store."""
    return SystemFailure(ResponseCode.SYSTEM_ERROR, f"refused: {reason}")


def check_name(what: str, name: str, limits: TableLimits) -> None:
    """Raise `ServerError` for a name that is empty, too long or holds blanks or controls."""
    if not name:
        raise refused(f"an empty {what}")
    if len(name) > limits.name_length:
        raise refused(f"a {what} of {len(name)} characters; {limits.name_length} are allowed")
    if _UNPRINTABLE.search(name):
        raise refused(f"the {what} {name!r} holds a blank or a control character")


def check_announcement(broker: Announcement, limits: TableLimits) -> None:
    """Raise `ServerError` if a broker's description of itself cannot be stored."""
    check_name("cluster name", broker.cluster, limits)
    check_name("broker name", broker.name, limits)
    check_name("broker address", broker.address, limits)
    if len(broker.ha_address) > limits.name_length:
        raise refused(
            f"an HA address of {len(broker.ha_address)} characters; "
            f"{limits.name_length} are allowed"
        )
    if broker.zone is not None and len(broker.zone) > limits.name_length:
        raise refused(
            f"a zone name of {len(broker.zone)} characters; {limits.name_length} are allowed"
        )
    servers = broker.filter_servers or ()
    if len(servers) > limits.filter_servers:
        raise refused(f"{len(servers)} filter servers; {limits.filter_servers} are allowed")
    for server in servers:
        check_name("filter server", server, limits)


def check_topics(table: TopicTableBody, limits: TableLimits) -> None:
    """Raise `ServerError` if a topic of a registration cannot be stored."""
    for config in table.topic_config_table.values():
        check_name("topic name", config.topic_name, limits)
        check_counts(config.topic_name, config.read_queue_nums, config.write_queue_nums, limits)
    for topic, mapping in (table.topic_queue_mapping_info_map or {}).items():
        check_name("topic name", topic, limits)
        check_counts(topic, mapping.total_queues, len(mapping.curr_id_map or ()), limits)


def check_queue_data(topic: str, data: QueueData, limits: TableLimits) -> None:
    """Raise `ServerError` if a topic that is registered alone cannot be stored."""
    check_name("topic name", topic, limits)
    check_counts(topic, data.read_queue_nums, data.write_queue_nums, limits)


def check_counts(topic: str, reads: int, writes: int, limits: TableLimits) -> None:
    """Raise `ServerError` for numbers of queues that would cost every client its memory."""
    if not (0 <= reads <= limits.queues and 0 <= writes <= limits.queues):
        raise refused(
            f"topic {topic} has {reads} read and {writes} write queues; "
            f"at most {limits.queues} are allowed"
        )
