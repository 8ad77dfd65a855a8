"""One try of a send on the caller's own thread: the request, and its response as an outcome.

The counterpart of `client.producer.exchange`, on connections that their caller reads. Decides
nothing about retries: errors are outcomes like receipts.
"""

import time
from collections.abc import Callable, Sequence

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.session_connections import connections_of
from pocketmq.client.producer.plain_batches import BatchAim, batch_frame
from pocketmq.client.producer.plain_frames import Stored, plain_frame
from pocketmq.client.producer.plain_messages import Aim
from pocketmq.client.producer.requests import Outgoing, read_receipt
from pocketmq.client.producer.sending import Sending
from pocketmq.errors import BrokerNotFound, InvalidInput, MQError, NotLeader
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol import RequestCode

_SEND = int(RequestCode.SEND_MESSAGE_V2)
_OK = SendStatus.SEND_OK


class ThreadExchange:
    """One try on the caller's own thread: a request and its response on a connection of its own.

    Any thread may call. If there are more callers than connections, the try goes to the loop.
    """

    def __init__(self, on_loop: Sending, thread: LoopThread) -> None:
        session = on_loop.session
        self.connections = connections_of(session, thread)
        self._on_loop = on_loop.exchange
        self._thread = thread
        self._frame = on_loop.exchange.writer.frame
        self._now_ms = session.clock.now_ms
        self._address = session.brokers.send_address
        self._namespace = on_loop.namespace
        self._plain = on_loop.plain.messages
        self._batches = on_loop.plain_batches
        self._ids = on_loop.preparing.ids
        self._next_id = self._ids.next_parts

    def ask(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendReceipt | MQError:
        """Send a message and return its receipt, or the error, as `LoopExchange.ask` does."""
        deadline = time.monotonic() + timeout
        try:
            address = self._address(queue)
            connection = self.connections.take(address, deadline)
            if connection is None:
                return self._thread.call(self._on_loop.ask(outgoing, queue, timeout))
            try:
                opaque = connection.next_opaque()
                frame = self._frame(outgoing, queue, opaque, self._now_ms())
                left = deadline - time.monotonic()
                ask = connection.ask_stored if outgoing.code == _SEND else connection.ask
                reply = ask(frame, opaque, outgoing.code, left)
            except BaseException:  # KeyboardInterrupt, too: the response may still come
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
            if isinstance(reply, tuple):
                return _receipt(reply, self._shown(queue), outgoing.unique_id)
            return read_receipt(reply, outgoing, queue, address, self._namespace)
        except NotLeader as error:
            left = deadline - time.monotonic()
            return self._thread.call(self._on_loop.follow(outgoing, queue, left, error))
        except MQError as error:
            return error

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with the topic's name outside of the namespace."""
        if not self._namespace:
            return queue
        topic = unwrap_namespace(self._namespace, queue.topic)
        return MessageQueue(topic, queue.broker_name, queue.queue_id)

    def ask_plain(
        self, aim: Aim, message: Message, started: float, timeout: float
    ) -> tuple[SendReceipt | MQError, str] | None:
        """Send a plain message and return its receipt, or the error, and the id it was given.

        None if that takes more than a connection that is there, and was used just now.
        """
        publication, turn, queue, template, tail = aim
        try:
            connection = self.connections.take_idle(self._address(queue), started)
        except BrokerNotFound:
            return None
        if connection is None:
            return None
        publication.robin.index = turn
        now_ms = self._now_ms()
        unique_id = ""
        try:
            try:
                prefix, number = self._next_id(now_ms)
                middle = template.middle
                if template.signing is not None:
                    body = message.body
                    middle = template.signing.plain_middle(tail, prefix, number, body, now_ms)
                opaque = connection.next_opaque()
                frame, unique_id = plain_frame(
                    template.plain,
                    middle,
                    tail,
                    prefix,
                    number,
                    message.body,
                    now_ms,
                    opaque,
                )
                answer = connection.ask_stored(frame, opaque, _SEND, timeout)
            except BaseException:  # KeyboardInterrupt, too: the response may still come
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
            if not isinstance(answer, tuple):
                outgoing = self._plain.outgoing(message, aim, unique_id)
                address = connection.address
                return read_receipt(answer, outgoing, queue, address), unique_id
        except MQError as error:
            return error, unique_id
        return _receipt(answer, queue, unique_id), unique_id

    def ask_batch(
        self, aim: BatchAim, messages: Sequence[Message], started: float, timeout: float
    ) -> tuple[SendReceipt | MQError, Outgoing | None] | None:
        """Send a batch; return its receipt, or an error and the batch for another try.

        None as `ask_plain`, and for messages that cannot be one batch.
        """
        publication, turn, queue, template = aim
        try:
            connection = self.connections.take_idle(self._address(queue), started)
        except BrokerNotFound:
            return None
        if connection is None:
            return None
        now_ms, batches = self._now_ms(), self._batches
        try:
            name = self._ids.next_id(now_ms)
            numbers = self._ids.take(now_ms, len(messages))
            opaque = connection.next_opaque()
            written = batch_frame(
                template.head,
                template.middle,
                batches.properties(name),
                messages,
                *numbers,
                now_ms,
                opaque,
            )
        except (InvalidInput, AttributeError, TypeError):
            written = None  # the ordinary path has the words
        except BaseException:  # an interrupt: the pool must not count on it any more
            self.connections.drop(connection)
            raise
        if written is None or written[2] > batches.limit:
            self.connections.give(connection)
            return None
        publication.robin.index = turn
        try:
            try:
                answer = connection.ask_batch(written[0], opaque, len(messages), timeout)
            except BaseException:  # as above
                self.connections.drop(connection)
                raise
            self.connections.give(connection)
            if isinstance(answer, tuple):
                stored, is_named = answer
                return _receipt(stored, queue, name if is_named else written[1]), None
            outgoing = batches.outgoing(messages, publication.topic, written, name)
            return read_receipt(answer, outgoing, queue, connection.address), outgoing
        except MQError as error:
            outgoing = batches.outgoing(messages, publication.topic, written, name)
            return error, outgoing

    def tell_frame(self, address: str, frame: Callable[[int], bytes], timeout: float) -> bool:
        """Send a one-way request; False if no connection is free. Raises `TransportError`."""
        connection = self.connections.take(address, time.monotonic() + timeout)
        if connection is None:
            return False
        try:
            connection.tell(frame(connection.next_opaque()), timeout)
        except BaseException:
            self.connections.drop(connection)
            raise
        self.connections.give(connection)
        return True

    def tell(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> MQError | None:
        """Send one way; return the error if it cannot leave."""
        try:
            address = self._address(queue)

            def frame(opaque: int) -> bytes:
                return self._frame(outgoing, queue, opaque, self._now_ms(), oneway=True)

            if not self.tell_frame(address, frame, timeout):
                return self._thread.call(self._on_loop.tell(outgoing, queue, timeout))
        except MQError as error:
            return error
        return None


def _receipt(stored: Stored, queue: MessageQueue, message_id: str) -> SendReceipt:
    place, queue_id, offset, transaction_id, recall_handle, region, trace_on = stored
    if queue_id != queue.queue_id:
        queue = MessageQueue(queue.topic, queue.broker_name, queue_id)
    return SendReceipt(
        status=_OK,
        message_id=message_id,
        offset_message_id=place,
        queue=queue,
        queue_offset=offset,
        transaction_id=transaction_id,
        recall_handle=recall_handle,
        region_id=region,
        trace_on=trace_on,
    )
