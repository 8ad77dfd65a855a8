"""A send without a task: the connection calls it back; a task takes over if there is more to do.

Belongs to one event loop.
"""

import asyncio
from typing import TYPE_CHECKING

from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.shared_batches import Taker
from pocketmq.client.producer.tries import Outcome, Tries
from pocketmq.client.producer.trips import Trip
from pocketmq.errors import RequestTimedOut, TransportError
from pocketmq.model import SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol import Command

if TYPE_CHECKING:
    from pocketmq.client.producer.submitting import Submitting


class Submitted:
    """One message that has entered the window: the sink of its response."""

    __slots__ = ("_outgoing", "_owner", "_started", "_taker", "_tries", "connection", "this")

    def __init__(
        self, owner: "Submitting", taker: Taker, outgoing: Outgoing, tries: Tries, started: float
    ) -> None:
        self._owner = owner
        self._taker = taker
        self._outgoing = outgoing
        self._tries = tries
        self._started = started
        self.this = next(tries)
        """The current try."""
        self.connection: Connection | None = None

    # Where the response goes: called by the connection.

    def done(self) -> bool:
        """Take the response in any case, also if it is not wanted: that frees the window."""
        return False

    def set_result(self, reply: Command, /) -> None:
        """Take the broker's response."""
        connection = self.connection
        assert connection is not None
        exchange, address = self._owner.sending.exchange, connection.remote_address
        self._ended(exchange.read(reply, self._started, self._outgoing, self.this[0], address))

    def set_exception(self, error: TransportError, /) -> None:
        """Take the reason why there is no response."""
        if isinstance(error, RequestTimedOut) and self.connection is not None:
            # Later: a doubted connection may be closed, and that would fail all other requests that
            # time out in this loop iteration with another error.
            size, exchange = len(self._outgoing.body), self._owner.sending.exchange
            self._owner.loop.call_soon(exchange.timed_out, self.connection, self._started, size)
        self._ended(error)

    def _ended(self, outcome: Outcome) -> None:
        """Hand the receipt over, or let a task make the tries that are left."""
        taker = self._taker
        try:
            self.this = self._tries.send(outcome)
        except StopIteration as end:
            self._leave()
            if not taker.done():
                taker.set_result(end.value)
        except Exception as error:  # noqa: BLE001 - handed over to the taker
            self._leave()
            if not taker.done():
                taker.set_exception(error)
        else:
            # Not wanted any more: no further try.
            if taker.done() or (isinstance(taker, Trip) and taker.abandoned()):
                self._leave()
            else:
                pass_on(self.take_over(), taker)

    def take_over(self) -> asyncio.Task[SendReceipt]:
        """Return a task that makes the tries that are left, the current one first."""
        task = self._owner.loop.create_task(self._finish())
        self._owner.keep(task)
        return task

    async def _finish(self) -> SendReceipt:
        try:
            return await self._owner.sending.finish(self._outgoing, self._tries, self.this)
        finally:
            self._leave()

    def _leave(self) -> None:
        outgoing = self._outgoing
        self._owner.sending.window.leave(len(outgoing.body), len(outgoing.messages))
        self._owner.left(self)


def pass_on(task: asyncio.Task[SendReceipt], taker: Taker) -> None:
    """Let a taker end as a task does, and cancel the task if the taker is cancelled."""

    def ended(_: object) -> None:
        if taker.done():
            return
        if task.cancelled():
            taker.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            taker.set_exception(error)
        else:
            taker.set_result(task.result())

    task.add_done_callback(ended)
    if isinstance(taker, asyncio.Future):
        taker.add_done_callback(lambda future: task.cancel() if future.cancelled() else None)
    elif isinstance(taker, Trip):
        taker.on_unwanted(task.cancel)
