"""Access control of a cluster's name server, made from the settings of its brokers.

A cluster whose brokers ask who somebody is has a name server that asks, too. Its brokers sign their
registrations with a secret that is made at each start, kept in memory and handed to them on their
standard input.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput
from pocketmq.model.secrets import InnerCredentials
from pocketmq.nameserver.config import NameServerAccess, NameServerConfig

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
