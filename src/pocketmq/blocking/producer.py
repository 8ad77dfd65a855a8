"""The blocking producer: `pocketmq.aio.Producer` for ordinary threads.

Sends go by way of `direct`, on the caller's own thread, if nothing hinders them; everything else is
handed to the loop.
"""

import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.blocking.direct import DirectProducer, run_here
from pocketmq.blocking.exchanges import Exchanging
from pocketmq.blocking.facade import inherit_docs
from pocketmq.blocking.submitting import LoopHandOver, SubmitWindow
from pocketmq.client.options import ClientOptions
from pocketmq.client.producer import Producer as AsyncProducer
from pocketmq.client.producer.check_backs import TransactionCheck
from pocketmq.client.producer.choices import Choice, QueueSelector, choice_of
from pocketmq.client.producer.delays import delay_properties
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.errors import ClientClosed, SendFailed
from pocketmq.model.message import Message
from pocketmq.model.queue import MessageQueue
from pocketmq.model.receipt import SendReceipt

T = TypeVar("T")


@inherit_docs(AsyncProducer)
class Producer(Exchanging):
    """Sends messages. Used with `with`, or with `start` and `close`; threads may share it.

    Keywords are the fields of `ProducerOptions` and `ClientOptions`; making a producer does no
    input or output. Raises `InvalidInput` for what can never work. `check` is asked what became of
    a transaction whose end a broker does not know; see `send_in_transaction`.
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
        client = AsyncProducer(name_servers, group=group, options=options, check=check, **settings)
        super().__init__(client)
        self._direct: DirectProducer | None = None
        self._handing: LoopHandOver | None = None
        self._busy: set[int] = set()  # threads that send by themselves
        self._idle = threading.Condition()
        self._closing = False

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
        if self._handing is None:
            self._call(self._begin())
        return self

    def close(self) -> None:
        """Refuse new sends, wait for those under way, then leave. Closing twice is harmless."""
        if self._thread is None:
            return
        self._thread.check()
        self._closing = True
        with self._idle:
            others = self._busy - {threading.get_ident()}
            self._idle.wait_for(lambda: not (self._busy & others))
        super().close()
        if self._direct is not None:
            self._direct.wires.close()

    async def _begin(self) -> None:
        assert self._thread is not None
        sending = self._client.sending
        if sending.session.calls.dialer.tls is None:
            self._direct = DirectProducer(self._client, self._thread)
        options = self._client.options
        gate = SubmitWindow(options.window, sending.window.budget)
        self._handing = LoopHandOver(self._client.submitting, self._thread, gate)

    # Sending

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
        """Send a message and give the broker's receipt."""
        sender = self._sender()
        return self._run(
            sender,
            sender.send(
                message,
                queue=queue,
                ordering_key=ordering_key,
                selector=selector,
                delay=delay,
                delay_level=delay_level,
                deliver_at=deliver_at,
                timeout=timeout,
            ),
        )

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
        """Begin to send and give a future of the receipt; waits while the window is full.

        Raises `SendFailed` if there is no room within the message's time. Callbacks of the future
        run in threads of their own and may block; cancelling it does not take the message back.
        `selector` runs on the loop and must not block.
        """
        extra = delay_properties(delay, delay_level, deliver_at)
        choice = choice_of(message, queue, ordering_key, selector, self._client.sending.namespace)
        return self._submit(message, extra, choice, timeout)

    def _submit(
        self,
        message: Message,
        extra: Mapping[str, str],
        choice: Choice | None,
        timeout: float | None,
    ) -> Future[SendReceipt]:
        client, handing = self._client, self._handing
        if handing is None or self._closing:
            raise self._closed()
        self._refuse_loop()
        sending = client.sending
        sending.session.check()
        outgoing = sending.preparing.prepare(message, extra)
        size = len(outgoing.body)
        limit = sending.limit(timeout)
        if not handing.gate.try_enter(size):
            started = time.monotonic()
            entered = handing.gate.enter(size, limit)
            elapsed = time.monotonic() - started
            if not entered or elapsed >= limit:
                raise SendFailed(message.topic, None, 0, elapsed, None)
            limit -= elapsed
        return handing.hand_over(outgoing, message, choice, limit)

    def room(self) -> None:
        """Wait until a message that is submitted now need not wait."""
        if self._handing is None or self._closing:
            raise self._closed()
        self._refuse_loop()
        self._handing.gate.wait_for_room()

    def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        ordering_key: OrderingKey | None = None,
        selector: QueueSelector | None = None,
        timeout: float | None = None,
    ) -> None:
        """Send a message without asking what becomes of it: it may get lost."""
        sender = self._sender()
        self._run(
            sender,
            sender.send_oneway(
                message, queue=queue, ordering_key=ordering_key, selector=selector, timeout=timeout
            ),
        )

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
        """Send messages of one topic as one request, or with `split` as few as their size needs."""
        sender = self._sender()
        if split:
            return self._run(
                sender,
                sender.send_batch(
                    messages, queue=queue, ordering_key=ordering_key, timeout=timeout, split=True
                ),
            )
        return self._run(
            sender,
            sender.send_batch(messages, queue=queue, ordering_key=ordering_key, timeout=timeout),
        )

    def recall(self, topic: str, handle: str, timeout: float | None = None) -> str:
        """Take a delayed message back by its receipt's `recall_handle`; gives its id (5.x)."""
        return self._call(self._client.recall(topic, handle, timeout))

    def queues(self, topic: str, timeout: float | None = None) -> list[MessageQueue]:
        """List the queues of a topic that can be sent to, in the order selectors see them."""
        return self._call(self._client.queues(topic, timeout))

    def add_send_hook(self, hook: SendHook) -> None:
        """Have a hook told of every try from now on; it is called on the loop."""
        self._client.add_send_hook(hook)

    # The way a send goes

    def _sender(self) -> AsyncProducer:
        """Give the producer to send with: on this thread, or on the loop if somebody watches."""
        if self._handing is None or self._closing:
            raise self._closed()
        self._refuse_loop()
        if self._direct is None or self._client.sending.hooks:
            return self._client
        return self._direct

    def _run(self, sender: AsyncProducer, work: Coroutine[Any, Any, T]) -> T:
        if sender is self._client:
            return self._call(work)
        this = threading.get_ident()
        self._busy.add(this)
        try:
            return run_here(work)
        finally:
            self._busy.discard(this)
            if self._closing:
                with self._idle:
                    self._idle.notify_all()

    def _refuse_loop(self) -> None:
        if self._thread is not None and self._thread.is_current():
            self._thread.check()

    def _closed(self) -> ClientClosed:
        return ClientClosed(f"producer of group {self._client.options.group}")
