"""Interceptors: functions of the application that are called around sends and handler calls.

Owns what an interceptor receives and how it is called. It runs in the caller's context, once for a
call whatever number of tries that takes, and before anything is encoded. Hooks (`producer.hooks`,
`push.consume_hooks`) are Java's: for each try, on the loop. Independent of clients.
"""

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Self, TypeAlias, TypeVar

from msgspec.structs import replace

from pocketmq.errors import InvalidInput
from pocketmq.model import Message, SendReceipt
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.client")


class SendKind(Enum):
    """The method of a producer that was called."""

    SEND = "send"
    SUBMIT = "submit"
    ONEWAY = "send_oneway"
    BATCH = "send_batch"
    TRANSACTION = "send_in_transaction"
    REQUEST = "request"
    REPLY = "reply"


class InterceptedCall:
    """A call of a producer's method or of a handler, as its interceptors see it."""

    __slots__ = ("_ends", "error", "group")

    def __init__(self, group: str) -> None:
        self.group = group
        """The group, as the application calls it."""
        self.error: BaseException | None = None
        """What the call raised; set while functions are called at the end, and only then: an
        error has a traceback, whose frames hold the call."""
        self._ends: list[Callable[[Any], object]] | None = None

    def begin(self, interceptors: Sequence[Callable[[Any], object]]) -> Self:
        """Call the interceptors. If one raises, those before it see its error, and it is raised."""
        for interceptor in interceptors:
            try:
                end = interceptor(self)
                if end is not None:
                    self._call_later(end)
            except BaseException as error:
                self.finish(error)
                raise
        return self

    def _call_later(self, end: object) -> None:
        if not callable(end):
            raise InvalidInput(
                "an interceptor must return None, or a function to call at the end; "
                f"not {type(end).__name__}"
            )
        if self._ends is None:
            self._ends = []
        self._ends.append(end)

    @property
    def awaits_end(self) -> bool:
        """Whether an interceptor wants to be called at the end."""
        return self._ends is not None

    def finish(self, error: BaseException | None) -> None:
        """Call what interceptors returned, the last first; what that raises is only logged."""
        ends, self._ends = self._ends, None
        if ends is None:
            return
        self.error = error
        for end in reversed(ends):
            try:
                end(self)
            except Exception:
                logger.exception("interceptor failed after a call: %r; ignored", end)
        self.error = None


class SendCall(InterceptedCall):
    """A call of one of a producer's sending methods. Interceptors may replace its `messages`."""

    __slots__ = ("kind", "messages", "receipts")

    def __init__(self, group: str, kind: SendKind, messages: list[Message]) -> None:
        super().__init__(group)
        self.kind = kind
        self.messages = messages
        """The message, or all messages of a batch; what is in the list afterwards is sent."""
        self.receipts: tuple[SendReceipt, ...] = ()
        """Set when the call has ended; empty for messages sent one way, and for requests."""

    @property
    def message(self) -> Message:
        """The message, or the first one of a batch."""
        return self.messages[0]

    def add_properties(self, properties: Mapping[str, str], at: int = 0) -> None:
        """Add properties to a message, or to the one at a place in a batch.

        They replace properties of the same names. Raises `InvalidInput` for reserved names and
        for values that are not text.
        """
        old = self.messages[at]
        self.messages[at] = replace(old, properties={**old.properties, **properties})

    def succeed(self, result: object) -> None:
        """End the call with what the method returned."""
        if self._ends is None:
            return
        if isinstance(result, SendReceipt):
            self.receipts = (result,)
        elif isinstance(result, list):
            self.receipts = tuple(result)
        self.finish(None)


class HandlerCall(InterceptedCall):
    """A call of a handler of a push consumer."""

    __slots__ = ("messages", "result", "topic")

    def __init__(self, group: str, topic: str, messages: Sequence[ReceivedMessage]) -> None:
        super().__init__(group)
        self.topic = topic
        """The topic that was subscribed, as the application calls it."""
        self.messages = messages
        self.result: object = None
        """What the handler returned; set when it has ended."""

    def succeed(self, result: object) -> None:
        """End the call with what the handler returned."""
        if self._ends is not None:
            self.result = result
            self.finish(None)


SendInterceptor: TypeAlias = Callable[[SendCall], Callable[[SendCall], object] | None]
"""Called before a message is encoded, where the producer's method was called. It may change the
messages, and return a function to be called at the end. What it raises, the method raises."""
HandlerInterceptor: TypeAlias = Callable[[HandlerCall], Callable[[HandlerCall], object] | None]
"""Called before a handler, in its thread or task. It may return a function to be called at the end.
If it raises, the handler is not called, and the message is retried later."""

Interceptor = TypeVar("Interceptor", SendInterceptor, HandlerInterceptor)


def checked(given: Sequence[Interceptor]) -> tuple[Interceptor, ...]:
    """Return the interceptors of a client; raises `InvalidInput` for what cannot be one."""
    some: object = given
    if not isinstance(some, list | tuple):
        raise InvalidInput(f"interceptors must be a list of functions, not {some!r}")
    for one in some:
        if not callable(one) or inspect.iscoroutinefunction(one):
            raise InvalidInput(
                f"an interceptor must be a plain function (`def`) that takes the call, not {one!r}"
            )
    return tuple(given)
