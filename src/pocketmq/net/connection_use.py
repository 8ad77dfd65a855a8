"""What the owner of a connection asks of it: requests to the peer, and how loaded it is.

Owns nothing: `open_requests` matches answers to callers, `outbox` writes, and the load is read
from the parts of the connection. Belongs to the connection's event loop.
"""

import asyncio

import msgspec

from pocketmq.net.connection_end import ConnectionEnd, ConnectionWatch
from pocketmq.net.held_memory import HeldMemory
from pocketmq.net.inbox import Inbox
from pocketmq.net.open_requests import AnswerSink
from pocketmq.net.outbox import Outbox
from pocketmq.net.shared import Shared
from pocketmq.protocol import Command
from pocketmq.protocol.command import ONEWAY_FLAG
from pocketmq.protocol.frame import Buffer


class ConnectionCalls(ConnectionEnd):
    """The part of a connection that sends requests."""

    __slots__ = ()

    def send_oneway(self, request: Command) -> bool:
        """Send a request that gets no answer; return False if the connection is closed already.

        There is no back-pressure: a caller that sends many should `await drain()` now and then.
        """
        if self.closed:
            return False
        flag = request.flag | ONEWAY_FLAG
        opaque = self._shared.opaque.take()
        self._outbox.write(msgspec.structs.replace(request, opaque=opaque, flag=flag).encode())
        return True

    async def drain(self) -> None:
        """Wait until the peer has taken enough of what is unsent; raise `ConnectionLost`."""
        await self._outbox.drain()
        if self.closed:
            raise self._lost("the connection is closed")

    async def request(self, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - one timer serves all requests
        """Send a request and return its answer; the request's opaque number is chosen here.

        Raises `RequestTimedOut` or `ConnectionLost`; a late answer is dropped in silence.
        """
        opaque, answer = self.expect(request.code, timeout)
        self.post(opaque, msgspec.structs.replace(request, opaque=opaque).encode())
        try:
            return await answer
        finally:
            self.forget(opaque)
            del answer  # it holds the error, which holds this frame: free all three at once

    def expect(self, code: int, timeout: float) -> tuple[int, asyncio.Future[Command]]:
        """Return a number for a request that the caller writes, and its future answer.

        The future fails with `RequestTimedOut` or `ConnectionLost`. A caller that stops waiting
        calls `forget`. Raises `ConnectionLost` if the connection is closed already.
        """
        if self.closed:
            raise self._lost("the connection is closed")
        return self._requests.expect(code, timeout)

    def expect_into(self, sink: AnswerSink, code: int, timeout: float) -> int:
        """Do the same with a sink, not a future: called at once, while the read is handled."""
        if self.closed:
            raise self._lost("the connection is closed")
        return self._requests.expect_into(sink, code, timeout)

    def forget(self, opaque: int) -> None:
        """Drop the answer to a request when it comes."""
        self._requests.forget(opaque)

    def post(self, opaque: int, frame: Buffer) -> None:
        """Write a request whose number `expect` returned.

        Alone it leaves at once, which saves an event-loop iteration; with others open they leave
        together at its end. A client whose peer takes too little holds the request back: if it is
        forgotten or times out meanwhile, it is not sent at all.
        """
        self._requests.post(opaque, frame)


class ConnectionLoad:
    """The part of a connection that tells its owner when to do less for the peer."""

    __slots__ = ()

    _outbox: Outbox
    _inbox: Inbox
    _memory: HeldMemory | None
    _shared: Shared
    _watch: ConnectionWatch
    _resumed_at: float

    @property
    def unsent(self) -> int:
        """Bytes the peer has not taken yet."""
        return self._outbox.unsent

    @property
    def clogged(self) -> bool:
        """Whether more than `limits.write_high` bytes are unsent.

        New requests wait by themselves then. Check this before writing answers that were held.
        """
        return self._outbox.clogged

    @property
    def crowded(self) -> bool:
        """Whether no large answer should be made for this peer now; see `put_back`."""
        memory, outbox = self._memory, self._outbox
        if memory is None or not memory.budget.tight:
            return outbox.clogged
        return bool(outbox.unsent) or memory.budget.used >= memory.budget.limit

    @property
    def pressed(self) -> bool:
        """Whether answers should be no larger than they have to be."""
        return self._memory is not None and self._memory.budget.tight

    def trust(self) -> None:
        """Note that the peer has authenticated: its memory counts with that of trusted peers."""
        if self._memory is not None and self._shared.budget is not None:
            self._memory.move_to(self._shared.budget)

    @property
    def waiting(self) -> int:
        """Requests that were read and are not handed over yet."""
        return len(self._inbox)

    @property
    def waiting_since(self) -> float:
        """Since when, by the loop's clock, what is handed over now could have been.

        While the peer itself does not take its answers, its requests do not count as waiting.
        """
        return max(self._watch.last_read, self._resumed_at)

    @property
    def last_read(self) -> float:
        """When the last byte came from the peer, by the loop's clock."""
        return self._watch.last_read
