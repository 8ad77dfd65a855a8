"""The two clusters of a migration, as options."""

from typing import Any, Self

import click
import msgspec

from pocketmq.admin.migration.side import Side
from pocketmq.admin.wire import AdminOptions
from pocketmq.cli.commands import all_of
from pocketmq.cli.connection_options import TO, Entry, entry_options, target_entry_options
from pocketmq.client.options import ClientOptions
from pocketmq.errors import InvalidInput

_TIMEOUT = 5.0
"""Seconds for each request to a server."""

ends_options = all_of(
    click.option(
        "-n",
        "--namesrv",
        metavar="HOST:PORT",
        envvar="NAMESRV_ADDR",
        required=True,
        help="Name servers of the source, separated by ';'.  [default: $NAMESRV_ADDR]",
    ),
    click.option("--cluster", help="Cluster of the source, if its name server has several."),
    click.option(
        "--to", "to", metavar="HOST:PORT", required=True, help="Name servers of the target."
    ),
    click.option("--to-cluster", help="Cluster of the target, if its name server has several."),
    entry_options,
    target_entry_options,
)
"""The options that an `Ends` is made of."""


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """The source and the target of a migration."""

    source: str
    target: str
    cluster: str | None
    to_cluster: str | None
    entry: Entry
    to_entry: Entry

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> Self:
        """Take them out of all the options of a command. Raises `InvalidInput`."""
        entry = Entry.taken_from(given)
        to_entry = Entry.taken_from(given, TO)
        source, target = given.pop("namesrv"), given.pop("to")
        if _spelled(source) == _spelled(target):
            raise InvalidInput(f"source and target are the same: {target}")
        return cls(
            source=_spelled(source),
            target=_spelled(target),
            cluster=given.pop("cluster"),
            to_cluster=given.pop("to_cluster"),
            entry=entry,
            to_entry=to_entry,
        )

    def sides(self) -> tuple[Side, Side]:
        """Return the source and the target."""
        return (
            _side(self.source, self.cluster, self.entry),
            _side(self.target, self.to_cluster, self.to_entry),
        )


def _spelled(addresses: str) -> str:
    return ";".join(sorted(part.strip() for part in addresses.split(";") if part.strip()))


def _side(address: str, cluster: str | None, entry: Entry) -> Side:
    client = ClientOptions(
        name_servers=address,
        credentials=entry.credentials,
        tls=entry.tls,
        request_timeout=_TIMEOUT,
    )
    return Side(client, cluster, AdminOptions(timeout=_TIMEOUT))
