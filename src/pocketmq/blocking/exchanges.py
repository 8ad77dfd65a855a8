"""Transactions, requests and replies of the blocking producer."""

from collections.abc import Mapping

from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.blocking.facade import Facade
from pocketmq.client.producer import Producer as AsyncProducer
from pocketmq.client.producer.choices import QueueSelector
from pocketmq.client.producer.transactions import LocalTransaction, TransactionReceipt
from pocketmq.model.message import Message, SendReceipt
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.received import ReceivedMessage


class Exchanging(Facade[AsyncProducer]):
    """What takes more than a send. Threads may share it."""

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
        """Send a message that consumers see once, and only if, `local` says so."""
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
        """Send a message and wait for the reply of whoever consumes it."""
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
        """Reply to a message that was sent with `request`, here or by a Java client."""
        return self._call(self._client.reply(to, body, properties=properties, timeout=timeout))

    @property
    def traces_dropped(self) -> int:
        """How many records of the trace found no room, or no broker that took them."""
        return self._client.traces_dropped
