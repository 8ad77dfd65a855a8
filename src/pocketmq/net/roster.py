"""The open connections of one server or dialer, and their joint end."""

import asyncio
from collections.abc import Iterator

from pocketmq.net.connection import Connection


class Roster:
    """Who is connected. Belongs to one event loop."""

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._connections))

    def __contains__(self, connection: object) -> bool:
        return connection in self._connections

    def add(self, connection: Connection) -> None:
        """Someone came."""
        self._connections.add(connection)
        self._empty.clear()

    def discard(self, connection: Connection) -> None:
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
