"""Sends that no caller waits for yet: started at once, each with a future of its receipt.

A message for which all is ready (queues known, connected, capacity in the window) leaves without a
task, which would cost more than the rest of it: the connection calls `_Submitted` back. A task
takes over where something has to be waited for, or a first try has failed; it goes on with the same
tries. Belongs to one event loop.
"""

import asyncio
from typing import Protocol, TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.tries import Outcome, Tries
from pocketmq.errors import RequestTimedOut, TransportError
from pocketmq.model import SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol import Command

Receipt: TypeAlias = asyncio.Future[SendReceipt]
_ASYNC = SendMode.ASYNC


class Taker(Protocol):
    """Where a receipt, or the error instead of it, goes; called on the loop, and once."""

    def done(self) -> bool:
        """Whether it is not wanted any more."""

    def set_result(self, result: SendReceipt, /) -> None:
        """Take the receipt."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the error."""


class Submitting:
    """Starts sends for one producer."""

    def __init__(self, sending: Sending) -> None:
        self.sending = sending
        self.loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[SendReceipt]] = set()

    def submit(self, outgoing: Outgoing, choice: Choice | None, timeout: float | None) -> Receipt:
        """Start a send by the rules of Java's asynchronous send; the future fails as it does."""
        receipt: Receipt = self.loop.create_future()
        return self._begin(receipt, outgoing, choice, timeout) or receipt

    def submit_into(
        self, taker: Taker, outgoing: Outgoing, choice: Choice | None, timeout: float | None
    ) -> None:
        """Start a send whose receipt goes to `taker`, such as a future of another thread."""
        task = self._begin(taker, outgoing, choice, timeout)
        if task is not None:
            _pass_on(task, taker)

    def _begin(
        self, taker: Taker, outgoing: Outgoing, choice: Choice | None, timeout: float | None
    ) -> asyncio.Task[SendReceipt] | None:
        """Start a send; if it cannot leave at once, return its task and leave `taker` alone."""
        sending = self.sending
        sending.session.check()
        limit = sending.options.send_timeout if timeout is None else sending.limit(timeout)
        publication = sending.publishing.ready(outgoing.topic)
        if (
            publication is not None
            and not outgoing.for_5x
            and sending.rule.is_plain(choice)
            and sending.window.try_enter(len(outgoing.body))
        ):
            try:
                now = sending.now()
                tries = sending.rule.tries(outgoing, publication, None, _ASYNC, limit, now)
                submitted = _Submitted(self, taker, outgoing, tries, now)
                connection = sending.exchange.post(submitted, outgoing, *submitted.this)
                submitted.connection = connection
                return submitted.take_over() if connection is None else None
            except BaseException:
                sending.window.leave(len(outgoing.body))
                raise
        task = self.loop.create_task(sending.deliver(outgoing, choice, mode=_ASYNC, timeout=limit))
        self.keep(task)
        return task

    def keep(self, task: asyncio.Task[SendReceipt]) -> None:
        """Hold a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drained(self) -> None:
        """Wait until everything submitted has ended, and every other send in flight."""
        while self._tasks or len(self.sending.window):
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self.sending.window.drained()


class _Submitted:
    """One message that has entered the window: the sink of its response."""

    __slots__ = ("_outgoing", "_owner", "_started", "_taker", "_tries", "connection", "this")

    def __init__(
        self, owner: Submitting, taker: Taker, outgoing: Outgoing, tries: Tries, started: float
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
            self._owner.sending.window.leave(len(self._outgoing.body))
            if not taker.done():
                taker.set_result(end.value)
        except Exception as error:  # noqa: BLE001 - handed over to the taker
            self._leave()
            if not taker.done():
                taker.set_exception(error)
        else:
            if taker.done():  # not wanted any more: no further try
                self._leave()
            else:
                _pass_on(self.take_over(), taker)

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
        self._owner.sending.window.leave(len(self._outgoing.body))


def _pass_on(task: asyncio.Task[SendReceipt], taker: Taker) -> None:
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
