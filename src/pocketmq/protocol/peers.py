"""Peers: their kinds, and languages and RocketMQ versions as numbers on the wire."""

from enum import Enum, IntEnum


class PeerKind(Enum):
    """A kind of process that answers requests."""

    NAME_SERVER = "name server"
    BROKER = "broker"
    CLIENT = "client"
    CONTROLLER = "controller"


BROKER = frozenset({PeerKind.BROKER})
NAME_SERVER = frozenset({PeerKind.NAME_SERVER})
CLIENT = frozenset({PeerKind.CLIENT})
CONTROLLER = frozenset({PeerKind.CONTROLLER})
NOBODY = frozenset[PeerKind]()
"""RocketMQ has a number for the request, and no implementation."""


class Language(IntEnum):
    """The language of a peer. JSON headers carry the name, binary headers the number."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


_V4_0_0_SNAPSHOT = 212
_HIGHER_VERSION = 612


def version_number(major: int, minor: int, patch: int) -> int:
    """Return the ordinal of a release from 4.0.0 on; each has a snapshot before it."""
    return _V4_0_0_SNAPSHOT + 2 * ((major - 4) * 100 + minor * 10 + patch) + 1


def version_name(number: int) -> str:
    """Return the name Java prints for a version ordinal, such as `V5_5_0`."""
    if number >= _HIGHER_VERSION:
        return "HIGHER_VERSION"
    if number < _V4_0_0_SNAPSHOT:
        return "V3"  # every 3.x release; their ordinals are not told apart here
    steps, release = divmod(number - _V4_0_0_SNAPSHOT, 2)
    name = f"V{4 + steps // 100}_{steps // 10 % 10}_{steps % 10}"
    return name if release else f"{name}_SNAPSHOT"


class VersionGate(IntEnum):
    """Versions from which peers behave differently; compare a peer's version with these."""

    RESET_OFFSET_PUSH = 28  # V3_0_7_SNAPSHOT: the client answers 220 and 221
    REGISTER_BODY = 37  # V3_0_11: the broker registers with a wrapped topic table
    RELAYED_CALLS = 62  # V3_1_8_SNAPSHOT: the client answers 307 and 309
    MAX_RECONSUME_TIMES = 121  # V3_4_9: the broker honours the client's limit
    SQL92 = 232  # V4_1_0_SNAPSHOT: the broker can filter by SQL
    UNIQUE_KEY_QUERY_UNSIGNED = 399  # V4_9_3: the last to leave _UNIQUE_KEY_QUERY unsigned
    STANDARD_JSON = 401  # V4_9_4: the client reads routes with quoted keys
    TOPIC_QUEUE_MAPPING = 413  # V5_0_0: compressed registrations end with mappings
    EXACT_TIMES = 473  # V5_3_0: older brokers may return a message next to the one stored at a time
    GO_AWAY = 475  # V5_3_1: later clients understand GO_AWAY of a server that stops


CURRENT_VERSION = version_number(5, 3, 3)
"""The version PocketMQ presents itself as: the RocketMQ whose wire behaviour it keeps."""
