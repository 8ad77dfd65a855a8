"""The connection options, the same for the source and the sink.

`Reach` is their value: frozen, picklable, and printed without its secrets.
"""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from pocketmq import ClientOptions, Credentials, Tls
from pocketmq.blocking.record_reader import name_server_addresses
from pocketmq.errors import MQError, OptionInvalid
from pocketmq.spark import option_values as values

REACH: dict[str, values.Read] = {
    "nameServer": values.text,
    "accessKey": values.text,
    "secretKey": values.text,
    "securityToken": values.text,
    "tls": values.flag,
    "tlsCa": values.text,
    "tlsCert": values.text,
    "tlsKey": values.text,
    "tlsKeyPassword": str,
    "tlsVerify": values.flag,
    "tlsCheckHostname": values.flag,
    "tlsServerName": values.text,
    "namespace": values.text,
    "namespaceV2": values.text,
    "requestTimeout": values.seconds,
    "retryTimeout": values.seconds,
}
"""How each is read."""

SPARK_OWN = ("path", "checkpointLocation", "queryName", "serialization.format", "streamName")
"""Options that Spark adds by itself."""

STAGING = "pocketmq-spark-staging"
"""The topic in which rows of exactly-once sinks wait, unless an option names another."""

_TLS_FIELDS = {
    "tlsCa": "ca",
    "tlsCert": "cert",
    "tlsKey": "key",
    "tlsKeyPassword": "key_password",
    "tlsVerify": "verify",
    "tlsCheckHostname": "check_hostname",
    "tlsServerName": "server_name",
}


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """How to connect to a cluster."""

    name_servers: str
    credentials: Credentials | None = None
    tls: Tls | None = None
    namespace: str = ""
    namespace_v2: str = ""
    request_timeout: float = 3.0
    """Seconds for one request; pulls of many messages have more."""
    retry_timeout: float = 30.0
    """Seconds for which retryable errors are retried."""

    def client(self) -> ClientOptions:
        """Return the same as options of a client."""
        return ClientOptions(
            name_servers=self.name_servers,
            credentials=self.credentials,
            tls=self.tls,
            namespace=self.namespace,
            namespace_v2=self.namespace_v2,
            request_timeout=self.request_timeout,
        )


def client_of(name_server: str, given: Mapping[str, str]) -> ClientOptions:
    """Return client options equal to the connection options among those of a source or sink.

    Raises `OptionInvalid`.
    """
    known = {name.lower() for name in REACH}
    reach = {name: value for name, value in given.items() if name.lower() in known}
    if name_server:
        reach = {"nameServer": name_server, **reach}
    return reach_of(values.read_options(reach, REACH)).client()


def reach_of(found: Mapping[str, Any]) -> Reach:
    """Combine connection options that were read; raises `OptionInvalid` for contradictions."""
    try:
        addresses = name_server_addresses(found.get("nameServer", ""), os.environ)
    except MQError as error:
        raise OptionInvalid("nameServer", f"is invalid: {error}") from error
    values.together(found, "secretKey", "accessKey")
    values.together(found, "accessKey", "secretKey")
    values.together(found, "securityToken", "accessKey")
    for name in _TLS_FIELDS:
        if name in found and not found.get("tls"):
            raise OptionInvalid(name, "requires option 'tls' to be true")
    if "tlsCa" in found and found.get("tlsVerify") is False:
        raise OptionInvalid("tlsVerify", "is false, so 'tlsCa' has no effect; remove one of them")
    if "namespace" in found and "namespaceV2" in found:
        raise OptionInvalid("namespaceV2", "cannot be combined with 'namespace'; set one of them")
    for name in ("requestTimeout", "retryTimeout"):
        if name in found and not 0.01 <= found[name] <= 86400:
            raise OptionInvalid(name, "must be from 10ms to 1d")
    credentials = None
    if "accessKey" in found:
        credentials = Credentials(
            access_key=found["accessKey"],
            secret_key=found["secretKey"],
            security_token=found.get("securityToken"),
        )
    tls = None
    if found.get("tls"):
        tls = Tls(**{field: found[name] for name, field in _TLS_FIELDS.items() if name in found})
    return Reach(
        name_servers=";".join(addresses),
        credentials=credentials,
        tls=tls,
        namespace=found.get("namespace", ""),
        namespace_v2=found.get("namespaceV2", ""),
        request_timeout=found.get("requestTimeout", 3.0),
        retry_timeout=found.get("retryTimeout", 30.0),
    )
