"""Access control of a cluster's name server, made from the settings of its brokers.

A cluster whose brokers ask who somebody is has a name server that asks, too. Its brokers sign their
registrations with a secret that is made at each start, kept in memory and handed to them on their
standard input.

----
What servers and clusters can be told, checked before anything starts.
"""

import logging
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.embedded.listening import usual_port
from pocketmq.embedded.server_logging import LogSettings
from pocketmq.errors import BodyMalformed, InvalidInput
from pocketmq.model.start_users import InnerCredentials
from pocketmq.nameserver.config import NameServerAccess, NameServerConfig
from pocketmq.net import ClientAuth, TlsMode
from pocketmq.protocol.bodies.properties_text import read_properties

CLUSTER_USER = "pocketmq-cluster"
ACCESS_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(NameServerAccess))
"""Settings of a name server that a cluster can be given; some are its brokers', too."""


def registration_secret(config: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that lets brokers sign registrations, if that is needed."""
    if not BrokerConfig.from_properties(config).guarded:
        return {}
    user = InnerCredentials(access_key=CLUSTER_USER, secret_key=secrets.token_urlsafe(32))
    return {"nameServerCredentials": msgspec.json.encode(user).decode()}


def nameserver_settings(config: Mapping[str, str]) -> NameServerConfig:
    """Return the settings of a cluster's name server: doors and users as its brokers have them."""
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


logger = logging.getLogger("pocketmq.cluster")

Setting = str | int | bool

MAX_BROKERS = 64
OWN_KEYS = frozenset(
    {"advertisedPort", "bindAddress", "brokerIP1", "brokerName", "listenPort", "namesrvAddr"}
)
"""Settings a cluster gives each of its brokers itself."""
METRICS_PORT = "metricsPromExporterPort"


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster: how many brokers, where it listens, what it keeps."""

    brokers: int = 1
    data: Path | None = None  # None: in memory
    in_process: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    broker_port: int | None = None  # None: as `port` says, any free one or from 10911 on
    advertise: str = ""  # the host clients are told; "": the one it listens on
    config: dict[str, str] = {}
    from_file: frozenset[str] = frozenset()  # keys of it that changes made at run time replace
    faults: bool = False
    revive: bool = False  # start a broker process again that ended by itself
    log: LogSettings = LogSettings(level="warning")

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= MAX_BROKERS:
            raise InvalidInput(f"a cluster has 1 to {MAX_BROKERS} brokers, not {self.brokers}")
        for port in (self.port, self.broker_port or 0):
            if not 0 <= port <= 65535:
                raise InvalidInput(f"{port} is not a port; it is a number from 0 to 65535")
        last = usual_port(self.broker_port or 0, self.brokers - 1)
        if last > 65535:
            raise InvalidInput(
                f"{self.brokers} brokers from port {self.broker_port} on would need port {last}"
            )

    def metrics(self, name: str) -> dict[str, str]:
        """Return where a broker shows its metrics: each one port after the one before it."""
        port = self.config.get(METRICS_PORT, "0")
        if not port.isdecimal() or port == "0":  # what is wrong is told by who reads it
            return {}
        return {METRICS_PORT: str(int(port) + self.names.index(name))}

    @property
    def names(self) -> list[str]:
        """The brokers' names, the same at every start."""
        return [f"broker-{number}" for number in range(self.brokers)]


def inner_tls(config: Mapping[str, str]) -> dict[str, str]:
    """Return what lets the parts of a cluster talk to each other when plain words are refused.

    They show the certificate they have, and do not check each other's: they are on one machine.
    """
    doors = BrokerConfig.from_properties(config)
    tls = doors.server_tls()
    if tls is None or tls.mode is not TlsMode.ENFORCING:
        return {}
    own = {"tls.client.certPath": tls.cert, "tls.client.keyPath": tls.key}
    own["tls.client.keyPassword"] = tls.key_password
    return {"tls.enable": "true"} | (own if tls.client_auth is not ClientAuth.NONE else {})


def cluster_config(config: Mapping[str, Setting] | None) -> dict[str, str]:
    """Check settings for the brokers of a cluster and give them as text. Raises `InvalidInput`."""
    properties = as_text(config or {})
    known = BrokerConfig().to_properties() | dict.fromkeys(ACCESS_KEYS, "")
    _check_known(properties, known, "broker")
    for key in sorted(OWN_KEYS & properties.keys()):
        raise InvalidInput(f"{key} cannot be set here: the cluster gives it to each broker")
    nameserver_settings(properties)  # what is wrong with it is told here
    return inner_tls(properties) | registration_secret(properties) | properties


def broker_properties(file: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Join a file's settings with those given, which win. Raises `InvalidInput`.

    A Java broker's file has keys that mean nothing here; they are passed over and told.
    """
    known = BrokerConfig().to_properties()
    _check_known(given, known, "broker")
    for key in file.keys() - known.keys():
        logger.warning("the setting %s means nothing to this broker", key)
    return (
        {"bindAddress": "127.0.0.1"} | {k: v for k, v in file.items() if k in known} | dict(given)
    )


def nameserver_config(
    given: Mapping[str, str], file: Mapping[str, str] | None = None
) -> NameServerConfig:
    """Join a name server's settings with those of a file; those given win. Raises `InvalidInput`.

    Keys of a Java name server's file that mean nothing here are passed over; the log names them.
    """
    config = NameServerConfig()
    known = config.properties()
    _check_known(given, known, "name server")
    for key in (file or {}).keys() - known.keys():
        logger.warning("name server setting %s is not known here and has no effect", key)
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
            raise InvalidInput(f"there is no {part} setting {key!r}{hint}")
