"""Settings of servers and clusters, checked before anything starts.

A cluster whose brokers have access control has a name server with access control, too. Its brokers
sign their registrations with a secret that is made at each start, kept in memory and handed to them
on their standard input.
"""

import logging
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.embedded.listening import default_port
from pocketmq.embedded.server_logging import LogSettings
from pocketmq.errors import BodyMalformed, InvalidInput
from pocketmq.model.secrets import InnerCredentials
from pocketmq.nameserver.config import NameServerAccess, NameServerConfig
from pocketmq.net import ClientAuth, TlsMode
from pocketmq.net.self_signed import FILE_NAME
from pocketmq.protocol.config_text import read_properties

CLUSTER_USER = "pocketmq-cluster"
ACCESS_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(NameServerAccess))
"""Settings of a name server that can be set for a cluster; some are its brokers', too."""

logger = logging.getLogger("pocketmq.cluster")
Setting = str | int | bool
MAX_BROKERS = 64
OWN_KEYS = frozenset(
    {"advertisedPort", "bindAddress", "brokerIP1", "brokerName", "listenPort", "namesrvAddr"}
)
"""Settings that a cluster sets for each of its brokers itself."""
METRICS_PORT = "metricsPromExporterPort"


def registration_secret(config: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that lets brokers sign registrations, if that is needed."""
    if not BrokerConfig.from_properties(config).guarded:
        return {}
    user = InnerCredentials(access_key=CLUSTER_USER, secret_key=secrets.token_urlsafe(32))
    return {"nameServerCredentials": msgspec.json.encode(user).decode()}


def nameserver_settings(config: Mapping[str, str]) -> NameServerConfig:
    """Return the settings of a cluster's name server: TLS and users as its brokers have them."""
    own = {key: value for key, value in config.items() if key in ACCESS_KEYS}
    if BrokerConfig.from_properties(config).guarded:
        own["authenticationEnabled"] = "true"
    return NameServerConfig().updated(own)


def nameserver_supers(config: BrokerConfig) -> dict[str, str]:
    """Return the super users a name server has beside those of its settings.

    They are the one that registers brokers and, with accounts of 4.x, the admins among those.
    """
    supers = {}
    if config.acl_enable:
        supers = _admins(Path(config.acl_file))
    user = config.name_server_user()
    return supers if user is None else supers | {user.access_key: user.secret_key}


def _admins(path: Path) -> dict[str, str]:
    from pocketmq.broker.access.account_files import AccountFiles

    try:
        listed = AccountFiles(path).listed
    except InvalidInput:
        return {}  # brokers report the same fault, and do not start
    return {
        account.access_key: account.secret_key
        for account in listed
        if account.admin and account.access_key and account.secret_key
    }


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a cluster: number of brokers, where it listens, what it keeps."""

    brokers: int = 1
    data: Path | None = None  # None: in memory
    in_process: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    broker_port: int | None = None  # None: as `port` says, any free one or from 10911 on
    advertise: str = ""  # the host clients connect to; "": the one it listens on
    config: dict[str, str] = {}
    from_file: frozenset[str] = frozenset()  # keys of it that changes made at run time replace
    faults: bool = False
    revive: bool = False  # restart a broker process that ended by itself
    log: LogSettings = LogSettings(level="warning")

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= MAX_BROKERS:
            raise InvalidInput(
                f"a cluster must have 1 to {MAX_BROKERS} brokers, not {self.brokers}"
            )
        for port in (self.port, self.broker_port or 0):
            if not 0 <= port <= 65535:
                raise InvalidInput(f"{port} is not a port; use a number from 0 to 65535")
        last = default_port(self.broker_port or 0, self.brokers - 1)
        if last > 65535:
            raise InvalidInput(
                f"{self.brokers} brokers from port {self.broker_port} on would need port {last}"
            )

    def metrics(self, name: str) -> dict[str, str]:
        """Return the metrics port of a broker as a setting: consecutive ports by its number."""
        port = self.config.get(METRICS_PORT, "0")
        if not port.isdecimal() or port == "0":  # an invalid one is refused by the broker
            return {}
        return {METRICS_PORT: str(int(port) + self.names.index(name))}

    @property
    def shared(self) -> dict[str, str]:
        """Settings that all parts have in common: where their self-signed certificate is kept."""
        key = "tls.server.selfSignedPath"
        if self.data is None or key in self.config:
            return {}
        return {key: str(self.data.absolute() / FILE_NAME)}

    @property
    def names(self) -> list[str]:
        """The brokers' names, the same at every start."""
        return [f"broker-{number}" for number in range(self.brokers)]


def inner_tls(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which a cluster's parts connect to each other if TLS is enforced.

    They use the certificate they have, and do not verify each other's: they are on one machine.
    """
    doors = BrokerConfig.from_properties(config)
    tls = doors.server_tls()
    if tls is None or tls.mode is not TlsMode.ENFORCING:
        return {}
    own = {"tls.client.certPath": tls.cert, "tls.client.keyPath": tls.key}
    own["tls.client.keyPassword"] = tls.key_password
    return {"tls.enable": "true"} | (own if tls.client_auth is not ClientAuth.NONE else {})


def cluster_config(config: Mapping[str, Setting] | None) -> dict[str, str]:
    """Check settings for a cluster's brokers and return them as text. Raises `InvalidInput`."""
    properties = as_text(config or {})
    known = BrokerConfig().to_properties() | dict.fromkeys(ACCESS_KEYS, "")
    _check_known(properties, known, "broker")
    for key in sorted(OWN_KEYS & properties.keys()):
        raise InvalidInput(f"{key} cannot be set here: the cluster sets it for each broker")
    nameserver_settings(properties)  # raises for invalid ones now, not at the start
    return inner_tls(properties) | registration_secret(properties) | properties


def broker_properties(file: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Join a file's settings with those given, which win. Raises `InvalidInput`.

    Keys of a Java broker's file that have no effect here are ignored and logged.
    """
    known = BrokerConfig().to_properties()
    _check_known(given, known, "broker")
    for key in file.keys() - known.keys():
        logger.warning("ignoring unknown broker setting %s", key)
    return (
        {"bindAddress": "127.0.0.1"} | {k: v for k, v in file.items() if k in known} | dict(given)
    )


def nameserver_config(
    given: Mapping[str, str], file: Mapping[str, str] | None = None
) -> NameServerConfig:
    """Join a name server's settings with those of a file; those given win. Raises `InvalidInput`.

    Keys of a Java name server's file that have no effect here are ignored and logged.
    """
    config = NameServerConfig()
    known = config.properties()
    _check_known(given, known, "name server")
    for key in (file or {}).keys() - known.keys():
        logger.warning("ignoring unknown name server setting %s", key)
    return config.updated(dict(file or {}) | dict(given))


def read_config_file(path: Path | None) -> dict[str, str]:
    """Read `key=value` lines. Raises `InvalidInput` for a file that is not there or not text."""
    if path is None:
        return {}
    try:
        return read_properties(path.read_bytes())
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from problem
    except BodyMalformed as problem:
        raise InvalidInput(f"cannot read {path}: {problem.reason}") from problem


def as_text(config: Mapping[str, Setting]) -> dict[str, str]:
    """Write settings as RocketMQ writes them: `true`, `8`, `ASYNC_FLUSH`."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in config.items()
    }


def _check_known(given: Mapping[str, str], known: Mapping[str, str], part: str) -> None:
    for key in given:
        if key not in known:
            nearest = get_close_matches(key[:100], known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise InvalidInput(f"unknown {part} setting {key!r}{hint}")
