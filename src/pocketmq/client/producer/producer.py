"""The asyncio producer: what applications hold in their hands.

Delegates everything; owns only its own life. Belongs to one event loop, shared by all its tasks.
"""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Self, Unpack, overload

from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.client.checks import check_hook
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.batches import deliver_batches, prepare_batches
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.client.producer.choices import QueueSelector, choice_of, without_namespace
from pocketmq.client.producer.delays import delay_properties, recall
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.running import Exchanging, Membership
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.client.settings import sort_settings
from pocketmq.client.tasks import Tasks
from pocketmq.errors import ClientClosed
from pocketmq.model.message import Message
from pocketmq.model.names import wrap_namespace
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt


class Producer(Exchanging):
    """Sends messages. Used with `async with`, or with `start` and `close`.

    `check` is asked what became of a transaction whose end a broker does not know, be it of this
    producer or of another one of the group. Given the half message, it gives
    `TransactionState.COMMIT`, `ROLLBACK` or `UNKNOWN`; a coroutine function runs on the loop,
    another one in a thread.

    Keywords are the fields of `ProducerOptions` and `ClientOptions`; making a producer does no
    input or output. Raises `InvalidInput` for what can never work.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        check: TransactionCheck | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        super().__init__(check)
        self.client_options, self.options = sort_settings(
            ProducerOptions, group, name_servers, options, settings
        )
        self._name = wrap_namespace(self.client_options.namespace, group)
        self._hooks: list[SendHook] = []
        self._tasks = Tasks(f"producer {group}")
        self._lifetime = Lifetime(f"producer of group {self._name}")
        self._lease: Lease | None = None
        self._sending: Sending | None = None
        self._submitting: Submitting | None = None
        self._member: Membership | None = None
        self._open = False

    # Life

    async def start(self) -> Self:
        """Make ready to send; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a producer in this group already, `ClientClosed` once it has been closed.
        """
        await self._lifetime.start(self._start)
        return self

    async def _start(self) -> None:
        lease = self._lease = await lease_session(self.client_options)
        try:
            self._sending = Sending(lease.session, self.options)
            self._sending.hooks = self._hooks
            self._submitting = Submitting(self._sending)
            self._member = Membership(self._sending, self._check_transaction, self._take_reply)
            lease.session.add_producer(self._member)
            self._begin_exchanges(self._sending, self._tasks)
        except BaseException:
            self._lease = self._sending = self._submitting = self._member = None
            await lease.release()
            raise
        self._sending.faults.start(self._tasks)
        lease.session.heartbeats.beat_soon()
        self._open = True

    async def close(self) -> None:
        """Refuse new sends, wait for those under way, then leave. Closing twice is harmless.

        Sends under way end by their own deadlines at the latest. Cancelled, it goes on in the
        background. Raises `ClientForked`.
        """
        self._open = False
        if self._lease is not None:
            self._lease.session.check_process()
        await self._lifetime.end(self._close)

    async def _close(self) -> None:
        self._open = False
        if self._lease is None or self._submitting is None:
            return
        session = self._lease.session
        try:
            await self._end_exchanges()
            await self._submitting.drained()
            await self._end_trace()
            await self._tasks.stop()
            if session.running and self._member is not None:
                await session.remove_producer(self._member)
        finally:
            await self._lease.release()

    def __repr__(self) -> str:
        lease = self._lease
        state = "running" if self._open else "not started" if lease is None else "closed"
        return shown(self, self.options.group, lease, state)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def session(self) -> Session:
        """The client this producer is part of. Raises `ClientClosed` unless it is running."""
        return self.sending.session

    @property
    def sending(self) -> Sending:
        """The engine of its sends. Raises `ClientClosed` unless it is running."""
        if not self._open or self._sending is None:
            raise ClientClosed(f"producer of group {self._name}")
        return self._sending

    @property
    def submitting(self) -> Submitting:
        """What begins sends that nobody waits for yet. Raises `ClientClosed` unless running."""
        _ = self.sending
        assert self._submitting is not None
        return self._submitting

    # Sending

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        delay: float | None = None,
        delay_level: int | None = None,
        deliver_at: float | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Send a message and give the broker's receipt.

        Queues take turns unless one is chosen: `queue` is that queue, `ordering_key` picks the one
        Java's SelectMessageQueueByHash does, `selector` is a function of the queues and the
        message. A chosen queue is tried once; otherwise a failed try goes to another broker.
        `delay` (seconds), `deliver_at` (seconds since 1970) and `delay_level` hold the message
        back; the first two need a 5.x broker.

        Raises `InvalidInput` for what can never be sent, `SendFailed` if no broker took it in time,
        `RouteNotFound`, `QueueNotSelected` or `NameServersUnreachable` if there was nowhere to send
        it to, `ClientClosed` or `ClientForked`.
        """
        sending = self.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        outgoing = sending.preparing.prepare(message, extra)
        return await sending.deliver(outgoing, (message,), choice, timeout=timeout)

    def submit(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        delay: float | None = None,
        delay_level: int | None = None,
        deliver_at: float | None = None,
        timeout: float | None = None,
    ) -> asyncio.Future[SendReceipt]:
        """Begin to send and give a future of the receipt; arguments and errors as with `send`.

        As in Java's asynchronous send a broker's refusal is final; other failures are tried again.
        Cancelling the future gives the send up. While the window is full, messages stand in line;
        whoever submits many should `await room()` before each.
        """
        sending = self.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        outgoing = sending.preparing.prepare(message, extra)
        return self.submitting.submit(outgoing, message, choice, timeout)

    async def room(self) -> None:
        """Wait until a message that is submitted now need not stand in line."""
        await self.sending.window.room()

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for the way out
    ) -> None:
        """Send a message without asking what becomes of it: it may get lost.

        Raises as `send` does if it cannot leave this process.
        """
        sending = self.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        outgoing = sending.preparing.prepare(message)
        await sending.deliver_oneway(outgoing, message, choice, timeout)

    @overload
    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as below
        split: Literal[False] = False,
    ) -> SendReceipt: ...

    @overload
    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as below
        split: Literal[True],
    ) -> list[SendReceipt]: ...

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries of one request
        split: bool = False,
    ) -> SendReceipt | list[SendReceipt]:
        """Send messages of one topic as one request, to one queue; far cheaper than one by one.

        With `split` they become as many requests, one after another, as their size needs, and the
        receipts are a list. Raises as `send` does. `SendFailed.receipts` are those of the parts
        that were stored before one failed.
        """
        sending = self.sending
        limit = self.options.max_message_size
        batches = prepare_batches(sending.preparing, messages, limit, split=split)
        choice = choice_of(messages[0], queue, ordering_key, None, sending.namespace)
        receipts = await deliver_batches(sending, batches, choice, timeout)
        return receipts if split else receipts[0]

    async def recall(self, topic: str, handle: str, timeout: float | None = None) -> str:  # noqa: ASYNC109 - of each question
        """Take a delayed message back by its receipt's `recall_handle`; gives its id (5.x)."""
        limit = self.options.send_timeout if timeout is None else timeout
        return await recall(self.sending, topic, handle, limit)

    async def queues(self, topic: str, timeout: float | None = None) -> list[MessageQueue]:  # noqa: ASYNC109 - for the question
        """List the queues of a topic that can be sent to, in the order selectors see them.

        Raises what `send` does if there are none.
        """
        sending = self.sending
        wire = sending.preparing.wire_topic(topic)
        limit = self.options.send_timeout if timeout is None else timeout
        found = sending.publishing.ready(wire) or await sending.publishing.find(wire, limit)
        return [without_namespace(queue, sending.namespace) for queue in found.queues]

    def add_send_hook(self, hook: SendHook) -> None:
        """Have a hook told before and after every try from now on; it runs on the loop.

        Raises `InvalidInput` for what is no hook.
        """
        check_hook(hook, "before_send", "after_send")
        self._hooks.append(hook)
