"""Typed handlers: `def handle(order: Order)` gets the decoded body instead of the message.

The type is the annotation of the handler's first parameter; a second one without a default gets the
message. Handlers of messages, annotated as such or not at all, are left as they are.
"""

import inspect
import logging
from collections.abc import Callable, Sequence
from enum import Enum
from functools import wraps
from typing import Any, Literal, TypeAlias, get_args

from pocketmq.client.codecs import BodyCodec
from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.push.handlers import (
    DEAD_LETTER,
    Failure,
    HandlerFailure,
    WrappedFunction,
    understood,
)
from pocketmq.errors import InvalidInput, MQError
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

_RAW = (inspect.Parameter.empty, Any, object, ReceivedMessage)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Undecodable(Enum):
    """What becomes of a message whose body cannot be decoded."""

    DEAD_LETTER = "dead_letter"
    """It goes to the dead-letter topic immediately: a retry would bring the same body."""
    RETRY = "retry"
    """It is redelivered later, such as to a newer version of the program."""
    SKIP = "skip"
    """It is logged, and counts as done."""


UndecodableWord: TypeAlias = Literal["dead_letter", "retry", "skip"]


class BodyUndecodable(HandlerFailure):
    """A body, or bodies of a list, could not be decoded; the cause is the codec's error."""


class HandlerType:
    """What a typed handler wants to be called with. `plain` if it wants messages."""

    def __init__(self, function: WrappedFunction, *, batch: bool) -> None:
        parameters = _positional(function)
        required = [each for each in parameters if each.default is inspect.Parameter.empty]
        if len(required) > 2:
            raise InvalidInput(f"a typed handler must take a value and the message; not {function}")
        self.kind: Any = parameters[0].annotation if parameters else inspect.Parameter.empty
        self.wants_message = len(required) == 2
        self.batch = batch
        self.raw = self.kind in _RAW
        if batch and not self.raw:
            inside = get_args(self.kind)
            if len(inside) != 1:
                raise InvalidInput(
                    f"a handler of lists must take list[Order] or the like, not {self.kind!r}; "
                    "or subscribe it with batch=False"
                )
            (self.kind,) = inside
            self.raw = self.kind in _RAW
        self.plain = self.raw and not self.wants_message

    def value(self, codec: BodyCodec, message: ReceivedMessage) -> Any:
        """Return what to call the handler with; raises what the codec does."""
        if self.raw:
            return message
        return message.body if self.kind is bytes else codec.decode(message.body, self.kind)


def _positional(function: WrappedFunction) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise InvalidInput(
            f"the annotations of {function} cannot be resolved: {error}; "
            "define or import the type at the top of its module"
        ) from error
    except (TypeError, ValueError):
        return []  # some that are written in C have no signature
    return [each for each in signature.parameters.values() if each.kind in _POSITIONAL]


def decoding(
    function: WrappedFunction, codec: BodyCodec, undecodable: Undecodable, *, batch: bool
) -> WrappedFunction:
    """Return a handler of messages that calls a typed one; raises `InvalidInput`."""
    wanted = HandlerType(function, batch=batch)
    if wanted.plain:
        return function
    call = _call_with_list if batch else _call_with_one
    decoded = Decoded(wanted, codec, undecodable)

    @wraps(function)
    def handle(given: Any) -> Any:
        arguments, bad = decoded.of(given)
        answer = call(function, arguments)
        return decoded.settle(bad, answer)

    @wraps(function)
    async def handle_async(given: Any) -> Any:
        arguments, bad = decoded.of(given)
        answer = call(function, arguments)
        return decoded.settle(bad, None if answer is None else await answer)

    made: Any = handle_async if is_coroutine_function(function) else handle
    made.__signature__ = inspect.Signature(
        [inspect.Parameter("given", inspect.Parameter.POSITIONAL_ONLY)]
    )
    return made  # type: ignore[no-any-return]


def _call_with_one(function: WrappedFunction, arguments: Sequence[tuple[Any, ...]]) -> Any:
    return function(*arguments[0]) if arguments else None


def _call_with_list(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Any:
    if not arguments:
        return None  # nothing of the list could be decoded
    return function(*(list(column) for column in zip(*arguments, strict=True)))


class Decoded:
    """Decodes what a handler is given, and settles what could not be decoded."""

    def __init__(self, wanted: HandlerType, codec: BodyCodec, undecodable: Undecodable) -> None:
        self._wanted = wanted
        self._codec = codec
        self._undecodable = undecodable

    def of(self, given: Any) -> tuple[list[tuple[Any, ...]], dict[int, Exception]]:
        """Return the handler's arguments for each message, and errors by their places."""
        messages: Sequence[ReceivedMessage] = given if self._wanted.batch else (given,)
        arguments: list[tuple[Any, ...]] = []
        bad: dict[int, Exception] = {}
        for at, message in enumerate(messages):
            try:
                value = self._wanted.value(self._codec, message)
            except (ValueError, MQError) as error:
                bad[at] = error
                if self._undecodable is Undecodable.SKIP:
                    logger.warning(
                        "message skipped, its body cannot be decoded: topic=%s id=%s error=%s",
                        message.topic, message.message_id, error,
                    )  # fmt: skip
            else:
                arguments.append((value, message) if self._wanted.wants_message else (value,))
        return arguments, bad

    def settle(self, bad: dict[int, Exception], answer: object) -> object:
        """Return a handler's result; raises `BodyUndecodable` for messages it did not get."""
        if not bad or self._undecodable is Undecodable.SKIP:
            return answer
        if (failure := understood(answer)) is not None:
            # What the handler says of a part of the list cannot be said of the whole: all again.
            raise HandlerFailure(Failure(failure.reason, delay_level=failure.delay_level))
        error = next(iter(bad.values()))
        kind = getattr(self._wanted.kind, "__name__", self._wanted.kind)
        reason = f"body cannot be decoded as {kind}: {str(error)[:200]}"
        only = frozenset(bad) if self._wanted.batch else None
        if self._undecodable is Undecodable.DEAD_LETTER:
            raise BodyUndecodable(
                Failure(reason, only=only, delay_level=DEAD_LETTER, limit=0)
            ) from error
        raise BodyUndecodable(Failure(reason, only=only)) from error
