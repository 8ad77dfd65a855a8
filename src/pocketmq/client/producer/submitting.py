"""Sends that no caller waits for yet: started at once, each with a future of its receipt.

A message for which all is ready (queues known, connected, capacity in the window) leaves without a
task, which would cost more than the rest of it: the connection calls `Submitted` back. A task
takes over where something has to be waited for, or a first try has failed; it goes on with the same
tries. Belongs to one event loop.
"""

import asyncio
from typing import TypeAlias

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.choices import Choice
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.shared_batches import Taker
from pocketmq.client.producer.sharing import Sharing
from pocketmq.client.producer.submitted import Submitted, pass_on
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model import Message, SendReceipt

Receipt: TypeAlias = asyncio.Future[SendReceipt]
_ASYNC = SendMode.ASYNC


class Submitting:
    """Starts sends for one producer."""

    def __init__(self, sending: Sending) -> None:
        self.sending = sending
        self.loop = asyncio.get_running_loop()
        self._new_future = self.loop.create_future
        self._check = sending.session.check
        self._outside: set[object] = set()  # batches, or their tasks, not in the window yet
        self.sharing: Sharing | None = None
        """The batches that messages share; None if they share none."""
        if sending.options.batch_bytes:
            self.sharing = Sharing(sending, self.start)
            self.sharing.on_done = self._ended
            self.sharing.on_held = self._outside.add
            self.sharing.on_released = self._entered
            # Kept, as an enum is slow as a key.
            self._plain_lanes = self.sharing.plain[_ASYNC]
        self._tasks: set[asyncio.Task[SendReceipt]] = set()
        self._sent: set[object] = set()  # in flight without a task
        self._all_inside: list[asyncio.Future[None]] = []  # waiters for none of them
        self._flushes: list[tuple[set[object], asyncio.Future[None]]] = []

    # What callers submit

    def share(
        self,
        message: Message,
        choice: Choice | None,
        timeout: float | None,
        mode: SendMode = _ASYNC,
    ) -> Receipt:
        """Start to send a message, in a batch with others if it can be.

        Raises what `Preparing.prepare` and `Session.check` do; otherwise the future fails, as a
        send of Java in this mode does.
        """
        receipt: Receipt = self._new_future()
        sharing = self.sharing
        if sharing is None or choice is not None:
            outgoing = self.sending.preparing.prepare(message)
            return self._share_chosen(receipt, outgoing, choice, timeout, mode) or receipt
        self._check()
        try:
            lanes = self._plain_lanes if mode is _ASYNC else sharing.plain[mode]
            lane = lanes.get(message.topic)
        except (AttributeError, TypeError):
            lane = None
        if lane is None or lane.alone or not sharing.is_plain(message):
            outgoing = self.sending.preparing.prepare(message)
            with sharing.lock:
                lane = sharing.plain_lane(message.topic, mode)
            sharing.add(lane, receipt, message, sharing.given(lane, outgoing), timeout)
        else:
            sharing.add_plain(lane, receipt, message, timeout)
        return receipt

    def submit(self, outgoing: Outgoing, choice: Choice | None, timeout: float | None) -> Receipt:
        """Start to send what was prepared, alone; the future fails as Java's asynchronous send."""
        receipt: Receipt = self.loop.create_future()
        return self._begin(receipt, outgoing, choice, timeout, _ASYNC) or receipt

    def submit_into(
        self,
        taker: Taker,
        outgoing: Outgoing,
        choice: Choice | None,
        timeout: float | None,
        mode: SendMode = _ASYNC,
        *,
        share: bool = False,
    ) -> None:
        """Start a send whose receipt goes to `taker`, such as a future of another thread.

        With `share` it may travel in a batch, if its queue was chosen.
        """
        begin = self._share_chosen if share else self._begin
        task = begin(taker, outgoing, choice, timeout, mode)
        if task is not None:
            pass_on(task, taker)

    def _share_chosen(
        self,
        taker: Taker,
        outgoing: Outgoing,
        choice: Choice | None,
        timeout: float | None,
        mode: SendMode,
    ) -> asyncio.Task[SendReceipt] | None:
        """Do as `_begin` does, but let the message share a batch if its queue was chosen."""
        sharing = self.sharing
        if sharing is not None and choice is not None:
            self.sending.session.check()
            self.sending.limit(timeout)
            try:
                if sharing.add_chosen(taker, outgoing, choice, timeout, mode):
                    return None
            except ClientClosed:
                raise
            except Exception as error:  # noqa: BLE001 - of the caller's function, for its future
                taker.set_exception(error)
                return None
        return self._begin(taker, outgoing, choice, timeout, mode)

    # What leaves

    def start(
        self, taker: Taker, outgoing: Outgoing, choice: Choice | None, limit: float, mode: SendMode
    ) -> None:
        """Start to send a message or a batch, now; its receipt goes to `taker`."""
        task = self._begin(taker, outgoing, choice, limit, mode)
        if task is not None:
            pass_on(task, taker)

    def _begin(
        self,
        taker: Taker,
        outgoing: Outgoing,
        choice: Choice | None,
        timeout: float | None,
        mode: SendMode,
    ) -> asyncio.Task[SendReceipt] | None:
        """Start a send; if it cannot leave at once, return its task and leave `taker` alone."""
        sending = self.sending
        sending.session.check()
        limit = sending.options.send_timeout if timeout is None else sending.limit(timeout)
        publication = sending.publishing.ready(outgoing.topic)
        batch = outgoing.batch_id is not None
        if (
            publication is not None
            and (batch or not outgoing.for_5x)
            and sending.rule.is_plain(choice)
            and sending.window.try_enter(len(outgoing.body), len(outgoing.messages))
        ):
            try:
                now = sending.now()
                if batch:
                    outgoing = sending.publishing.adapt(outgoing, publication)
                tries = sending.rule.tries(outgoing, publication, None, mode, limit, now)
                submitted = Submitted(self, taker, outgoing, tries, now)
                connection = sending.exchange.post(submitted, outgoing, *submitted.this)
                submitted.connection = connection
                self._sent.add(submitted)
                return submitted.take_over() if connection is None else None
            except BaseException:
                sending.window.leave(len(outgoing.body), len(outgoing.messages))
                raise
        deliver = self._deliver_batch if batch else sending.deliver
        task = self.loop.create_task(deliver(outgoing, choice, mode=mode, timeout=limit))
        self.keep(task)
        if batch:
            self._outside.add(task)
        return task

    async def _deliver_batch(
        self,
        outgoing: Outgoing,
        choice: Choice | None,
        *,
        mode: SendMode,
        timeout: float,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send a batch as `Sending.deliver` would; each of its messages counts in the window."""
        sending = self.sending
        started, window = sending.now(), sending.window
        size, amount = len(outgoing.body), len(outgoing.messages)
        if not await window.enter(size, timeout, amount):
            topic = outgoing.messages[0].topic
            raise SendFailed(topic, None, 0, sending.now() - started, None)
        self._entered(asyncio.current_task())
        try:
            publication = sending.publishing.ready(outgoing.topic)
            if publication is None:
                left = timeout - (sending.now() - started)
                publication = await sending.publishing.find(outgoing.topic, left)
            outgoing = sending.publishing.adapt(outgoing, publication)
            tries = sending.rule.tries(outgoing, publication, choice, mode, timeout, started)
            return await sending.finish(outgoing, tries, next(tries))
        finally:
            window.leave(size, amount)

    def keep(self, task: asyncio.Task[SendReceipt]) -> None:
        """Hold a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[SendReceipt]) -> None:
        self._tasks.discard(task)
        self._entered(task)
        self._ended(task)

    def _entered(self, task: object) -> None:
        self._outside.discard(task)
        if not self._outside:
            waiters, self._all_inside = self._all_inside, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def left(self, submitted: object) -> None:
        """Take note that a send without a task is not in flight any more."""
        self._sent.discard(submitted)
        self._ended(submitted)

    async def room(self) -> None:
        """Wait until there is capacity for one more message; it is not reserved."""
        while self._outside:  # a batch may wait for more capacity than is free
            waiter: asyncio.Future[None] = self.loop.create_future()
            self._all_inside.append(waiter)
            await waiter
        await self.sending.window.room()

    # Waiting for all

    async def flush(self) -> None:
        """Send what waits for company, and wait until all that was submitted so far has ended."""
        waited: set[object] = {*self._tasks, *self._sent}
        if self.sharing is not None:
            waited |= self.sharing.leave_all()
        if waited:
            over: asyncio.Future[None] = self.loop.create_future()
            self._flushes.append((waited, over))
            await over

    def _ended(self, submitted: object) -> None:
        if not self._flushes:
            return
        for waited, over in self._flushes:
            waited.discard(submitted)
            if not waited and not over.done():
                over.set_result(None)
        self._flushes = [each for each in self._flushes if each[0]]

    async def drained(self) -> None:
        """Take nothing more, and wait until everything submitted and every other send has ended."""
        if self.sharing is not None:
            self.sharing.close()
        await self.flush()
        while self._tasks or len(self.sending.window):
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self.sending.window.drained()
