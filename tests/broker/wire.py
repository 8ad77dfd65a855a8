"""A peer without a socket."""

from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader


class Wire:
    """Keeps what it is sent."""

    def __init__(self, name: str = "client") -> None:
        self.remote_address = name
        self.closed = False
        self.unsent = 0
        self._reader = FrameReader(1 << 24)
        self._received: list[Command] = []

    def write(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._received += map(read_command, self._reader.feed(piece))

    def close(self) -> None:
        self.closed = True

    def take(self) -> list[Command]:
        """Return what came since the last time."""
        received, self._received = self._received, []
        return received

    def __repr__(self) -> str:
        return f"<{self.remote_address}>"
