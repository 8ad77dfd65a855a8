"""Waiting for a peer on the same machine without sleeping: the first microseconds of a wait.

Waking a process costs more than such a peer takes to answer, or to send its next request. The core
looks for bytes again and again, and stops doing so where that does not pay: with one processor,
with a peer that is far away or busy, in a second thread. Without the core no connection spins.
"""

import asyncio
import os
from typing import Protocol

from pocketmq import native

SWITCH = "POCKETMQ_SPIN"
"""The variable of the environment that turns it off, with `off`."""
_LIMIT = 100
"""Microseconds: a batch of 32 messages is stored and answered within that."""
ROUNDS = 4
"""Requests of one client that are taken one after another before others get their turn."""

ALONE = 32
"""Reads in a row of one client after which a server waits for its next request: others that ask
now and then would wait behind it."""


class Spin(Protocol):
    """`pocketmq_core.Spin`: the waits on one socket. Used by one thread at a time."""

    def receive(self, size: int, /) -> bytes | None:
        """Return bytes that are there or come at once, up to `size` of them; or None.

        None says nothing about the socket: the next read finds its end, also after an error.
        """


def spin_on(descriptor: int) -> Spin | None:
    """Return what waits on a socket, as long as it is open; None if spinning is off."""
    if native.core is None or os.environ.get(SWITCH) == "off":
        return None
    spin: Spin = native.core.Spin(descriptor, _LIMIT)
    return spin


def spin_on_transport(transport: asyncio.BaseTransport) -> Spin | None:
    """Return what waits on a transport's socket; None for what is encrypted, too."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("ssl_object") is not None:
        return None
    return spin_on(sock.fileno())
