"""The options of a client: frozen values with Java's defaults, checked when they are made.

Users pass them as keywords of a producer or consumer, in one flat list with the member's own
options; `sort_settings` divides them. Times are seconds. Options of producers and consumers are
in modules of their own. Here is also the client id that some of them make up.
"""

import os
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, ClassVar, TypedDict, TypeVar

import msgspec

from pocketmq.balance.profile import V5, Profile
from pocketmq.client.checks import ProfileWord, check_seconds, settle_kinds, warn_of_milliseconds
from pocketmq.client.clock import Clock
from pocketmq.errors import InvalidInput
from pocketmq.model.group_balance import HANDOVER_MARK
from pocketmq.model.secrets import HIDDEN
from pocketmq.net import Tls, parse_addresses

Own = TypeVar("Own", bound=msgspec.Struct)

DEFAULT_INSTANCE = "DEFAULT"
STREAM = "STREAM"
HANDOVER_VERSION = 1
"""The version of the hand-over protocol that is spoken here."""

# Reserved for documentation: no host has them, and nothing is sent. The kernel's choice of our own
# address for such a connection is the address that other hosts see.
_NOWHERE = (
    (socket.AF_INET, "192.0.2.1"),
    (socket.AF_INET6, "2001:db8::1"),
)
_LOOPBACK = "127.0.0.1"


def client_id(
    ip: str, instance: str, unit: str = "", *, stream: bool = False, hands_over: bool = False
) -> str:
    """Return a client id: `<ip>@<instance name>[@unit][@STREAM][@pm1]`.

    It identifies a client to brokers and to the members of a group, and strategies sort by it;
    brokers and Java clients read nothing out of it. `stream` marks pull consumers, as in Java. The
    last part marks members that hand queues over (STICKY): it is in every member list, so all
    members see alike who does.
    """
    parts = [ip, instance]
    if unit.strip():
        parts.append(unit)
    if stream:
        parts.append(STREAM)
    mark = f"{HANDOVER_MARK}{HANDOVER_VERSION}" if hands_over else ""
    return "@".join(parts) + mark


def instance_name(configured: str, clock: Clock, *, shared: bool = False) -> str:
    """Return a client's instance name.

    As in Java, a client without a configured name gets a unique one, `<pid>#<nanoseconds>`, except
    for consumers that broadcast (`shared`): their local offsets are stored under the client id,
    which must be the same after a restart.
    """
    if configured != DEFAULT_INSTANCE or shared:
        return configured
    return f"{os.getpid()}#{clock.tick()}"


def local_ip() -> str:
    """Return this machine's address, IPv4 if it has one; IPv6 in brackets."""
    for family, nowhere in _NOWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((nowhere, 9))
                found: str = probe.getsockname()[0]
        except OSError:
            continue
        if not ip_address(found.partition("%")[0]).is_unspecified:
            return f"[{found}]" if family == socket.AF_INET6 else found
    return _LOOPBACK


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A user of a cluster with access control; its `repr` hides the secret."""

    access_key: str
    """The user."""
    secret_key: str
    """The key that requests are signed with; it is never sent."""
    security_token: str | None = None
    """For temporary keys."""

    def __post_init__(self) -> None:
        given: tuple[object, ...] = (self.access_key, self.secret_key, self.security_token or "")
        if not all(isinstance(each, str) for each in given):
            raise InvalidInput("access key, secret key and security token must be text")
        if not self.access_key or not self.secret_key:
            raise InvalidInput("credentials need an access key and a secret key")

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key={HIDDEN!r})"


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What all members of one client have in common (Java: ClientConfig).

    Raises `InvalidInput` for a value that can never work.
    """

    name_servers: str = ""
    """`host:port`, several joined by `;`. Empty: the environment's `NAMESRV_ADDR`."""
    client_ip: str | None = None
    """The address in the client id; default: this machine's."""
    instance_name: str = DEFAULT_INSTANCE
    """Clients with the same ip and instance name are one; by default each has a unique name."""
    unit_name: str = ""
    """A further part of the client id."""
    namespace: str = ""
    """Prefix of the names of topics and groups (the 4.x namespace)."""
    namespace_v2: str = ""
    """The 5.x namespace: sent to brokers beside the names."""
    credentials: Credentials | None = None
    """The user, for clusters with access control; None: requests are not signed."""
    tls: Tls | None = None
    """TLS settings for name servers and brokers; None: no TLS."""
    profile: Profile = V5
    """The Java client line to behave like."""

    request_timeout: float = 3.0
    """For routes, heartbeats, member lists and other small calls (Java: mqClientApiTimeout)."""
    start_wait: float | None = 0.0
    """How long `start` may wait for a name server before it raises `NameServersUnreachable`.

    With 0 each is tried once. None: start without asking, as Java does; routes come later.
    """
    route_interval: float = 30.0
    """Seconds between refreshes of routes."""
    heartbeat_interval: float = 30.0
    """Seconds between heartbeats to brokers."""
    heartbeat_first_after: float = 1.0
    """Seconds until the first periodic heartbeat; one is sent at the start besides."""
    persist_interval: float = 5.0
    """Seconds between commits of consumers' offsets."""
    persist_first_after: float = 1.0
    """Seconds from the first handled messages to the first commit.

    Without any, it comes ten times as long after the start.
    """
    heartbeat_v2: bool = False
    """Leave subscriptions out of heartbeats to brokers that have them already (5.x)."""
    vip_channel: bool = False
    """Use the broker's second port, two below its own, for all but pulls and heartbeats."""

    _POSITIVE: ClassVar = (
        "request_timeout", "route_interval", "heartbeat_interval", "persist_interval",
    )  # fmt: skip
    _NOT_NEGATIVE: ClassVar = ("heartbeat_first_after", "persist_first_after", "start_wait")

    def __post_init__(self) -> None:
        settle_kinds(self)
        if self.name_servers:
            parse_addresses(self.name_servers)
        for name in self._POSITIVE:
            check_seconds(name, getattr(self, name), at_least=0.001)
        for name in self._NOT_NEGATIVE:
            value = getattr(self, name)
            if value is not None:
                check_seconds(name, value)
        _check_id_part("client_ip", self.client_ip if self.client_ip is not None else "unset")
        _check_id_part("instance_name", self.instance_name)
        if self.unit_name:
            _check_id_part("unit_name", self.unit_name)

    def differences(self, other: "ClientOptions") -> list[str]:
        """Name the fields in which two differ."""
        return [
            name for name in self.__struct_fields__ if getattr(self, name) != getattr(other, name)
        ]


def _check_id_part(name: str, value: str) -> None:
    if not value.strip() or not value.isprintable():
        raise InvalidInput(f"{name} is part of the client id: printable text, not {value!r}")


class ClientSettings(TypedDict, total=False):
    """The fields of `ClientOptions` as keywords of a member; name servers come before them."""

    client_ip: str | None
    instance_name: str
    unit_name: str
    namespace: str
    namespace_v2: str
    credentials: Credentials | None
    tls: Tls | None
    profile: Profile | ProfileWord
    request_timeout: float
    start_wait: float | None
    route_interval: float
    heartbeat_interval: float
    heartbeat_first_after: float
    persist_interval: float
    persist_first_after: float
    heartbeat_v2: bool
    vip_channel: bool


def sort_settings(
    own: type[Own],
    group: str,
    name_servers: str,
    options: ClientOptions | None,
    settings: Mapping[str, Any],
) -> tuple[ClientOptions, Own]:
    """Return the client's options and the member's own.

    Keywords override the fields of `options`. Raises `InvalidInput` for an unknown keyword, and
    for values that can never work.
    """
    _check_given(name_servers, options)
    of_client = set(ClientOptions.__struct_fields__) - {"name_servers"}
    of_member = set(own.__struct_fields__) - {"group"}
    for name in settings:
        if name not in of_client and name not in of_member:
            from difflib import get_close_matches  # slow to import, and only mistakes need it

            near = get_close_matches(name, of_client | of_member | {"name_servers", "group"}, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInput(f"unknown setting {name!r}{hint}")
    client = {name: value for name, value in settings.items() if name in of_client}
    if name_servers != "":
        client["name_servers"] = name_servers
    member = {name: value for name, value in settings.items() if name in of_member}
    common = options or ClientOptions()
    # `replace` alone would not check the new values.
    fields = {name: getattr(common, name) for name in ClientOptions.__struct_fields__}
    settled = ClientOptions(**fields | client), own(group=group, **member)
    for each in settled:
        warn_of_milliseconds(group, each)
    return settled


def _check_given(name_servers: object, options: object) -> None:
    if not isinstance(name_servers, str):
        raise InvalidInput(
            f"name servers must be text such as 'host1:9876;host2:9876', not {name_servers!r}"
        )
    if options is not None and not isinstance(options, ClientOptions):
        raise InvalidInput(f"options must be a ClientOptions, not a {type(options).__name__}")
