"""Requests of one connection on their way to its owner: fair batches, and back-pressure.

Owns the requests that were read and not handed over yet, and when to stop reading. Belongs to the
connection's event loop. It gets the connection with every call and never keeps it: a reference
back would be a cycle, and closed connections would live until the garbage collector runs.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

from pocketmq.net.limits import Limits
from pocketmq.net.outbox import Outbox
from pocketmq.protocol import Command

if TYPE_CHECKING:
    from pocketmq.net.connection import Connection


class Owner(Protocol):
    """What answers a connection's requests. Methods are called on the loop and must not block.

    An exception that leaves a method is logged and costs the connection it was called for.
    """

    def connection_opened(self, connection: "Connection") -> None:
        """Note that a connection is ready for use."""

    def requests_received(self, connection: "Connection", requests: list[Command]) -> None:
        """Answer requests, now or later: those of one read, in order.

        One read with very many comes in several batches. Answers never go through here.
        """

    def connection_closed(self, connection: "Connection", cause: Exception | None) -> None:
        """Note that a connection is closed; its open requests have failed. Called once.

        `cause` is None only if this side closed it without a cause.
        """


class RequestLane(Protocol):
    """What may carry out requests straight from a read, without a command for each."""

    starts: tuple[bytes, ...]
    """How headers begin of requests that it may take; it is not asked about others."""

    def take(self, connection: "Connection", data: bytes, start: int) -> int:
        """Carry out requests that stand in a read from a position on; return where they end.

        It may stop before any of them, for example before the first that is unusual: what it
        leaves is handed over as `Owner.requests_received` has it. If it leaves nothing, it also
        does what `end` does.
        """

    def end(self, connection: "Connection") -> None:
        """Finish: nothing more of the read is handed over now."""


class Inbox:
    """Requests that wait to be handed over, in batches that adapt to how fast they are served."""

    __slots__ = (
        "_batch", "_deaf", "_deferred", "_held", "_limits", "_loop", "_outbox", "_owner",
        "_serving", "size", "starved",
    )  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limits: Limits, owner: Owner, outbox: Outbox
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._owner = owner
        self._outbox = outbox
        self._held: deque[Command] = deque()
        self.size = 0  # bytes of requests in `_held`
        self.starved = False  # there is no memory for the rest of a frame
        self._deferred = False  # there is no memory for answers: wait for `resume`
        self._serving: asyncio.Handle | None = None
        self._batch = max(1, limits.batch // 8)
        self._deaf = False

    @property
    def deaf(self) -> bool:
        """Whether reading is paused."""
        return self._deaf

    def __len__(self) -> int:
        return len(self._held)

    def take(self, connection: "Connection", requests: list[Command]) -> None:
        """Take the requests of one read."""
        if len(requests) > self._batch or self._held or self._stuck():
            self._hold(requests)
            self._serve(connection)
        else:
            self._hand_over(connection, requests)

    @property
    def is_free(self) -> bool:
        """Whether no request waits, so that one that is read now may be carried out at once."""
        return not (self._held or self._deferred or self._outbox.paused)

    def pass_by(self, connection: "Connection", lane: RequestLane, data: bytes, start: int) -> int:
        """Let a lane have a read from a position on; return where it stopped.

        That is where it starts while other requests wait.
        """
        outbox = self._outbox
        if self._held or self._deferred or outbox.paused:
            return start
        outbox.corked = True
        try:
            return lane.take(connection, data, start)
        except Exception as error:  # noqa: BLE001 - logged; costs this connection only
            connection.blame_owner(error)
            return len(data)
        finally:
            outbox.corked = False
            if outbox.pieces or outbox.drafts:  # what the lane wrote left already, nearly always
                connection.flush()

    def end_lane(self, connection: "Connection", lane: RequestLane) -> None:
        """Let a lane finish after the rest of a read was handed over."""
        self._outbox.corked = True
        try:
            lane.end(connection)
        except Exception as error:  # noqa: BLE001 - logged; costs this connection only
            connection.blame_owner(error)
        finally:
            self._outbox.corked = False
            connection.flush()

    def slow_down(self, connection: "Connection") -> None:
        """Hand over nothing more for now: the peer does not take its answers."""
        self._batch = max(1, self._batch // 2)
        self.steer_reading(connection)

    def serve_soon(self, connection: "Connection") -> None:
        """Hand over the next batch in another event-loop iteration, so that others get theirs."""
        if self._held and self._serving is None and not (self._deferred or self._stuck()):
            self._serving = self._loop.call_soon(self._serve, connection)
        self.steer_reading(connection)

    def put_back(self, connection: "Connection", requests: list[Command]) -> None:
        """Keep requests that the owner could not answer now, before all others, until `resume`."""
        self._held.extendleft(reversed(requests))
        self.size += sum([request.size for request in requests])
        self._deferred = True
        self.steer_reading(connection)

    def resume(self, connection: "Connection") -> None:
        """Hand over requests that were put back."""
        self._deferred = False
        self.serve_soon(connection)

    def end(self) -> None:
        """Drop what was not handed over."""
        self._held.clear()
        self.size = 0
        if self._serving is not None:
            self._serving.cancel()
            self._serving = None

    def _hand_over(self, connection: "Connection", requests: list[Command]) -> bool:
        """Hand over requests; return False, and halve the next batch, if they took too long."""
        outbox, began = self._outbox, self._loop.time()
        outbox.corked = True
        try:
            self._owner.requests_received(connection, requests)
        except Exception as error:  # noqa: BLE001 - logged; costs this connection only
            connection.blame_owner(error)
        finally:
            outbox.corked = False
        connection.flush()
        if self._loop.time() - began < self._limits.slice:
            return True
        self._batch = max(1, self._batch // 2)
        return False

    def _serve(self, connection: "Connection") -> None:
        """Hand over the next of many requests, unless the peer must take answers first.

        Batches grow while answers flow and shrink when they do not, so that a client that asks for
        much and reads nothing makes us hold little more than `write_high`. They shrink as well
        when one takes long, so that costly requests do not delay other connections.
        """
        self._serving = None
        connection.flush()
        if connection.closed:
            return
        if not self._outbox.full and not self._deferred:
            count = min(self._batch, len(self._held))
            requests = [self._held.popleft() for _ in range(count)]
            self.size -= sum([request.size for request in requests])
            if self._hand_over(connection, requests):
                self._batch = min(self._batch * 2, self._limits.batch)
        self.serve_soon(connection)

    def _stuck(self) -> bool:
        return self._outbox.paused and self._outbox.full

    def _hold(self, requests: list[Command]) -> None:
        self._held.extend(requests)
        self.size += sum([request.size for request in requests])

    def steer_reading(self, connection: "Connection") -> None:
        """Pause or resume reading, by whether the answers of what is read could be sent.

        A server stops reading from a client that takes no answers, which fills the client's socket
        and so slows the client down. A client keeps reading whatever it has unsent: if both sides
        stopped reading, neither would ever take anything again.
        """
        if connection.accepted:
            deaf = self._outbox.paused or bool(self._held) or self.starved
        else:
            deaf = len(self._held) > self._limits.batch
        if deaf is not self._deaf and connection.listen(not deaf):
            self._deaf = deaf
