"""Who answers what comes in."""

from typing import TYPE_CHECKING, Protocol

from pocketmq.protocol.command import Command

if TYPE_CHECKING:
    from pocketmq.net.connection import Connection


class Owner(Protocol):
    """Whoever answers what comes in. Methods are called on the loop and must not block.

    An exception that leaves a method is logged and costs the connection it was called for.
    """

    def connection_opened(self, connection: "Connection") -> None:
        """Note that a connection is ready for use."""

    def requests_received(self, connection: "Connection", requests: list[Command]) -> None:
        """Answer requests, now or later: those of one read, in order.

        One read with very many comes in several batches. Answers never go through here.
        """

    def connection_closed(self, connection: "Connection", cause: Exception | None) -> None:
        """Note that a connection is gone; its waiters have been told. Called once.

        `cause` is None only if this side closed it without giving one.
        """
