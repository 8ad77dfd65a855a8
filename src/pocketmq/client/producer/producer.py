"""The asyncio producer: the class that applications use. This file has its sends.

Delegates everything. Belongs to one event loop, shared by its tasks.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, overload

from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.client.codecs import encoded
from pocketmq.client.producer.batches import prepare_batches, receipts_in_error
from pocketmq.client.producer.choices import QueueSelector, choice_of, delay_properties
from pocketmq.client.producer.plain_sends import PlainSends
from pocketmq.client.producer.producer_exchanges import ProducerExchanges
from pocketmq.errors import MQError
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.protocol import Command


class Producer(ProducerExchanges):
    """Sends messages. Used with `async with`, or with `start` and `close`.

    `check` is called when a broker checks back on a transaction whose end it did not receive, be it
    of this producer or of another one of the group. It is called with the half message and returns
    `TransactionState.COMMIT`, `ROLLBACK` or `UNKNOWN`; a coroutine function runs on the loop,
    another one in a thread. `interceptors` are called with each `SendCall` before its messages are
    encoded, in the caller's task, the first one first. `codec` is that of `message`.

    Keywords are the fields of `ProducerOptions` and `ClientOptions`; making a producer does no
    input or output. Raises `InvalidInput` for what can never work.
    """

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
        if (
            queue is None
            and ordering_key is None
            and selector is None
            and delay is deliver_at is timeout is None
            and (
                (self._follow is not None and (posted := self._follow(message, delay_level)))
                or (posted := self._running().sending.plain.post(message, delay_level))
            )
        ):
            # Written out here, not called: each coroutine between task and response costs.
            reply: SendReceipt | Command | MQError
            try:
                try:
                    reply = await posted[0]
                except MQError as error:
                    reply = error
                if isinstance(reply, SendReceipt):  # as nearly always
                    return reply
                plain = self._plain()
                receipt = plain.receipt(posted, reply)
                if receipt is not None:
                    return receipt
                rest = plain.go_on(posted, reply)
            except BaseException:
                self._plain().abandon(posted)
                raise
            del posted, reply  # an error has a traceback, whose frames have this one
            return await rest
        sending = self._running().sending
        choice = choice_of(message, queue, ordering_key, selector, sending.namespace)
        extra = delay_properties(delay, delay_level, deliver_at)
        if self.options.linger is not None and not extra:
            return await self.submitting.share(message, choice, timeout, SendMode.SYNC)
        outgoing = sending.preparing.prepare(message, extra)
        return await sending.deliver(outgoing, choice, timeout=timeout)

    def _plain(self) -> PlainSends:
        """Return the short way of a send that has left; it may have been closed meanwhile."""
        assert self._parts is not None
        return self._parts.sending.plain

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
