"""A producer with interceptors: its sending methods, wrapped.

The methods of one producer are replaced by wrappers when it is made, so that a producer without
interceptors has none of their cost: a send is counted in tens of microseconds, a submit in single
ones. The same wrappers serve coroutine functions, plain functions and those that return a future.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from functools import wraps
from typing import Any, TypeAlias

from pocketmq.balance.producer.packing import reply_topic
from pocketmq.client.interceptors import SendCall, SendInterceptor, SendKind, checked
from pocketmq.model import Message
from pocketmq.protocol import ReceivedMessage

Begin: TypeAlias = Callable[[SendKind, list[Message]], SendCall]
_Future: TypeAlias = "asyncio.Future[Any] | futures.Future[Any]"


def intercept(producer: object, group: str, given: Sequence[SendInterceptor]) -> None:
    """Wrap the sending methods of a producer, blocking or not; raises `InvalidInput`.

    Does nothing without interceptors.
    """
    interceptors = checked(given)
    if not interceptors:
        return

    def begin(kind: SendKind, messages: list[Message]) -> SendCall:
        return SendCall(group, kind, messages).begin(interceptors)

    for kind in SendKind:
        method = getattr(producer, kind.value)
        setattr(producer, kind.value, _wrapped(method, kind, begin))


def _wrapped(method: Callable[..., Any], kind: SendKind, begin: Begin) -> Callable[..., Any]:
    run = _awaiting if inspect.iscoroutinefunction(method) else _calling
    if kind is SendKind.SUBMIT:
        return _one(method, kind, begin, _submitting)
    if kind is SendKind.BATCH:
        return _many(method, kind, begin, run)
    if kind is SendKind.REPLY:
        return _reply(method, kind, begin, run)
    return _one(method, kind, begin, run)


Run: TypeAlias = Callable[[SendCall, Callable[[], Any]], Any]
"""Runs a method, and ends its call."""


def _one(method: Callable[..., Any], kind: SendKind, begin: Begin, run: Run) -> Callable[..., Any]:
    @wraps(method)
    def send(message: Any, *rest: object, **options: object) -> Any:
        if not isinstance(message, Message):
            return method(message, *rest, **options)  # which has the words for it
        call = begin(kind, [message])
        return run(call, lambda: method(call.messages[0], *rest, **options))

    return _as_coroutine(send, method)


def _many(method: Callable[..., Any], kind: SendKind, begin: Begin, run: Run) -> Callable[..., Any]:
    @wraps(method)
    def send(messages: Any, **options: object) -> Any:
        usable = isinstance(messages, Sequence) and messages
        if not usable or not all(isinstance(each, Message) for each in messages):
            return method(messages, **options)  # as above
        call = begin(kind, list(messages))
        return run(call, lambda: method(call.messages, **options))

    return _as_coroutine(send, method)


def _reply(
    method: Callable[..., Any], kind: SendKind, begin: Begin, run: Run
) -> Callable[..., Any]:
    @wraps(method)
    def send(
        to: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        call = begin(kind, [Message(reply_topic(to.properties), body, properties=properties or {})])

        def reply() -> Any:
            made = call.messages[0]
            return method(to, made.body, properties=made.properties, timeout=timeout)

        return run(call, reply)

    return _as_coroutine(send, method)


def _as_coroutine(send: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper of a coroutine function as one: nothing runs before it is awaited."""
    if not inspect.iscoroutinefunction(method):
        return send

    @wraps(method)
    async def awaited(*given: object, **options: object) -> Any:
        return await send(*given, **options)

    return awaited


def _calling(call: SendCall, method: Callable[[], Any]) -> Any:
    try:
        result = method()
    except BaseException as error:
        call.finish(error)
        raise
    call.succeed(result)
    return result


async def _awaiting(call: SendCall, method: Callable[[], Any]) -> Any:
    try:
        result = await method()
    except BaseException as error:
        call.finish(error)
        raise
    call.succeed(result)
    return result


def _submitting(call: SendCall, method: Callable[[], Any]) -> Any:
    try:
        future: _Future = method()
    except BaseException as error:
        call.finish(error)
        raise
    if call.awaits_end:  # a callback of a thread's future costs a thread switch
        future.add_done_callback(lambda ended: _ended(call, ended))
    return future


def _ended(call: SendCall, future: _Future) -> None:
    if future.cancelled():
        call.finish(asyncio.CancelledError())
    elif (error := future.exception()) is not None:
        call.finish(error)
    else:
        call.succeed(future.result())
