"""The proxy's half of one client's Telemetry stream: commands that wait to be written.

A client that does not read its commands is disconnected, so that they do not grow memory.
"""

import asyncio
from collections.abc import Callable

from pocketmq.proxy.wire import service as s

MOST_WAITING = 1024


class TelemetryStream:
    """Commands for one client. Belongs to one event loop."""

    def __init__(self, hang_up: Callable[[], object]) -> None:
        self._hang_up = hang_up
        self._waiting: asyncio.Queue[s.TelemetryCommand] = asyncio.Queue(MOST_WAITING)

    def send(self, command: s.TelemetryCommand) -> bool:
        """Queue a command; False if the client reads too slowly, which ends the stream."""
        try:
            self._waiting.put_nowait(command)
        except asyncio.QueueFull:
            self._hang_up()
            return False
        return True

    async def next(self) -> s.TelemetryCommand:
        """Wait for the next command to write."""
        return await self._waiting.get()
