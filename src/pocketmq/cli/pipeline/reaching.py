"""A cluster as a pipeline reaches it: for questions of its own, and as options of Spark's source.

Secrets go to Spark as options of a read or a write, which it hands to tasks; they are no part of
its command line, its settings or what it says of a query.
"""

import os
from typing import Self

import msgspec

from pocketmq.cli.entry import Entry
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.spark.options import client_of


class Reached(msgspec.Struct, frozen=True):
    """Where a cluster is, and how to be let in."""

    name_server: str
    client: ClientOptions
    options: dict[str, str]
    """The same for a source or a sink, without the name server; do not print them."""

    @classmethod
    def by(cls, name_server: str, entry: Entry) -> Self:
        """Put together what was given, else what the environment says.

        Raises `NameServersUnreachable` if no name server is named, and `InvalidInput`.
        """
        address = ";".join(name_server_addresses(name_server, os.environ))
        options = _options(entry)
        return cls(address, client_of(address, options), options)


def _options(entry: Entry) -> dict[str, str]:
    given: dict[str, str | None] = {}
    user, tls = entry.credentials, entry.tls
    if user is not None:
        given |= {"accessKey": user.access_key, "secretKey": user.secret_key}
    if tls is not None:
        given |= {
            "tls": "true",
            "tlsCa": tls.ca,
            "tlsCert": tls.cert,
            "tlsKey": tls.key,
            "tlsServerName": tls.server_name,
            "tlsVerify": None if tls.verify else "false",
        }
    return {name: value for name, value in given.items() if value}
