"""Deduplication: a message whose key was handled already is not handed to the handler again.

The key is claimed before the call and is done after it, so a crash between the handler and its end
leads to another call: handlers are called at least once, and rarely more often. A message whose key
another call has claimed is retried later.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import msgspec

from pocketmq.client.dedup_stores import Claim, DedupStore
from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.push.handlers import (
    Failure,
    HandlerFailure,
    RetryLater,
    WrappedFunction,
    raised,
    understood,
)
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage

KeyOf = Callable[[ReceivedMessage], str | None]
_SOON = 1  # the lowest delay level


def _message_id(message: ReceivedMessage) -> str:
    return message.message_id


class Deduplicate(msgspec.Struct, frozen=True):
    """Which messages are the same, and where the handled ones are kept."""

    store: DedupStore
    key: KeyOf = _message_id
    """Returns the key of a message; None: it is handled in any case. By default, its id."""

    def __post_init__(self) -> None:
        if not callable(self.key):
            raise InvalidInput(f"key must be a function of a message, not {self.key!r}")
        store: object = self.store
        if not all(callable(getattr(store, name, None)) for name in ("claim", "done", "release")):
            raise InvalidInput(f"a store must have claim, done and release; {store!r} does not")


class ClaimedMessages:
    """The messages of one handler call, and what the store says of their keys."""

    def __init__(self, rule: Deduplicate, scope: str, messages: Sequence[ReceivedMessage]) -> None:
        self._store = rule.store
        self._messages = messages
        self._keys = [self._scoped(scope, rule.key(message)) for message in messages]
        self.fresh: list[int] = []
        """The places of those to handle."""
        self.busy: set[int] = set()

    @staticmethod
    def _scoped(scope: str, key: object) -> str | None:
        if key is not None and not isinstance(key, str):
            raise InvalidInput(f"the key of a message must be text or None, not {key!r}")
        return None if key is None else f"{scope}\t{key}"

    def claim(self) -> "ClaimedMessages":
        """Claim all keys."""
        try:
            for at, key in enumerate(self._keys):
                claim = Claim.NEW if key is None else self._store.claim(key)
                if claim is Claim.NEW:
                    self.fresh.append(at)
                elif claim is Claim.BUSY:
                    self.busy.add(at)
        except BaseException:
            self.end(set(self.fresh))
            raise
        return self

    def messages(self) -> list[ReceivedMessage]:
        """Return those to handle."""
        return [self._messages[at] for at in self.fresh]

    def end(self, failed: set[int]) -> None:
        """Note which of those that were to be handled are done."""
        for at in self.fresh:
            key = self._keys[at]
            if key is not None:
                (self._store.release if at in failed else self._store.done)(key)

    def failed(self, failure: Failure | None) -> set[int]:
        """Return the places of those that a failure is about; without one, none."""
        if failure is None:
            return set()
        if failure.only is not None:
            return {self.fresh[at] for at in failure.only}
        return set(self.fresh[failure.done :])

    def verdict(self, failure: Failure | None) -> Failure | None:
        """Return what came of the whole call, with places among all its messages."""
        unfinished = self.failed(failure) | self.busy
        if not unfinished:
            return None
        only = None if len(unfinished) == len(self._messages) else frozenset(unfinished)
        if failure is None:
            reason = "the same message is being handled by another call"
            return Failure(reason, delay_level=_SOON, only=only)
        if self.busy:  # what is said of those that failed does not hold for the others
            return Failure(failure.reason, failure.error, only=only)
        return msgspec.structs.replace(failure, done=0, only=only)


def deduplicated(
    function: WrappedFunction, rule: Deduplicate, *, group: str, topic: str, batch: bool
) -> WrappedFunction:
    """Return a handler that is not called for messages that were handled already."""
    scope = f"{group}\t{topic}"

    def claimed(given: Any) -> ClaimedMessages:
        return ClaimedMessages(rule, scope, given if batch else (given,)).claim()

    def conclude(claims: ClaimedMessages, failure: Failure | None) -> None:
        verdict = claims.verdict(failure)
        if verdict is None:
            return
        if failure is None and not batch:
            raise RetryLater(_SOON)  # asked for: not an error of the handler
        raise HandlerFailure(verdict) from verdict.error

    @wraps(function)
    def handle(given: Any) -> None:
        claims, failure = claimed(given), None
        if claims.fresh:
            try:
                failure = understood(function(claims.messages() if batch else given))
            except BaseException as error:  # noqa: BLE001 - as the caller of any handler
                failure = raised(error)
            claims.end(claims.failed(failure))
        conclude(claims, failure)

    @wraps(function)
    async def handle_async(given: Any) -> None:
        aside = asyncio.to_thread if rule.store.blocks else _here
        claims, failure = await aside(claimed, given), None
        if claims.fresh:
            try:
                failure = understood(await function(claims.messages() if batch else given))
            except (asyncio.CancelledError, GeneratorExit):
                claims.end(set(claims.fresh))  # in place: there may be no loop to wait with
                raise
            except BaseException as error:  # noqa: BLE001 - as above
                failure = raised(error)
            await aside(claims.end, claims.failed(failure))
        conclude(claims, failure)

    return handle_async if is_coroutine_function(function) else handle


async def _here(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
