"""What watches sends: called before and after each try, and never able to harm one."""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from pocketmq.balance.producer.plan import SendMode
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.session import Session
from pocketmq.errors import BrokerNotFound, MQError
from pocketmq.model import Message, MessageQueue, SendReceipt

logger = logging.getLogger("pocketmq.client")


class SendContext:
    """One try of a send (Java: SendMessageContext).

    Names are those on the wire. Before the try `receipt` and `error` are None; after it one of them
    is set, unless the message was sent one way. Hooks may keep values of their own in `notes`.
    """

    __slots__ = (
        "address", "born_ms", "client_id", "error", "group", "latency", "messages", "mode",
        "namespace", "notes", "properties", "queue", "receipt", "unique_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        group: str,
        client_id: str,
        namespace: str,
        messages: Sequence[Message],
        unique_id: str,
        properties: str,
        queue: MessageQueue,
        address: str,
        mode: SendMode,
        born_ms: int,
    ) -> None:
        self.group = group
        self.client_id = client_id
        self.namespace = namespace
        self.messages = messages
        """The message, or all messages of a batch. Bodies are as the caller passed them."""
        self.unique_id = unique_id
        """Of a batch, the ids of all joined by commas."""
        self.properties = properties
        """The property text that travels with the message, or with the batch as a whole."""
        self.queue = queue
        self.address = address
        self.mode = mode
        self.born_ms = born_ms
        self.receipt: SendReceipt | None = None
        self.error: MQError | None = None
        self.latency = 0.0
        """Seconds the try took."""
        self.notes: dict[str, Any] = {}

    def ended(self, outcome: SendReceipt | MQError | None, latency: float) -> None:
        """Set the outcome of the try."""
        self.latency = latency
        if isinstance(outcome, MQError):
            self.error = outcome
        else:
            self.receipt = outcome


class SendHook(Protocol):
    """Watches the sends of a producer. Both methods run on the loop and must not block."""

    def before_send(self, context: SendContext) -> None:
        """Take note that a try begins."""

    def after_send(self, context: SendContext) -> None:
        """Take note of the outcome of a try."""


class SendHooks:
    """The hooks of one producer, called for each try. As in Java, one that fails is only logged."""

    def __init__(self, session: Session, group: str, hooks: list[SendHook]) -> None:
        self.hooks = hooks
        """Changed by the producer at any time."""
        self._session = session
        self._group = group

    def before(self, outgoing: Outgoing, queue: MessageQueue, mode: SendMode) -> SendContext | None:
        """Call the hooks before a try; None if there are none."""
        if not self.hooks:
            return None
        session = self._session
        try:
            address = session.brokers.send_address(queue)
        except BrokerNotFound:
            address = ""
        context = SendContext(
            group=self._group,
            client_id=session.client_id,
            namespace=session.options.namespace,
            messages=outgoing.messages,
            unique_id=outgoing.unique_id,
            properties=outgoing.properties,
            queue=queue,
            address=address,
            mode=mode,
            born_ms=session.clock.now_ms(),
        )
        for hook in self.hooks:
            try:
                hook.before_send(context)
            except Exception:
                logger.exception("send hook %r failed before a send; ignored", hook)
        return context

    def after(
        self, context: SendContext, outcome: SendReceipt | MQError | None, latency: float
    ) -> None:
        """Call the hooks after a try."""
        context.ended(outcome, latency)
        for hook in self.hooks:
            try:
                hook.after_send(context)
            except Exception:
                logger.exception("send hook %r failed after a send; ignored", hook)
