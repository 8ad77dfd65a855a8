"""The blocking producer: `pocketmq.aio.Producer` for ordinary threads.

Sends take the path of `sending`, on the caller's own thread where possible; everything else runs on
the loop.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from threading import get_ident
from typing import Literal, Self, Unpack, overload

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.blocking.facade import Facade
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.sending import BlockingSending
from pocketmq.blocking.shared_sends import ThreadSharing
from pocketmq.blocking.submitting import LoopHandOver, SubmitWindow
from pocketmq.blocking.transactions import BlockingTransactions
from pocketmq.client.checks import check_callable
from pocketmq.client.codecs import BodyCodec, check_codec, encoded
from pocketmq.client.interceptors import SendInterceptor
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer.batches import prepare_batches, receipts_in_error
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.client.producer.choices import Choice, QueueSelector, choice_of, delay_properties
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.interception import intercept
from pocketmq.client.producer.producer import Producer as AsyncProducer
from pocketmq.client.producer.transactions import LocalTransaction, TransactionReceipt
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.errors import ClientClosed
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.protocol import ReceivedMessage


class _SendingParts:
    """What a running blocking producer sends with. Made on the loop."""

    def __init__(self, client: AsyncProducer, thread: LoopThread) -> None:
        on_loop = client.sending
        self.sending = BlockingSending(on_loop, thread)
        self.transactions = BlockingTransactions(client.parts, self.sending, thread)
        sharing = client.submitting.sharing
        lock = None if sharing is None else sharing.lock
        window = SubmitWindow(client.options.window, on_loop.window.budget, lock)
        self.submitting = LoopHandOver(client.submitting, thread, window)
        self.sharing: ThreadSharing | None = None
        if sharing is not None:
            self.sharing = ThreadSharing(on_loop, sharing, thread, window)
        self.shares_sends = client.options.linger is not None

    def share(
        self, message: Message, choice: Choice | None, timeout: float | None
    ) -> Future[SendReceipt]:
        """Start a `send` in a batch with others."""
        if choice is None and self.sharing is not None:
            return self.sharing.submit(message, timeout, SendMode.SYNC)
        outgoing = self.sending.preparing.prepare(message)
        return self.submitting.submit(outgoing, choice, timeout, SendMode.SYNC, share=True)


class Producer(Facade[AsyncProducer]):
    """Sends messages. Used with `with`, or with `start` and `close`; threads may share it.

    Keywords are the fields of `ProducerOptions` and `ClientOptions`; making a producer does no
    input or output. Raises `InvalidInput` for what can never work. `check` is called when a broker
    checks back on a transaction whose end it did not receive; see `send_in_transaction`.
    `interceptors` are called with each `SendCall` before its messages are encoded, in the caller's
    thread, the first one first. `codec` is that of `message`.
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
        client = AsyncProducer(name_servers, group=group, options=options, check=check, **settings)
        super().__init__(client)
        self._parts: _SendingParts | None = None
        self._sharing: ThreadSharing | None = None  # while it runs
        self._loop_thread = 0
        self._closing = False
        check_codec(codec)
        self._codec = codec
        intercept(self, group, interceptors)

    @property
    def options(self) -> ProducerOptions:
        """How it sends."""
        return self._client.options

    # Life

    def start(self) -> Self:
        """Make ready to send; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a producer in this group already, `ClientClosed` once it has been closed.
        """
        super().start()
        if self._parts is None:
            self._call(self._begin())
        return self

    async def _begin(self) -> None:
        assert self._thread is not None
        self._parts = parts = _SendingParts(self._client, self._thread)
        self._loop_thread = get_ident()
        self._sharing = parts.sharing

    def close(self) -> None:
        """Refuse new sends, wait for those in flight, then leave. Closing twice is harmless.

        Sends in flight end by their own deadlines at the latest. If the caller is cancelled,
        closing continues in the background. Raises `ClientForked`.
        """
        if self._thread is None:
            return
        self._thread.check()
        self._closing = True
        self._sharing = None
        if self._parts is not None:
            self._parts.transactions.settled(self.options.send_timeout)
            self._parts.sending.wait_for_others()
        super().close()
        if self._parts is not None:
            self._parts.sending.exchange.connections.close()

    def _running(self) -> _SendingParts:
        """Return what it sends with; raises `ClientClosed`, and `WouldBlockLoop` on the loop."""
        parts, thread = self._parts, self._thread
        if parts is None or thread is None or self._closing:
            raise ClientClosed(f"producer of group {self._client.options.group}")
        if thread.is_current():
            thread.check()
        return parts

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

    def send(
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
            and delay is deliver_at is timeout is None
            and (receipt := sending.send_plain(message, delay_level)) is not None
        ):
            return receipt
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        if parts.shares_sends and not extra:
            return parts.share(message, choice, timeout).result()
        outgoing = sending.preparing.prepare(message, extra)
        return sending.deliver(outgoing, choice, timeout=timeout)

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
    ) -> Future[SendReceipt]:
        """Start to send and return a future of the receipt; waits while the window is full.

        Raises `SendFailed` if there is no capacity within the message's time. Callbacks of the
        future run in threads of their own and may block; cancelling it does not take the message
        back. `selector` runs on the loop and must not block.
        """
        sharing = self._sharing
        if (
            sharing is not None
            and queue is None
            and ordering_key is None
            and selector is None
            and delay is None
            and delay_level is None
            and deliver_at is None
        ):
            future = sharing.plain.add(message, timeout)
            if future is not None:
                return future
            if get_ident() != self._loop_thread:
                return sharing.submit(message, timeout)
        parts = self._running()
        sending = parts.sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        outgoing = sending.preparing.prepare(message, extra)
        return parts.submitting.submit(outgoing, choice, timeout, share=not extra)

    def flush(self) -> None:
        """Wait until everything that was submitted so far has ended; nothing waits for `linger`.

        Raises nothing if sends fail: their futures have the errors. Raises `ClientClosed`.
        """
        self._running()
        self._call(self._client.flush())

    def room(self) -> None:
        """Wait until a message that is submitted now need not wait."""
        self._running().submitting.window.wait_for_room()

    def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,
    ) -> None:
        """Send a message without waiting for a response: it may get lost.

        Raises as `send` does if it cannot leave this process.
        """
        sending = self._running().sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        outgoing = sending.preparing.prepare(message)
        sending.deliver_oneway(outgoing, choice, timeout)

    @overload
    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,
        split: Literal[False] = False,
    ) -> SendReceipt: ...

    @overload
    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,
        split: Literal[True],
    ) -> list[SendReceipt]: ...

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        timeout: float | None = None,
        split: bool = False,
    ) -> SendReceipt | list[SendReceipt]:
        """Send messages of one topic as one request, or with `split` as few as their size needs.

        With `split` they become as many requests, one after another, as their size needs, and the
        receipts are a list. Raises as `send` does. `SendFailed.receipts` are those of the parts
        that were stored before one failed.
        """
        sending = self._running().sending
        if (
            not split
            and queue is None
            and ordering_key is None
            and timeout is None
            and (receipt := sending.send_plain_batch(messages)) is not None
        ):
            return receipt
        limit = self.options.max_message_size
        batches = prepare_batches(sending.preparing, messages, limit, split=split)
        choice = choice_of(messages[0], queue, ordering_key, None, sending.namespace)
        receipts: list[SendReceipt] = []
        with sending.several(), receipts_in_error(receipts):
            for batch in batches:
                receipt = sending.deliver(batch, choice, timeout=timeout)
                receipts.append(receipt)
        return receipts if split else receipts[0]

    # What takes more than a send

    def send_in_transaction(
        self,
        message: Message,
        local: LocalTransaction,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,
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
        if parts.transactions.may_run(local):
            choice = choice_of(message, queue, ordering_key, selector, parts.sending.namespace)
            return parts.transactions.run(message, local, choice, timeout)
        return self._call(
            self._client.send_in_transaction(
                message,
                local,
                queue=queue,
                ordering_key=ordering_key,
                selector=selector,
                timeout=timeout,
            )
        )

    def request(
        self,
        message: Message,
        timeout: float,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
    ) -> ReceivedMessage:
        """Send a message and wait for the reply of its consumer.

        Raises `RequestTimedOut` if none comes in time, although the message was sent and may have
        been handled; a reply that comes later is dropped. Otherwise raises what `send` does.
        """
        return self._call(
            self._client.request(
                message, timeout, queue=queue, ordering_key=ordering_key, selector=selector
            )
        )

    def reply(
        self,
        to: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Reply to a message that was sent with `request`, here or by a Java client.

        The receipt means that the waiting client has the reply. Raises `InvalidInput` if the
        message was not sent with `request`, `SendFailed` if the client is gone, and what else
        `send` does.
        """
        return self._call(self._client.reply(to, body, properties=properties, timeout=timeout))

    @property
    def traces_dropped(self) -> int:
        """The number of trace records that were dropped: no capacity, or no broker stored them."""
        return self._client.traces_dropped

    def recall(self, topic: str, handle: str, timeout: float | None = None) -> str:
        """Take a delayed message back by its receipt's `recall_handle`; returns its id (5.x)."""
        return self._call(self._client.recall(topic, handle, timeout))

    def queues(self, topic: str, timeout: float | None = None) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to, in the order selectors see them.

        Raises what `send` does if there are none.
        """
        return self._call(self._client.queues(topic, timeout))

    def add_send_hook(self, hook: SendHook) -> None:
        """Call a hook before and after every try from now on, on the loop.

        Raises `InvalidInput` for a value that is not a hook.
        """
        self._client.add_send_hook(hook)
