"""Sends that nobody waits for yet: begun at once, each with a future of its receipt.

A message for which all is ready leaves without a task of its own, which would cost more than the
rest of it; a task takes over where something has to be waited for, or a first try has failed. As
long as there is room, what was submitted counts as under way from the moment it was. Belongs to
one event loop.
"""

import asyncio
from typing import Protocol, TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.retry import TryEnded
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.tries import Tries
from pocketmq.errors import MQError, RequestTimedOut, TransportError
from pocketmq.model.message import Message, SendReceipt
from pocketmq.net import Connection
from pocketmq.protocol.command import Command

Receipt: TypeAlias = asyncio.Future[SendReceipt]


class Taker(Protocol):
    """What a receipt, or what came instead, is given to; on the loop, and once."""

    def done(self) -> bool:
        """Whether nobody wants it any more."""

    def set_result(self, result: SendReceipt, /) -> None:
        """Take the receipt."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the error."""


class Submitting:
    """Begins sends for one producer."""

    def __init__(self, sending: Sending) -> None:
        self.sending = sending
        self.loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[SendReceipt]] = set()

    def submit(
        self, outgoing: Outgoing, message: Message, choice: Choice | None, timeout: float | None
    ) -> Receipt:
        """Begin to send by the rules of Java's asynchronous send; the future fails as it does."""
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
        """Do the same for somebody who waits elsewhere."""
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
        """Begin; what cannot leave at once is left to a task, and `taker` not used."""
        sending = self.sending
        sending.session.check()
        limit = sending.limit(timeout)
        publication = sending.publishing.ready(outgoing.topic)
        if (
            choice is None
            and publication is not None
            and not outgoing.for_5x
            and not sending.needs_rules()
            and sending.window.try_enter(len(outgoing.body))
        ):
            try:
                return _Submitted(
                    self, taker, outgoing, message, publication, timeout=limit
                ).begin()
            except BaseException:
                sending.window.leave(len(outgoing.body))
                raise
        task = self.loop.create_task(
            sending.deliver(outgoing, (message,), choice, mode=SendMode.ASYNC, timeout=limit)
        )
        self.keep(task)
        return task

    def keep(self, task: asyncio.Task[SendReceipt]) -> None:
        """Hold a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drained(self) -> None:
        """Wait until all that was submitted has come to its end, and all else that is under way."""
        while self._tasks or len(self.sending.window):
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self.sending.window.drained()


class _Submitted:
    """One message that has entered the window."""

    __slots__ = (
        "_connection", "_message", "_outgoing", "_owner", "_publication", "_queue", "_started",
        "_taker", "_timeout",
    )  # fmt: skip

    def __init__(
        self,
        owner: Submitting,
        taker: Taker,
        outgoing: Outgoing,
        message: Message,
        publication: Publication,
        *,
        timeout: float,
    ) -> None:
        self._owner = owner
        self._taker = taker
        self._outgoing = outgoing
        self._message = message
        self._publication = publication
        self._queue = publication.robin.next(publication.queues)
        self._timeout = timeout
        self._started = owner.sending.now()
        self._connection: Connection | None = None

    def begin(self) -> asyncio.Task[SendReceipt] | None:
        """Send the request if there is a connection, else have a task make one."""
        sending = self._owner.sending
        queue = self._queue
        connection = self._connection = sending.connected(queue.broker_name)
        if connection is None:
            return self._take_over(None)
        opaque = connection.expect_into(self, self._outgoing.code, self._timeout)
        now_ms = sending.session.clock.now_ms()
        connection.post(opaque, sending.writer.frame(self._outgoing, queue, opaque, now_ms))
        return None

    # Where the answer goes: called by the connection.

    def done(self) -> bool:
        """Take the answer in any case, also if nobody wants it: there is room again then."""
        return False

    def set_result(self, reply: Command, /) -> None:
        """Take the broker's answer."""
        sending = self._owner.sending
        connection = self._connection
        assert connection is not None
        sending.window.answered(len(self._outgoing.body), self._started, sending.now())
        try:
            read = sending.read(reply, self._outgoing, self._queue, connection.remote_address)
        except MQError as error:
            self._ended(error)
            return
        if read.ok or not sending.options.retry_when_not_stored_ok:
            sending.window.leave(len(self._outgoing.body))
            if not self._taker.done():
                self._taker.set_result(read)
        else:
            self._ended(read)

    def set_exception(self, error: TransportError, /) -> None:
        """Take the reason why there is no answer."""
        if isinstance(error, RequestTimedOut) and self._connection is not None:
            sending = self._owner.sending
            sending.window.answered(len(self._outgoing.body), self._started, sending.now())
            # Later, so that all whose time is up at this moment hear of that first.
            self._owner.loop.call_soon(self._owner.sending.doubt, self._connection, self._started)
        self._ended(error)

    def _ended(self, outcome: SendReceipt | MQError) -> None:
        """Have a task go on after a first try that was none too good."""
        sending = self._owner.sending
        if self._taker.done():  # nobody wants it any more
            sending.window.leave(len(self._outgoing.body))
            return
        latency = sending.now() - self._started
        _pass_on(self._take_over(TryEnded(self._queue, latency, outcome)), self._taker)

    def _take_over(self, ended: TryEnded | None) -> asyncio.Task[SendReceipt]:
        task = self._owner.loop.create_task(self._go_on(ended))
        self._owner.keep(task)
        return task

    async def _go_on(self, ended: TryEnded | None) -> SendReceipt:
        """Make the first try, unless it has been made, and those that the rules want after it."""
        sending, outgoing = self._owner.sending, self._outgoing
        try:
            if ended is None:
                outcome: SendReceipt | MQError
                try:
                    outcome = await sending.ask(outgoing, self._queue, self._timeout)
                except MQError as error:
                    outcome = error
                ended = TryEnded(self._queue, sending.now() - self._started, outcome)
            plan = sending.plan(self._message.topic, SendMode.ASYNC, None, self._timeout)
            tries = Tries(sending, outgoing, (self._message,), plan, self._started)
            return tries.receipt(await tries.run(self._publication, None, ended))
        finally:
            sending.window.leave(len(outgoing.body))


def _pass_on(task: asyncio.Task[SendReceipt], taker: Taker) -> None:
    """Let a future end as a task does, and the task end when nobody wants its outcome."""

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
