"""Which requests may come in at all: by host, origin and method. Pure, over headers.

A page of somebody else can have a browser send requests here. It cannot choose `Host`, `Origin` and
`Sec-Fetch-Site`: these tell it apart.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pocketmq.dashboard.settings import DashboardSettings, is_loopback

_SAFE_METHODS = {"GET", "HEAD"}
_OWN_FETCHES = {"same-origin", "none"}


@dataclass(frozen=True)
class Refusal:
    """Why a request is not let in."""

    status: int
    reason: str


class Doorstep:
    """Knows by which names a dashboard may be called."""

    def __init__(self, settings: DashboardSettings) -> None:
        own = {"localhost", "127.0.0.1", "::1", settings.host, *settings.names}
        self._names = {name.lower().rstrip(".") for name in own}
        self._any_address = not is_loopback(settings.host)

    def refuse(self, kind: str, method: str, headers: Mapping[str, str]) -> Refusal | None:
        """Tell why a request is refused, None if it is let in; `kind` is http or websocket."""
        host = headers.get("host", "")
        if not self._knows(host):
            return Refusal(421, "this dashboard is not known by that name; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return Refusal(403, "a page of another site asked for this")
        if origin is None and (kind == "websocket" or method not in _SAFE_METHODS):
            return Refusal(403, "a request that changes something says which page it comes from")
        foreign = headers.get("sec-fetch-site", "none") not in _OWN_FETCHES
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return Refusal(403, "a page of another site asked for this")
        return None

    def _knows(self, host: str) -> bool:
        """Tell whether a browser means us: a name that was told, or an address.

        Names are what an attacker can point to any address (DNS rebinding); addresses are not.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, _ = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return False
        if parts.netloc != host or parts.username is not None or not name:
            return False
        return name in self._names or (self._any_address and _is_address(name))


def _same(origin: str, host: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
