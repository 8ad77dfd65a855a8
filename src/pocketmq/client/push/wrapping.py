"""What a subscription puts around its handler.

From the inside out: the type, deduplication, interceptors, the retry rule. So interceptors see
what the handler itself raised, and messages as they came. A handler with nothing around it is
left as it is.
"""

from collections.abc import Sequence
from functools import wraps
from typing import Any

import msgspec

from pocketmq.client.codecs import BodyCodec, check_codec
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.interceptors import HandlerCall, HandlerInterceptor
from pocketmq.client.push.deduplication import Deduplicate, deduplicated
from pocketmq.client.push.handlers import Consumed, RetryLater, WrappedFunction
from pocketmq.client.push.retry_rule import RetryRule, ruled
from pocketmq.client.push.typed import Undecodable, UndecodableWord, decoding
from pocketmq.errors import InvalidInput


def intercepted(
    function: WrappedFunction,
    interceptors: Sequence[HandlerInterceptor],
    *,
    group: str,
    topic: str,
    batch: bool,
) -> WrappedFunction:
    """Return a handler that calls the interceptors around another one, in its thread or task."""
    if not interceptors:
        return function

    def begin(given: Any) -> HandlerCall:
        messages = tuple(given) if batch else (given,)
        return HandlerCall(group, topic, messages).begin(interceptors)

    @wraps(function)
    def handle(given: Any) -> Any:
        call = begin(given)
        try:
            result = function(given)
        except BaseException as error:
            call.finish(error)
            raise
        call.succeed(result)
        return result

    @wraps(function)
    async def handle_async(given: Any) -> Any:
        call = begin(given)
        try:
            result = await function(given)
        except BaseException as error:
            call.finish(error)
            raise
        call.succeed(result)
        return result

    return handle_async if is_coroutine_function(function) else handle


def outcome(result: object, error: BaseException | None) -> str:
    """Return how a handler ended: `ok`, `retry` if it asked for one, or `error`."""
    if error is not None:
        return "retry" if isinstance(error, RetryLater) else "error"
    return "ok" if result is None or result is Consumed.OK else "retry"


class HandlerRules(msgspec.Struct, frozen=True):
    """What a subscription asks for besides its handler."""

    codec: BodyCodec | None = None
    undecodable: UndecodableWord = "dead_letter"
    retry: RetryRule | None = None
    deduplicate: Deduplicate | None = None

    def __post_init__(self) -> None:
        check_codec(self.codec)
        words = [each.value for each in Undecodable]
        if self.undecodable not in words:
            raise InvalidInput(f"undecodable must be one of {words}, not {self.undecodable!r}")
        for name, kind in (("retry", RetryRule), ("deduplicate", Deduplicate)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInput(
                    f"{name} must be a {kind.__name__}, not a {type(value).__name__}"
                )


class HandlerPlace(msgspec.Struct, frozen=True):
    """Where a handler is called: the consumer's options, and its topic."""

    options: PushConsumerOptions
    topic: str
    batch: bool = False


def wrapped(
    function: WrappedFunction,
    rules: HandlerRules,
    interceptors: Sequence[HandlerInterceptor],
    place: HandlerPlace,
) -> WrappedFunction:
    """Return a handler with everything around it; itself if there is nothing.

    Raises `InvalidInput` for rules that cannot be kept.
    """
    made = function
    if rules.codec is not None:
        made = decoding(made, rules.codec, Undecodable(rules.undecodable), batch=place.batch)
        if (
            made is not function
            and place.batch
            and place.options.orderly
            and rules.undecodable == "dead_letter"
        ):
            raise InvalidInput(
                "an orderly consumer cannot move one message of a list to the dead-letter topic; "
                "use undecodable='retry' or 'skip', or a handler of single messages"
            )
    group, topic, batch = place.options.group, place.topic, place.batch
    if rules.deduplicate is not None:
        made = deduplicated(made, rules.deduplicate, group=group, topic=topic, batch=batch)
    made = intercepted(made, interceptors, group=group, topic=topic, batch=batch)
    return made if rules.retry is None else ruled(made, rules.retry, batch=batch)
