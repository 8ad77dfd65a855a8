"""What takes a producer more than a send: transactions, requests, replies, recalls; and hooks."""

from collections.abc import Mapping

from pocketmq.balance.producer.packing import reply_properties, reply_topic
from pocketmq.balance.producer.plan import SendMode
from pocketmq.balance.producer.selectors import OrderingKey
from pocketmq.balance.producer.transactions import half_properties
from pocketmq.client.checks import check_callable, check_hook
from pocketmq.client.producer.choices import QueueSelector, choice_of, without_namespace
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.producer_life import ProducerLife
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.transactions import LocalTransaction, TransactionReceipt
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.errors import BrokerNotFound, HeaderMalformed, InvalidInput
from pocketmq.model import Message, MessageQueue, SendReceipt
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol import ReceivedMessage, RequestCode
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.requests.sending import RECALL_MESSAGE, RecallRequest

_REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)


class ProducerExchanges(ProducerLife):
    """The part of a producer that does more than to send a message once."""

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
        return await _recall(self._running().sending, topic, handle, limit)

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


async def _recall(sending: Sending, topic: str, handle: str, timeout: float) -> str:  # noqa: ASYNC109 - of each question
    """Take a message back by the `recall_handle` of its receipt, and return its id (5.x).

    Raises `InvalidInput` for an invalid handle, `ServerError` if the broker does not have the
    message any more or does not support recalling, and what a send does if the broker cannot be
    reached.
    """
    wire = sending.preparing.wire_topic(topic)
    if is_retry_topic(wire) or is_dead_letter_topic(wire):
        raise InvalidInput(f"messages of topic {topic!r} cannot be recalled")
    try:
        parsed = RecallHandle.parse(handle)
    except HeaderMalformed as error:
        raise InvalidInput(str(error)) from error
    if sending.publishing.ready(wire) is None:
        await sending.publishing.find(wire, timeout)
    session = sending.session
    try:
        address = session.addresses.master(parsed.broker_name)
    except BrokerNotFound:  # as in Java: a proxy in front of the brokers knows the way
        address = await session.any_broker_of(wire)
    header = RecallRequest(
        producer_group=sending.group, topic=wire, recall_handle=handle, bname=parsed.broker_name
    )
    question = ask(None, RECALL_MESSAGE, header)
    # As in Java never by the second port, so not by way of `session.brokers`.
    answer = await ask_address(session.calls.ask, address, question, timeout=timeout)
    return answer.header().msg_id
