"""The asyncio producer: the class that applications use.

Delegates everything; owns only its own life cycle. Belongs to one event loop, shared by its tasks.
"""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Self, Unpack, overload

from pocketmq.balance.producer.packing import reply_properties, reply_topic
from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.balance.producer.transactions import half_properties
from pocketmq.client.checks import check_callable, check_hook
from pocketmq.client.codecs import BodyCodec, check_codec, encoded
from pocketmq.client.interceptors import SendInterceptor
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.producer.batches import prepare_batches, receipts_in_error
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.client.producer.choices import QueueSelector, choice_of, without_namespace
from pocketmq.client.producer.delays import delay_properties, recall
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.interception import intercept
from pocketmq.client.producer.plain_frames import StoredPost
from pocketmq.client.producer.running import RunningProducer
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer.transactions import LocalTransaction, TransactionReceipt
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.errors import ClientClosed, MQError
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.model.names import wrap_namespace
from pocketmq.protocol import Command, ReceivedMessage, RequestCode

_REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)


class Producer:
    """Sends messages. Used with `async with`, or with `start` and `close`.

    `check` is called when a broker checks back on a transaction whose end it did not receive, be it
    of this producer or of another one of the group. It is called with the half message and returns
    `TransactionState.COMMIT`, `ROLLBACK` or `UNKNOWN`; a coroutine function runs on the loop,
    another one in a thread. `interceptors` are called with each `SendCall` before its messages are
    encoded, in the caller's task, the first one first. `codec` is that of `message`.

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
        interceptors: Sequence[SendInterceptor] = (),
        codec: BodyCodec | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        if check is not None:
            check_callable("check", check, "a half message")
        self.client_options, self.options = sort_settings(
            ProducerOptions, group, name_servers, options, settings
        )
        self._name = f"producer of group {wrap_namespace(self.client_options.namespace, group)}"
        self._check = check
        self._hooks: list[SendHook] = []
        self._lifetime = Lifetime(self._name)
        self._lease: Lease | None = None
        self._parts: RunningProducer | None = None
        self._open = False
        check_codec(codec)
        self._codec = codec
        intercept(self, group, interceptors)

    # Life

    async def start(self) -> Self:
        """Make ready to send; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a producer in this group already, `ClientClosed` once it has been closed.
        """
        await self._lifetime.start(self._start)
        return self

    async def _start(self) -> None:
        lease = await lease_session(self.client_options)
        try:
            parts = RunningProducer(lease.session, self.options, self._hooks, self._check)
            parts.begin()
        except BaseException:
            await lease.release()
            raise
        self._lease, self._parts = lease, parts
        self._open = True

    async def close(self) -> None:
        """Refuse new sends, wait for those in flight, then leave. Closing twice is harmless.

        Sends in flight end by their own deadlines at the latest. If the caller is cancelled,
        closing continues in the background. Raises `ClientForked`.
        """
        self._lifetime.check_loop()
        self._open = False
        if self._lease is not None:
            self._lease.session.check_process()
        await self._lifetime.end(self._close)

    async def _close(self) -> None:
        self._open = False
        if self._lease is None or self._parts is None:
            return
        try:
            await self._parts.stop()
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
        return self._opened().session

    @property
    def sending(self) -> Sending:
        """The path of its sends. Raises `ClientClosed` unless it is running."""
        return self._opened().sending

    @property
    def submitting(self) -> Submitting:
        """The path of sends that no caller waits for. Raises `ClientClosed` unless running."""
        return self._opened().submitting

    def _opened(self) -> RunningProducer:
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        return self._parts

    def _running(self) -> RunningProducer:
        """Return the parts for a call that needs their loop."""
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        if asyncio._get_running_loop() is not self._lifetime.loop:  # noqa: SLF001 - asyncio exports it
            self._lifetime.check_loop()
        return self._parts

    # Sending

    def message(
        self,
        topic: str,
        value: object,
        *,
        tag: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        priority: int | None = None,
    ) -> Message:
        """Return a message whose body is a value, encoded by the producer's codec.

        Bytes are a body already. Raises `InvalidInput` for a value that has no body, and for
        anything else without a codec.
        """
        body = encoded(self._codec, value)
        return Message(topic, body, tag, keys, properties or {}, priority=priority)

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
        """Send a message and return the broker's receipt.

        Queues take turns unless one is chosen: `queue` is that queue, `ordering_key` picks the one
        Java's SelectMessageQueueByHash does, `selector` is a function of the queues and the
        message. A chosen queue is tried once; otherwise a failed try goes to another broker.
        `delay` (seconds), `deliver_at` (seconds since 1970) and `delay_level` delay the message;
        the first two need a 5.x broker.

        Raises `InvalidInput` for what can never be sent, `SendFailed` if no broker stored it in
        time, `RouteNotFound`, `QueueNotSelected` or `NameServersUnreachable` if there was nowhere
        to send it to, `ClientClosed` or `ClientForked`.
        """
        parts = self._running()
        sending = parts.sending
        if (
            queue is None
            and ordering_key is None
            and selector is None
            and delay is delay_level is deliver_at is timeout is None
            and (posted := sending.plain.post(message)) is not None
        ):
            # Written out here, not called: each coroutine between task and response costs.
            plain = sending.plain
            reply: StoredPost | Command | MQError
            try:
                try:
                    reply = await posted[0]
                except MQError as error:
                    reply = error
                receipt = plain.receipt(posted, reply)
                if receipt is not None:
                    return receipt
                rest = plain.go_on(posted, reply)
            except BaseException:
                plain.abandon(posted)
                raise
            del posted, reply  # an error has a traceback, whose frames have this one
            return await rest
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        if self.options.linger is not None and not extra:
            return await parts.submitting.share(message, choice, timeout, SendMode.SYNC)
        outgoing = sending.preparing.prepare(message, extra)
        return await sending.deliver(outgoing, choice, timeout=timeout)

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
        """Start to send and return a future of the receipt; arguments and errors as with `send`.

        As in Java's asynchronous send a broker's refusal is final; other failures are tried again.
        Cancelling the future abandons the send. While the window is full, messages wait for
        capacity; to submit many, `await room()` before each (back-pressure).
        """
        parts = self._running()
        if (
            queue is None
            and ordering_key is None
            and selector is None
            and delay is delay_level is deliver_at is None
        ):
            return parts.submitting.share(message, None, timeout)
        choice = choice_of(message, queue, ordering_key, selector, parts.sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        if not extra:
            return parts.submitting.share(message, choice, timeout)
        outgoing = parts.sending.preparing.prepare(message, extra)
        return parts.submitting.submit(outgoing, choice, timeout)

    async def flush(self) -> None:
        """Wait until everything that was submitted so far has ended; nothing waits for `linger`.

        Raises nothing if sends fail: their futures have the errors. Raises `ClientClosed`.
        """
        await self._running().submitting.flush()

    async def room(self) -> None:
        """Wait until a message that is submitted now need not wait for capacity."""
        await self._running().submitting.room()

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - until it has left
    ) -> None:
        """Send a message without waiting for a response: it may get lost.

        Raises as `send` does if it cannot leave this process.
        """
        sending = self._running().sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        outgoing = sending.preparing.prepare(message)
        await sending.deliver_oneway(outgoing, choice, timeout)

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
        sending = self._running().sending
        limit = self.options.max_message_size
        batches = prepare_batches(sending.preparing, messages, limit, split=split)
        choice = choice_of(messages[0], queue, ordering_key, None, sending.namespace)
        receipts: list[SendReceipt] = []
        with receipts_in_error(receipts):
            for batch in batches:
                receipt = await sending.deliver(batch, choice, timeout=timeout)
                receipts.append(receipt)
        return receipts if split else receipts[0]

    # What takes more than a send

    async def send_in_transaction(
        self,
        message: Message,
        local: LocalTransaction,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - of the message's send
    ) -> TransactionReceipt:
        """Send a message that consumers receive only if `local` commits it.

        When the message is stored, `local` is called with it and the transaction's id: a coroutine
        function on the loop, another one in a thread. It returns `TransactionState.COMMIT`,
        `ROLLBACK` or `UNKNOWN`; raising or returning None counts as unknown, and the receipt has
        the error. The broker checks back on unknown ends, and on ends it did not receive: see
        `check`. As in Java a message in a transaction cannot be delayed.

        Raises what `send` does; `local` has not been called then.
        """
        check_callable("local", local, "a message and a transaction id")
        parts = self._running()
        sending = parts.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = half_properties({}, sending.group)
        return await parts.transactions.run(
            message, local, lambda: sending.send(message, extra, choice, timeout=timeout)
        )

    async def request(
        self,
        message: Message,
        timeout: float,  # noqa: ASYNC109 - until the reply is there
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
    ) -> ReceivedMessage:
        """Send a message and wait for the reply of its consumer.

        Raises `RequestTimedOut` if none comes in time, although the message was sent and may have
        been handled; a reply that comes later is dropped. Otherwise raises what `send` does.
        """
        parts = self._running()
        sending = parts.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)

        async def send(extra: dict[str, str], left: float) -> SendReceipt:
            return await sending.send(message, extra, choice, mode=SendMode.ASYNC, timeout=left)

        topic = sending.preparing.wire_topic(message.topic)
        return await parts.replies.request(topic, timeout, send)

    async def reply(
        self,
        to: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - for all tries together
    ) -> SendReceipt:
        """Reply to a message that was sent with `request`, here or by a Java client.

        The receipt means that the waiting client has the reply. Raises `InvalidInput` if the
        message was not sent with `request`, `SendFailed` if the client is gone, and what else
        `send` does.
        """
        asked = to.properties
        message = Message(reply_topic(asked), body, properties=properties or {})
        extra = reply_properties(asked)
        return await self._running().sending.send_to_cluster(message, extra, _REPLY, timeout)

    @property
    def traces_dropped(self) -> int:
        """The number of trace records that were dropped: no capacity, or no broker stored them."""
        parts = self._parts
        return 0 if parts is None or parts.tracer is None else parts.tracer.dropped

    async def recall(self, topic: str, handle: str, timeout: float | None = None) -> str:  # noqa: ASYNC109 - of each question
        """Take a delayed message back by its receipt's `recall_handle`; returns its id (5.x)."""
        limit = self.options.send_timeout if timeout is None else timeout
        return await recall(self._running().sending, topic, handle, limit)

    async def queues(self, topic: str, timeout: float | None = None) -> list[MessageQueue]:  # noqa: ASYNC109 - for the question
        """Return the queues of a topic that can be sent to, in the order selectors see them.

        Raises what `send` does if there are none.
        """
        sending = self._running().sending
        wire = sending.preparing.wire_topic(topic)
        limit = self.options.send_timeout if timeout is None else timeout
        found = sending.publishing.ready(wire) or await sending.publishing.find(wire, limit)
        return [without_namespace(queue, sending.namespace) for queue in found.queues]

    def add_send_hook(self, hook: SendHook) -> None:
        """Call a hook before and after every try from now on, on the loop.

        Raises `InvalidInput` for a value that is not a hook.
        """
        check_hook(hook, "before_send", "after_send")
        self._hooks.append(hook)
