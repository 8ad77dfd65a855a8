"""Sends that no caller waits for yet: started at once, each with a future of its receipt.

A message for which all is ready (queues known, connected, capacity in the window) leaves without a
task, which would cost more than the rest of it: the connection calls `_Submitted` back. A task
takes over where something has to be waited for, or a first try has failed; it goes on with the same
tries. Belongs to one event loop.
"""

import asyncio
from typing import Protocol, TypeAlias

from pocketmq.balance.producer.retry import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.tries import Outcome, SendCall, Tries, Try
from pocketmq.errors import MQError, RequestTimedOut, TransportError
from pocketmq.model.message import Message
from pocketmq.model.receipt import SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol.command import Command

Receipt: TypeAlias = asyncio.Future[SendReceipt]


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

    def submit(
        self, outgoing: Outgoing, message: Message, choice: Choice | None, timeout: float | None
    ) -> Receipt:
        """Start a send by the rules of Java's asynchronous send; the future fails as it does."""
        receipt: Receipt = self.loop.create_future()
        return self._begin(receipt, outgoing, message, choice, timeout) or receipt

    def submit_into(
        self,
        taker: Taker,
        outgoing: Outgoing,
        message: Message,
        choice: Choice | None,
        timeout: float | None,
    ) -> None:
        """Start a send whose receipt goes to `taker`, such as a future of another thread."""
        task = self._begin(taker, outgoing, message, choice, timeout)
        if task is not None:
            _pass_on(task, taker)

    def _begin(
        self,
        taker: Taker,
        outgoing: Outgoing,
        message: Message,
        choice: Choice | None,
        timeout: float | None,
    ) -> asyncio.Task[SendReceipt] | None:
        """Start a send; if it cannot leave at once, return its task and leave `taker` alone."""
        sending = self.sending
        sending.session.check()
        limit = sending.limit(timeout)
        publication = sending.publishing.ready(outgoing.topic)
        if (
            publication is not None
            and not outgoing.for_5x
            and sending.rule.is_plain(choice)
            and sending.window.try_enter(len(outgoing.body))
        ):
            try:
                started = sending.now()
                call = SendCall(outgoing, (message,), None, SendMode.ASYNC, limit, started)
                tries = sending.rule.tries(call, publication)
                return _Submitted(self, taker, call, tries).begin()
            except BaseException:
                sending.window.leave(len(outgoing.body))
                raise
        deliver = sending.deliver(outgoing, (message,), choice, mode=SendMode.ASYNC, timeout=limit)
        task = self.loop.create_task(deliver)
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

    __slots__ = ("_call", "_connection", "_owner", "_taker", "_tries", "_try")

    def __init__(self, owner: Submitting, taker: Taker, call: SendCall, tries: Tries) -> None:
        self._owner = owner
        self._taker = taker
        self._call = call
        self._tries = tries
        self._try = next(tries)
        self._connection: Connection | None = None

    def begin(self) -> asyncio.Task[SendReceipt] | None:
        """Send the request if there is a connection; else return the task that makes one."""
        exchange, queue = self._owner.sending.exchange, self._try.queue
        connection = self._connection = exchange.connected(queue.broker_name)
        if connection is None:
            return self._take_over(self._try)
        outgoing = self._call.outgoing
        opaque = connection.expect_into(self, outgoing.code, self._try.timeout)
        exchange.post(connection, opaque, outgoing, queue)
        return None

    # Where the response goes: called by the connection.

    def done(self) -> bool:
        """Take the response in any case, also if it is not wanted: that frees the window."""
        return False

    def set_result(self, reply: Command, /) -> None:
        """Take the broker's response."""
        call, connection = self._call, self._connection
        assert connection is not None
        try:
            outcome: Outcome = self._owner.sending.exchange.read(
                reply, call.started, call.outgoing, self._try.queue, connection.remote_address
            )
        except MQError as error:
            outcome = error
        self._ended(outcome)

    def set_exception(self, error: TransportError, /) -> None:
        """Take the reason why there is no response."""
        if isinstance(error, RequestTimedOut) and self._connection is not None:
            sending, call = self._owner.sending, self._call
            sending.window.answered(len(call.outgoing.body), call.started, sending.now())
            # Later: a doubted connection may be closed, and that would fail all other requests that
            # time out in this loop iteration with another error.
            self._owner.loop.call_soon(sending.exchange.doubt, self._connection, call.started)
        self._ended(error)

    def _ended(self, outcome: Outcome) -> None:
        """Hand the receipt over, or let a task make the tries that are left."""
        taker = self._taker
        try:
            this = self._tries.send(outcome)
        except StopIteration as end:
            self._leave()
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
                _pass_on(self._take_over(this), taker)

    def _take_over(self, this: Try) -> asyncio.Task[SendReceipt]:
        task = self._owner.loop.create_task(self._go_on(this))
        self._owner.keep(task)
        return task

    async def _go_on(self, this: Try) -> SendReceipt:
        """Make the tries that are left, `this` one first."""
        try:
            receipt = await self._owner.sending.carry_out(self._call, self._tries, this)
            assert receipt is not None  # only messages sent one way have none
            return receipt
        finally:
            self._leave()

    def _leave(self) -> None:
        self._owner.sending.window.leave(len(self._call.outgoing.body))


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
