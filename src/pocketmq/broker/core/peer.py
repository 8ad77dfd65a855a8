"""What tables and handlers need of a connection; `pocketmq.net.Connection` has it."""

from typing import Protocol


class ClientPeer(Protocol):
    """The client at the other end of a connection; compared by identity."""

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes it has not taken yet."""
        ...

    @property
    def remote_address(self) -> str:
        """The client's address, as host:port."""
        ...

    def write(self, *pieces: bytes) -> None:
        """Send whole frames."""
        ...

    def close(self) -> None:
        """Close the connection, after what is in flight."""
        ...
