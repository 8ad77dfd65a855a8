"""Who makes a call: what the metadata of a gRPC call says of its client."""

import re
from collections.abc import Sequence

import msgspec

from pocketmq.client.calls import ClientKind
from pocketmq.protocol.peers import CURRENT_VERSION, Language, version_number
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

FIELDS = (
    "x-mq-client-id",
    "x-mq-language",
    "x-mq-client-version",
    "x-mq-date-time",
    "authorization",
)
"""The metadata that is read."""
_LONGEST_ID = 512
_LANGUAGES = {"GOLANG": Language.GO, "NODEJS": Language.NODE_JS, "CSHARP": Language.DOTNET}
"""Names of clients that are not RocketMQ's own."""
_RELEASE = re.compile(r"[vV]?(\d)\.(\d)\.(\d)(?!\d)")
_OLDEST = 5


class Caller(msgspec.Struct, frozen=True):
    """A client, as one of its calls describes it."""

    client_id: str
    address: str
    """Where the call comes from, as `host:port`."""
    language: str = ""
    version: str = ""
    date_time: str = ""
    authorization: str = ""


def read_caller(values: Sequence[str | None], address: str) -> Caller:
    """Return the client of a call that comes from an address; `values` are those of `FIELDS`.

    Raises `CallRefused` if the client does not name itself.
    """
    client_id, language, version, date_time, authorization = (each or "" for each in values)
    if not client_id.strip():
        raise CallRefused(d.Code.CLIENT_ID_REQUIRED, "client id cannot be empty")
    if len(client_id) > _LONGEST_ID or not client_id.isprintable():
        raise CallRefused(d.Code.BAD_REQUEST, "client id is too long or not printable")
    return Caller(client_id, address, language, version, date_time, authorization)


def client_kind(caller: Caller) -> ClientKind:
    """Return as what brokers list a client, by what it says of itself.

    As in Apache's proxy an unknown language is OTHER, and an unknown release counts as the newest.
    """
    name = caller.language.strip().upper().replace("-", "_")
    language = _LANGUAGES.get(name) or Language.__members__.get(name, Language.OTHER)
    found = _RELEASE.match(caller.version.strip())
    if found is None or int(found[1]) < _OLDEST:
        return ClientKind(language, CURRENT_VERSION)
    return ClientKind(language, version_number(*map(int, found.groups())))


def peer_address(peer: str) -> str:
    """Return gRPC's `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000` as `host:port`."""
    _, _, address = peer.partition(":")
    return address.replace("%5B", "[").replace("%5D", "]")
