"""What a handler may be and may say: one message or a list, `def` or `async def`, done or again.

Owns how a handler is called and how its answer is understood. Where it runs is the business of
`threads` (for `def`) and `runners` (for `async def`); what becomes of the messages, of the work
rooms.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from pocketmq.client.callbacks import interrupt_main
from pocketmq.client.checks import check_seconds
from pocketmq.errors import InvalidInput
from pocketmq.protocol.received import ReceivedMessage


class Consumed(Enum):
    """What a handler can return; None is the same as OK."""

    OK = "OK"
    """Everything it was given is done."""
    RETRY = "RETRY"
    """Nothing of it is: later again, as if it had raised."""


class RetryLater(Exception):
    """A handler's answer: later again, and when. It may be raised or returned.

    `delay_level` is the broker's delay level for a concurrent consumer: 0 lets the broker choose by
    the number of tries, -1 makes the message a dead letter at once. `wait` is for an orderly
    consumer: the seconds its queue rests, between 0.01 and 30. `done` is for handlers of lists: so
    many messages from the front are done, only the rest comes again (concurrent consumers).
    """

    def __init__(self, delay_level: int = 0, *, wait: float | None = None, done: int = 0) -> None:
        if type(delay_level) is not int or type(done) is not int or done < 0:
            raise InvalidInput(
                f"a delay level and a count are whole numbers: {delay_level}, {done}"
            )
        if wait is not None:
            check_seconds("wait", wait)
        super().__init__(delay_level, wait, done)
        self.delay_level = delay_level
        self.wait = wait
        self.done = done


class Failure(msgspec.Struct, frozen=True):
    """A handler call that did not settle all its messages."""

    reason: str
    error: BaseException | None = None
    """What the handler raised, if it was not an answer."""
    delay_level: int = 0
    wait: float | None = None
    done: int = 0
    """Messages from the front that are done all the same."""


NO_HANDLER = Failure("its topic has no handler (any more)")
CANCELLED = Failure("it was cancelled")


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
        except BaseException as error:  # noqa: BLE001 - whatever it is, it means: later again
            return raised(error)
        return None if answer is None or answer is Consumed.OK else understood(answer)

    async def call_async(self, messages: Sequence[ReceivedMessage]) -> Failure | None:
        """Call a coroutine function; None if all is done. Raises nothing but `CancelledError`."""
        try:
            answer = await self.function(list(messages) if self.batch else messages[0])
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it means: later again
            return raised(error)
        return None if answer is None or answer is Consumed.OK else understood(answer)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine, also for bound, partial and callable objects."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - not whether, but how it is called
    )


def understood(answer: object) -> Failure | None:
    """Read an answer. What is none counts as a failure, so that no message is lost by mistake."""
    if answer is None or answer is Consumed.OK:
        return None
    if answer is Consumed.RETRY:
        return Failure("it answered RETRY")
    if isinstance(answer, RetryLater):
        return Failure(
            "it answered RetryLater",
            delay_level=answer.delay_level,
            wait=answer.wait,
            done=answer.done,
        )
    if inspect.iscoroutine(answer):
        answer.close()
        return Failure("it returned a coroutine; make the handler itself `async def`")
    return Failure(
        f"it returned {_text(repr, answer)}, which is no answer; return None or Consumed.OK when "
        "all is done, Consumed.RETRY or RetryLater(...) for later again"
    )


def raised(error: BaseException) -> Failure | None:
    """Give what an error means: later again.

    KeyboardInterrupt and SystemExit are passed on to the main thread, as if Ctrl-C had been
    pressed: they do not end a pool's thread, and would end an event loop that others need.
    """
    if isinstance(error, RetryLater):
        return understood(error)
    kind = type(error).__name__
    if isinstance(error, KeyboardInterrupt | SystemExit):
        interrupt_main()
        return Failure(f"it raised {kind}, which stops the program", error)
    return Failure(f"it raised {kind}: {_text(str, error)}", error)


def _text(show: Callable[[Any], str], what: object) -> str:
    """Show something of a handler's; even that may fail."""
    try:
        return show(what)[:200]
    except Exception:  # noqa: BLE001 - the handler's, again
        return "something that cannot be shown"
