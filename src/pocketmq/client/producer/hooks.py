"""What watches sends: called before and after each try, and never able to harm one."""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from pocketmq.balance.producer.plan import SendMode
from pocketmq.errors import MQError
from pocketmq.model.message import Message, SendReceipt
from pocketmq.model.queue import MessageQueue

logger = logging.getLogger("pocketmq.client")


class SendContext:
    """One try of a send (Java: SendMessageContext).

    Names are those on the wire. Before the try `receipt` and `error` are None; after it one of them
    is set, unless the message went one way. `notes` is for hooks to remember things in.
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
        """The message; of a batch, all of them. Bodies are as the caller gave them."""
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
        """Take down what a try came to."""
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
        """Take note of what came of it."""


def call_before(hooks: Sequence[SendHook], context: SendContext) -> None:
    """Tell all hooks; as in Java, one that fails is logged and changes nothing."""
    for hook in hooks:
        try:
            hook.before_send(context)
        except Exception:
            logger.exception("the send hook %r failed before a send", hook)


def call_after(hooks: Sequence[SendHook], context: SendContext) -> None:
    """Tell all hooks; as in Java, one that fails is logged and changes nothing."""
    for hook in hooks:
        try:
            hook.after_send(context)
        except Exception:
            logger.exception("the send hook %r failed after a send", hook)
