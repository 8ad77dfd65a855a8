"""A name server's settings, under RocketMQ's names, and changing them while it runs.

Settings of access control and TLS are read at the start and never changed over the wire; their keys
are the broker's where they mean the same, so that one file serves a whole cluster. Java's settings
for its thread pools are not here; updates that name them are ignored, as Java ignores unknown ones.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pocketmq.errors import InvalidInput, NoPermission, ResponseCode
from pocketmq.model.secrets import HIDDEN, initial_users
from pocketmq.net import HandshakeSettings, parse_networks
from pocketmq.net.handshake import Networks
from pocketmq.net.handshake_settings import SECRET_KEYS as HANDSHAKE_KEYS

_USER_KEYS = frozenset({"initAuthenticationUser", "innerClientAuthenticationCredentials"})
_SECRET_KEYS = HANDSHAKE_KEYS | _USER_KEYS
_RANGES = {
    "serverChannelMaxIdleTimeSeconds": (10, 2**31 - 1),
    "serverSocketBacklog": (1, 65535),
    "waitSecondsForService": (1, 3600),
}


class NameServerAccess(HandshakeSettings, frozen=True, kw_only=True, rename="camel"):
    """Settings of access control; the defaults are Java's: every client may change everything."""

    authentication_enabled: bool = False
    """Whether requests that change anything need a super user's signature."""

    read_authentication_enabled: bool = False
    """Whether all other requests need a user's signature, too."""

    init_authentication_user: str = ""
    """A super user, `{"username":…,"password":…}`."""

    inner_client_authentication_credentials: str = ""
    """A super user, `{"accessKey":…,"secretKey":…}`."""

    authentication_users_file: str = ""
    """A JSON file of further users; read again when it changes."""

    trusted_broker_addresses: str = ""
    """Addresses and networks, joined by `,`, whose brokers register without a signature."""

    broker_take_over_enable: bool = False
    """Whether a registration replaces a live broker of the same name and id, as in Java."""

    def __post_init__(self) -> None:
        self.server_tls()
        self.trusted_brokers()
        self.initial_users()
        if self.read_authentication_enabled and not self.authentication_enabled:
            raise InvalidInput("readAuthenticationEnabled needs authenticationEnabled=true")

    def initial_users(self) -> list[tuple[str, str]]:
        """Return names and passwords of the super users in the settings. Raises `InvalidInput`."""
        return initial_users(
            self.init_authentication_user, self.inner_client_authentication_credentials
        )

    def trusted_brokers(self) -> Networks:
        """Return where brokers need no signature. Raises `InvalidInput`."""
        return parse_networks(self.trusted_broker_addresses)


_AT_START = frozenset(field.encode_name for field in msgspec.structs.fields(NameServerAccess))
_ALWAYS_BLACK = _AT_START | {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"}


class NameServerConfig(NameServerAccess, frozen=True, kw_only=True, rename="camel"):
    """How a name server behaves; the defaults are Java's."""

    order_message_enable: bool = False
    """Whether routes carry the order configuration of their topic."""

    return_order_topic_config_to_broker: bool = True
    """Whether brokers get all order configurations when they register."""

    support_acting_master: bool = False
    """Whether clients see a slave as the master when that is lost."""

    notify_min_broker_id_changed: bool = False
    """Whether brokers are notified when another of their name has the lowest id."""

    delete_topic_with_broker_registration: bool = False
    """Whether a broker's topics are removed when it registers without them."""

    enable_topic_list: bool = True
    """Whether clients may list topics by cluster or unit."""

    enable_all_topic_list: bool = True
    """Whether clients may list all topics."""

    need_wait_for_service: bool = False
    """Whether routes are refused for a while after the start, until brokers have registered."""

    wait_seconds_for_service: int = 45
    """Seconds after the start for which routes are refused."""

    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"
    """Settings that cannot be updated over the wire, besides those that never can."""

    server_channel_max_idle_time_seconds: int = 120
    """Seconds without a byte until a connection is closed; read at the start."""

    server_socket_backlog: int = 1024
    """Connections the kernel holds until they are accepted; read at the start."""

    max_connection_memory: int = 64 * 1024 * 1024
    """Bytes held for all connections together (ours), which is four of the largest frames; read
    at the start."""

    def properties(self) -> dict[str, str]:
        """Return all settings as text."""
        return {name: _text(value) for name, value in msgspec.to_builtins(self).items()}

    def kept_properties(self) -> dict[str, str]:
        """Return the settings that are saved: not those of access control and TLS."""
        return {name: text for name, text in self.properties().items() if name not in _AT_START}

    def shown_properties(self) -> dict[str, str]:
        """Return all settings with secrets hidden."""
        properties = self.properties()
        return properties | {key: HIDDEN for key in _SECRET_KEYS if properties[key]}

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.shown_properties().items())
        return f"NameServerConfig({shown})"

    def updated(self, properties: Mapping[str, str]) -> "NameServerConfig":
        """Return the settings with these changes; names that are not settings are ignored.

        Raises `InvalidInput` for an invalid value; Java would silently keep the old one.
        """
        changes: dict[str, Any] = {}
        for field in msgspec.structs.fields(self):
            text = properties.get(field.encode_name)
            if text is not None:
                changes[field.name] = _read(field.encode_name, field.type, text.strip())
        return msgspec.structs.replace(self, **changes)

    def check_updatable(self, properties: Mapping[str, str]) -> None:
        """Raise `NoPermission` if these changes name a setting that may not be changed."""
        black = {*_ALWAYS_BLACK, *self.config_black_list.split(";")}
        if not black.isdisjoint(properties):
            raise NoPermission(ResponseCode.NO_PERMISSION, "Can not update config in black list.")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(name: str, kind: Any, text: str) -> Any:
    if kind is str:
        return text
    if kind is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    low, high = _RANGES.get(name, (1, 2**31 - 1))
    if kind is int and text.isascii() and text.isdigit() and low <= int(text[:12]) <= high:
        return int(text)
    wanted = "true or false" if kind is bool else f"a whole number from {low} to {high}"
    raise InvalidInput(f"{name} must be {wanted}, not {text[:80]!r}")
