"""What the connections of one server or dialer have in common, and the set of open ones.

Also how much one read may bring a lane: other connections wait until all of it is carried out.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pocketmq.net.budget import MemoryBudget
from pocketmq.net.limited_logs import CutOffLog
from pocketmq.net.limits import Limits
from pocketmq.protocol.command import OpaqueCounter

if TYPE_CHECKING:
    from pocketmq.net.connection import Connection

LANE_READ = 32 * 1024
"""Bytes of one read of a lane: fewer than 256 of the smallest sends."""
_LARGEST = 128 * 1024
"""Bytes of one read of a lane at most, where the last one began with a large frame."""
_STEP = 16 * 1024
_READ = 256 * 1024
"""Bytes of any other read at most."""


def next_read(data: bytes) -> int:
    """Return the bytes of the next read, by what the last one brought, from a frame's start on.

    After a large frame, such as a batch, another one of about that size is expected: two reads and
    an event-loop iteration between them would cost more than storing it. Small frames are again
    read a little at a time.
    """
    size = 4 + int.from_bytes(data[:4], "big")
    return LANE_READ if size < LANE_READ else min((size // _STEP + 1) * _STEP, _LARGEST)


def _read_buffer() -> memoryview:
    return memoryview(bytearray(_READ))


def _cut_off_log() -> CutOffLog:
    return CutOffLog(logging.getLogger("pocketmq.net"))


@dataclass(slots=True)
class Shared:
    """The parts that connections of one server or dialer share. Belongs to one event loop."""

    limits: Limits
    budget: MemoryBudget | None = None
    """Memory for the peers of a server; a client chooses its own peers and has none."""
    strangers: MemoryBudget | None = None
    """The part of it for peers that have not authenticated, if access control is on."""
    opaque: OpaqueCounter = field(default_factory=OpaqueCounter)
    cut_offs: CutOffLog = field(default_factory=_cut_off_log)
    read_buffer: memoryview = field(default_factory=_read_buffer)
    """Where every read goes first. One is enough, as a read is handled before the next is made;
    letting asyncio allocate as much for each small read costs it more than all the rest."""

    latest: "Connection | None" = None
    """The connection of the last read of the loop."""
    in_a_row: int = 0
    """How many reads before it were that connection's, too."""
    lane_buffer: memoryview = field(init=False)
    """The start of it, for a usual read of a lane: a new view for each would cost."""

    def __post_init__(self) -> None:
        self.lane_buffer = self.read_buffer[:LANE_READ]

    def close(self) -> None:
        """Stop all timers."""
        self.cut_offs.close()
        for budget in (self.budget, self.strangers):
            if budget is not None:
                budget.close()


class OpenConnections:
    """The open connections of one server or dialer. Belongs to one event loop."""

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator["Connection"]:
        return iter(tuple(self._connections))

    def __contains__(self, connection: object) -> bool:
        return connection in self._connections

    def add(self, connection: "Connection") -> None:
        """Add a connection that was opened."""
        self._connections.add(connection)
        self._empty.clear()

    def discard(self, connection: "Connection") -> None:
        """Remove a connection whose socket is closed."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def close(self, grace: float) -> None:
        """Close all; after `grace` seconds abort those with unsent bytes. Wait for all to end."""
        for connection in self:
            connection.close()
        try:
            async with asyncio.timeout(grace):
                await self._empty.wait()
        except TimeoutError:
            for connection in self:
                connection.abort()
            await self._empty.wait()
