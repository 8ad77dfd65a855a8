"""Handlers with interceptors around them. A handler without any is left as it is."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.interceptors import HandlerCall, HandlerInterceptor
from pocketmq.client.push.handlers import Consumed, RetryLater, WrappedFunction


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
