"""Hosts and ports: where the parts of a cluster listen, and what clients connect to.

With a data directory the brokers' ports are saved in `ports.json` there, so that they are the same
at the next start. A saved or default port is a preference: if another process has it by now, any
free one does, because clients ask the name server.
"""

import asyncio
import logging
import socket
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from pocketmq.errors import CannotStart, StoreError
from pocketmq.net import reachable_host

logger = logging.getLogger("pocketmq.cluster")

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
"""Hosts that mean every interface, and how this machine itself gets there."""

ADVICE = "authenticationEnabled or aclEnable turn it on"
NAME_SERVER_ADVICE = "authenticationEnabled turns it on"
PORTS_FILE = "ports.json"
FIRST_BROKER_PORT = 10911
PORT_STEP = 10
"""A Java broker also uses the ports two below and one above its own; ours leave them free."""


async def resolved(host: str, part: str) -> str:
    """Return the address of a host name, IPv4 before IPv6. Raises `CannotStart`."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return host  # an address already: a look-up would cost a thread
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        reason = f"the host {host!r} does not resolve; give an address of this machine"
        raise CannotStart(part, reason) from problem
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


def advertised_host(listening: str) -> str:
    """Return the host that clients connect to, for a part that listens there."""
    return reachable_host(listening) if listening in WILDCARDS else listening


def own_host(listening: str) -> str:
    """Return the host by which this machine reaches a part that listens there."""
    return WILDCARDS.get(listening, listening)


def warn_if_open(host: str, *, guarded: bool = False, advice: str = ADVICE) -> None:
    """Log a warning if other machines can reach an address and access control is off."""
    if not guarded and host != "::1" and not host.startswith("127."):
        logger.warning(
            "listening on %s without access control: any client that reaches it can read and "
            "write everything; %s",
            host,
            advice,
        )


def default_port(first: int, number: int) -> int:
    """Return the port of the n-th broker, counting from 0; 0 means any free one."""
    return first + PORT_STEP * number if first else 0


def is_free(host: str, port: int) -> bool:
    """Return whether a server could listen there now."""
    probe = _bound(host, port)
    if probe is None:
        return False
    probe.close()
    return True


class HeldPort:
    """A port that is kept while nothing listens there: no other process is given it.

    Clients are refused. A server that is told the port can listen there meanwhile. Held on Linux
    only, as other systems do not allow that; and not if another process has the port.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def hold(self, host: str, port: int) -> None:
        """Keep the port, until `let_go`."""
        if self._socket is None and sys.platform == "linux":
            self._socket = _bound(host, port)

    def let_go(self) -> None:
        """Give up the port; a server that listens there keeps it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _bound(host: str, port: int) -> socket.socket | None:
    """Return a socket that has the port and does not listen; None if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio's servers do
    try:
        place.bind((host, port))
    except OSError:
        place.close()
        return None
    return place


def read_ports(data: Path | None) -> dict[str, int]:
    """Return the ports brokers had the last time; none if the file is missing or damaged."""
    if data is None:
        return {}
    path = data / PORTS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as problem:
        logger.warning("ignoring saved ports: file=%s error=%s", path, problem)
        return {}


def write_ports(data: Path | None, ports: dict[str, int]) -> None:
    """Save the ports. Raises `StoreError`."""
    if data is None:
        return
    path = data / PORTS_FILE
    beside = path.with_suffix(".new")
    try:
        beside.write_bytes(msgspec.json.encode(ports))
        beside.replace(path)
    except OSError as problem:
        raise StoreError(f"cannot write {path}: {problem.strerror}") from problem
