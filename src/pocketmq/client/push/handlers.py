"""Handlers: `def` or `async def`, for one message or a list; done, or retry later.

Owns how a handler is called and how its result is read. Where it runs is decided in `threads` (for
`def`) and `runners` (for `async def`); what becomes of the messages, in `concurrent` and `orderly`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any

import msgspec

from pocketmq.client.callbacks import interrupt_main
from pocketmq.client.checks import check_seconds
from pocketmq.client.filters import Filter
from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage


class Consumed(Enum):
    """What a handler can return; None is the same as OK."""

    OK = "OK"
    """Everything it was given is done."""
    RETRY = "RETRY"
    """Nothing of it is: retry later, as if it had raised."""


class RetryLater(Exception):
    """A handler's result: retry later, and when. It may be raised or returned.

    `delay_level` is the broker's delay level for a concurrent consumer: 0 lets the broker choose by
    the number of tries, -1 sends the message straight to the dead-letter topic. `wait` is for an
    orderly consumer: the seconds its queue rests, between 0.01 and 30. `done` is for handlers of
    lists: that many messages from the front are done, the rest is retried (concurrent consumers).
    """

    def __init__(self, delay_level: int = 0, *, wait: float | None = None, done: int = 0) -> None:
        if type(delay_level) is not int or type(done) is not int or done < 0:
            raise InvalidInput(
                f"a delay level and a count must be whole numbers: {delay_level}, {done}"
            )
        if wait is not None:
            check_seconds("wait", wait)
        super().__init__(delay_level, wait, done)
        self.delay_level = delay_level
        self.wait = wait
        self.done = done


class DeadLetter(Exception):
    """A handler's result: a retry is hopeless. It is raised, or returned.

    The message goes to the dead-letter topic immediately, also out of an orderly consumer's queue.
    """


DEAD_LETTER = -1
"""The delay level that stands for the dead-letter topic."""


HandlerResult = Consumed | RetryLater | DeadLetter | None
"""What a handler may return; None is the same as `Consumed.OK`."""
_Returned = HandlerResult | Awaitable[HandlerResult]
HandlerFunction = Callable[[Any], _Returned] | Callable[[Any, Any], _Returned]
"""Takes one message, or a list of them; a typed one also its decoded body. May be a coroutine
function."""
WrappedFunction = Callable[..., Any]
"""A handler's function, or what is wrapped around one."""


class Failure(msgspec.Struct, frozen=True):
    """A handler call that did not settle all its messages."""

    reason: str
    error: BaseException | None = None
    """What the handler raised, if it was not an answer."""
    delay_level: int = 0
    wait: float | None = None
    done: int = 0
    """Messages from the front that are done all the same."""
    requested: bool = False
    """Whether the handler asked for the retry: nothing is wrong then."""
    limit: int | None = None
    """Retries that a message may have, instead of `max_reconsume_times`; 0: none."""
    only: frozenset[int] | None = None
    """The places in a list of those that failed, if the others are done (concurrent consumers)."""


class HandlerFailure(Exception):
    """Raised instead of what a handler raised, by what is wrapped around it, with its verdict."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


NO_HANDLER = Failure("the topic has no handler (any more)")
CANCELLED = Failure("handler was cancelled")


class Handler:
    """A function that is given messages, and how it wants to be called."""

    __slots__ = ("batch", "function", "is_async")

    def __init__(self, function: Callable[[Any], Any], *, batch: bool = False) -> None:
        self.function = function
        self.batch = batch
        self.is_async = is_coroutine_function(function)

    def call(self, messages: Sequence[ReceivedMessage]) -> Failure | None:
        """Call a plain function; None if all is done. Raises nothing."""
        try:
            # A list of its own: what it does to it must not change what is settled.
            answer = self.function(list(messages) if self.batch else messages[0])
        except BaseException as error:  # noqa: BLE001 - whatever it is, it means: retry later
            return raised(error)
        return None if answer is None or answer is Consumed.OK else understood(answer)

    async def call_async(self, messages: Sequence[ReceivedMessage]) -> Failure | None:
        """Call a coroutine function; None if all is done. Raises nothing but `CancelledError`."""
        try:
            answer = await self.function(list(messages) if self.batch else messages[0])
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it means: retry later
            return raised(error)
        return None if answer is None or answer is Consumed.OK else understood(answer)


def understood(answer: object) -> Failure | None:
    """Read a result. An invalid one counts as a failure, so that no message is lost by mistake."""
    if answer is None or answer is Consumed.OK:
        return None
    if answer is Consumed.RETRY:
        return Failure("handler returned RETRY", requested=True)
    if isinstance(answer, RetryLater):
        return Failure(
            "handler requested a retry (RetryLater)",
            delay_level=answer.delay_level,
            wait=answer.wait,
            done=answer.done,
            requested=True,
        )
    if isinstance(answer, DeadLetter):
        why = f": {_text(str, answer)}" if answer.args else ""
        return Failure(
            f"handler requested the dead-letter topic (DeadLetter){why}",
            delay_level=DEAD_LETTER,
            limit=0,
        )
    if inspect.iscoroutine(answer):
        answer.close()
        return Failure("handler returned a coroutine; make the handler itself `async def`")
    return Failure(
        f"handler returned {_text(repr, answer)}, which is not a valid result; return None or "
        "Consumed.OK when all is done, Consumed.RETRY or RetryLater(...) to retry later"
    )


def raised(error: BaseException) -> Failure | None:
    """Return what an error means: retry later.

    KeyboardInterrupt and SystemExit are passed on to the main thread, as if Ctrl-C had been
    pressed: they do not end a pool's thread, and would end an event loop that others need.
    """
    if isinstance(error, RetryLater | DeadLetter):
        return understood(error)
    if isinstance(error, HandlerFailure):
        return error.failure
    kind = type(error).__name__
    if isinstance(error, KeyboardInterrupt | SystemExit):
        interrupt_main()
        return Failure(f"handler raised {kind}, which stops the program", error)
    return Failure(f"handler raised {kind}: {_text(str, error)}", error)


def _text(show: Callable[[Any], str], what: object) -> str:
    """Show something of a handler's; even that may fail."""
    try:
        return show(what)[:200]
    except Exception:  # noqa: BLE001 - the handler's, again
        return "something that cannot be shown"


class TopicHandler(msgspec.Struct, frozen=True):
    """A function that messages of a topic are handed to."""

    topic: str
    """As the application calls it."""
    function: WrappedFunction
    batch: bool = False
    """Whether it takes a list of messages, of `handler_batch` at most."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(
                f"a handler must be a function that takes messages, not {self.function}"
            )
        _check_takes_one(self.function)


def _check_takes_one(function: WrappedFunction) -> None:
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some that are written in C have no signature
    try:
        takes.bind(None)
    except TypeError as error:
        raise InvalidInput(
            f"a handler must take one argument, the message or messages; {function} does not: "
            f"{error}"
        ) from None


class HandledSubscriptions(Subscriptions):
    """The subscriptions of a push consumer, with their handlers."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self._handlers: dict[str, TopicHandler] = {}  # by the application's name

    def add(
        self,
        topic: str,
        wanted: str | Filter,
        handler: WrappedFunction | None,
        *,
        batch: bool,
        version_ms: int,
    ) -> None:
        """Subscribe a topic, or change its expression and handler.

        A handler outlives `remove`: messages may still be cached, or be redelivered. Raises
        `NameInvalid`, `FilterSyntaxError`, or `InvalidInput` without a handler.
        """
        known = self._handlers.get(topic)
        if handler is None and known is None:
            raise InvalidInput(f"topic {topic!r} needs a handler: subscribe(topic, '*', handler)")
        made = known if handler is None else TopicHandler(topic, handler, batch)
        self.want(topic, wanted, version_ms=version_ms)
        if made is not None:
            self._handlers[topic] = made

    def handler_for(self, topic: str) -> TopicHandler | None:
        """Return the handler of a topic as the application calls it."""
        return self._handlers.get(topic)
