"""Where to listen and what to tell clients: a host as given, turned into addresses."""

import asyncio
import logging
import socket
from contextlib import suppress

from pocketmq.errors import CannotStart
from pocketmq.net.server import reachable_host

logger = logging.getLogger("pocketmq.cluster")

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
"""Hosts that mean every interface, and how this machine itself gets there."""


async def resolved(host: str, part: str) -> str:
    """Give the address of a host name, IPv4 before IPv6. Raises `CannotStart`."""
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


def told_host(listening: str) -> str:
    """Give the host clients are told for a part that listens there."""
    return reachable_host(listening) if listening in WILDCARDS else listening


def own_host(listening: str) -> str:
    """Give the host by which this machine reaches a part that listens there."""
    return WILDCARDS.get(listening, listening)


ADVICE = "authenticationEnabled or aclEnable turn it on"
NAME_SERVER_ADVICE = "authenticationEnabled turns it on"


def warn_if_open(host: str, *, guarded: bool = False, advice: str = ADVICE) -> None:
    """Say so when others than this machine can reach an address, and nobody asks who they are."""
    if not guarded and host != "::1" and not host.startswith("127."):
        logger.warning(
            "listening on %s without access control: whoever reaches it can read and write "
            "everything; %s",
            host,
            advice,
        )
