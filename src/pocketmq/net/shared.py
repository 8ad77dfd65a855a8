"""What all connections of one server or dialer have in common.
----
The open connections of one server or dialer, and their joint end."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pocketmq.net.budget import MemoryBudget
from pocketmq.net.limits import Limits
from pocketmq.protocol.command import OpaqueCounter

if TYPE_CHECKING:
    from pocketmq.net.connection import Connection

_READ = 256 * 1024


def _room() -> memoryview:
    return memoryview(bytearray(_READ))


@dataclass(slots=True)
class Shared:
    """Belongs to one event loop."""

    limits: Limits
    budget: MemoryBudget | None = None
    """Memory for the peers of a server; a client chooses its own peers and has none."""
    strangers: MemoryBudget | None = None
    """The part of it for peers that have not authenticated, if they have to."""
    opaque: OpaqueCounter = field(default_factory=OpaqueCounter)
    room: memoryview = field(default_factory=_room)
    """Where every read goes first. One is enough, as a read is handled before the next is made;
    letting asyncio allocate as much for each small read costs it more than all the rest."""


class OpenConnections:
    """Who is connected. Belongs to one event loop."""

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
        """Someone came."""
        self._connections.add(connection)
        self._empty.clear()

    def discard(self, connection: "Connection") -> None:
        """Someone is gone, socket and all."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def close(self, grace: float) -> None:
        """Close all; after `grace` seconds drop what has not left. Returns when all are gone."""
        for connection in self:
            connection.close()
        try:
            async with asyncio.timeout(grace):
                await self._empty.wait()
        except TimeoutError:
            for connection in self:
                connection.abort()
            await self._empty.wait()
