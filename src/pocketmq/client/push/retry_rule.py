"""Retry rules: how often, when and after which errors the messages of a subscription are retried.

A rule turns what came of a handler call into a verdict; carrying it out is left to the work.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Sequence
from functools import wraps
from typing import Any, Self

import msgspec

from pocketmq.client.checks import check_range, check_seconds
from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.push.handlers import (
    DEAD_LETTER,
    Failure,
    HandlerFailure,
    WrappedFunction,
    raised,
    understood,
)
from pocketmq.errors import InvalidInput
from pocketmq.model.delay import DELAY_LEVELS
from pocketmq.protocol import ReceivedMessage

ATTEMPTS = 17
MOST_ATTEMPTS = 1000


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """When a failed message is retried, and when it becomes a dead letter.

    Raises `InvalidInput` for values that cannot be kept.
    """

    attempts: int = ATTEMPTS
    """Handler calls for a message at most, with the first; then it is a dead letter."""
    delays: Sequence[float] = ()
    """Seconds before the second call, the third, …; the last one repeats. None: the default ones.

    A concurrent consumer rounds them up to the broker's delay levels, 1 s to 2 h; the queue of an
    orderly one rests for 30 s at most.
    """
    hopeless: tuple[type[BaseException], ...] = ()
    """Errors after which a message becomes a dead letter immediately."""

    def __post_init__(self) -> None:
        check_range("attempts", self.attempts, 1, MOST_ATTEMPTS)
        for delay in self.delays:
            check_seconds("delays", delay)
            if delay > DELAY_LEVELS[-1]:
                raise InvalidInput(
                    f"delays must be at most {DELAY_LEVELS[-1]:g} seconds, the longest delay "
                    f"level; not {delay:g}"
                )
        kinds: Sequence[object] = self.hopeless
        if not all(isinstance(each, type) and issubclass(each, BaseException) for each in kinds):
            raise InvalidInput(
                f"hopeless must be a tuple of exception classes, not {self.hopeless!r}"
            )

    @classmethod
    def exponential(
        cls,
        attempts: int = ATTEMPTS,
        *,
        first: float = 1.0,
        factor: float = 2.0,
        longest: float = DELAY_LEVELS[-1],
        hopeless: tuple[type[BaseException], ...] = (),
    ) -> Self:
        """Return a rule whose delays grow by a factor, from `first` to `longest` seconds."""
        check_range("attempts", attempts, 1, MOST_ATTEMPTS)
        check_seconds("first", first)
        check_seconds("factor", factor, at_least=1.0)
        delays, delay = list[float](), first
        for _ in range(attempts - 1):
            delays.append(min(delay, longest))
            delay = min(delay * factor, longest)
        return cls(attempts=attempts, delays=tuple(delays), hopeless=hopeless)

    def verdict(self, failure: Failure, messages: Sequence[ReceivedMessage]) -> Failure:
        """Return what follows from a failure. A delay that the handler asked for stays."""
        if failure.limit is not None:
            return failure  # a dead letter already
        if isinstance(failure.error, self.hopeless):
            return msgspec.structs.replace(failure, delay_level=DEAD_LETTER, limit=0)
        limited = msgspec.structs.replace(failure, limit=self.attempts - 1)
        if not self.delays or failure.delay_level or failure.wait is not None:
            return limited
        failures = max(message.reconsume_times for message in messages)
        delay = self.delays[min(failures, len(self.delays) - 1)]
        return msgspec.structs.replace(limited, delay_level=level_of(delay), wait=delay)


def level_of(seconds: float) -> int:
    """Return the lowest delay level that is at least that long, by the brokers' default levels."""
    return min(bisect_left(DELAY_LEVELS, seconds), len(DELAY_LEVELS) - 1) + 1


def ruled(function: WrappedFunction, rule: RetryRule, *, batch: bool) -> WrappedFunction:
    """Return a handler whose failures are judged by a rule."""

    def judge(failure: Failure | None, given: Any) -> None:
        if failure is not None:
            messages = given if batch else (given,)
            raise HandlerFailure(rule.verdict(failure, messages)) from failure.error

    @wraps(function)
    def handle(given: Any) -> None:
        try:
            failure = understood(function(given))
        except BaseException as error:  # noqa: BLE001 - as the caller of any handler
            failure = raised(error)
        judge(failure, given)

    @wraps(function)
    async def handle_async(given: Any) -> None:
        try:
            failure = understood(await function(given))
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            failure = raised(error)
        judge(failure, given)

    return handle_async if is_coroutine_function(function) else handle
