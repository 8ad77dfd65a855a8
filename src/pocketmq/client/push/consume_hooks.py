"""Hooks around handler calls; what a hook raises is logged and harms no call."""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from pocketmq.balance.consumer.handling import ConsumeReturnType, return_type
from pocketmq.client.clock import Clock
from pocketmq.client.push.handlers import Failure
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.client")


class ConsumeContext:
    """One handler call (Java: ConsumeMessageContext).

    Group and queue have the names of the wire. The outcome is set after the call; `notes` is for
    hooks to keep data in.
    """

    __slots__ = (
        "began_ms", "elapsed", "failure", "group", "messages", "namespace", "notes", "outcome",
        "queue", "success",
    )  # fmt: skip

    def __init__(
        self,
        group: str,
        namespace: str,
        queue: MessageQueue,
        messages: Sequence[ReceivedMessage],
        began_ms: int,
    ) -> None:
        self.group = group
        self.namespace = namespace
        self.queue = queue
        self.messages = messages
        self.began_ms = began_ms
        self.elapsed = 0.0
        """Seconds the call took."""
        self.success = False
        self.outcome: ConsumeReturnType | None = None
        self.failure: Failure | None = None
        self.notes: dict[str, Any] = {}


class ConsumeHook(Protocol):
    """Watches the handler calls of a consumer.

    Called where the handler is: on the loop for `async def`, where it must not block, and in any of
    the handlers' threads for `def`.
    """

    def before_consume(self, context: ConsumeContext) -> None:
        """Note that a handler is about to be called."""

    def after_consume(self, context: ConsumeContext) -> None:
        """Note the outcome of a handler call."""


class HookCaller:
    """The hooks of one consumer."""

    def __init__(self, group: str, namespace: str, clock: Clock, timeout: float) -> None:
        self.hooks: list[ConsumeHook] = []
        self._group = group
        self._namespace = namespace
        self._clock = clock
        self._timeout = timeout

    def before(
        self, queue: MessageQueue, messages: Sequence[ReceivedMessage]
    ) -> ConsumeContext | None:
        """Call all hooks before a handler call; None if there are none."""
        if not self.hooks:
            return None
        began_ms = self._clock.now_ms()
        context = ConsumeContext(self._group, self._namespace, queue, messages, began_ms)
        for hook in self.hooks:
            try:
                hook.before_consume(context)
            except Exception:
                logger.exception("consume hook failed before a handler call: %r", hook)
        return context

    def after(self, context: ConsumeContext, failure: Failure | None) -> None:
        """Call all hooks after a handler call."""
        context.elapsed = max(0.0, (self._clock.now_ms() - context.began_ms) / 1000)
        context.failure = failure
        context.success = failure is None
        raised = failure is not None and failure.error is not None
        context.outcome = return_type(
            answered=not raised,
            raised=raised,
            failed=failure is not None,
            elapsed=context.elapsed,
            timeout=self._timeout,
        )
        for hook in self.hooks:
            try:
                hook.after_consume(context)
            except Exception:
                logger.exception("consume hook failed after a handler call: %r", hook)
