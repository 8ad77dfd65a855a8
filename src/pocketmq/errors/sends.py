"""A send that failed: the sum of its tries.

Its class shows the cause, as Python's own errors do: a timeout, or a lost connection.
"""

from typing import Any, Self

from pocketmq.errors.tree import MQError


class SendFailed(MQError):
    """A send failed after its last try, whose error is `last_error` (also `__cause__`).

    It is a `SendTimedOut` if it timed out, a `SendDisconnected` if the last broker could not
    be reached.

    `attempts` counts the tries made, `broker` is the last one asked, `elapsed` the seconds spent.
    `last_error` is None when the timeout passed before the first try.
    `outcome_unknown` is true when any of the tries may have stored the message although no
    receipt came: resending it may store it twice. `code` is the broker's response code, if a
    broker's refusal ended the send. `receipts` are those of the parts of a batch that were stored
    before this one.
    """

    receipts: tuple[Any, ...] = ()

    def __new__(cls, *facts: Any, **named: Any) -> Self:
        """Choose the class by what ended the send; one without facts, a copy's, keeps its own."""
        if cls is SendFailed and (facts or named):
            last_error = named.get("last_error", facts[4] if len(facts) > 4 else None)
            if (kind := _kind_of(last_error)) is not cls:
                made: Self = kind.__new__(kind)
                return made
        return super().__new__(cls)

    def __init__(
        self,
        topic: str,
        broker: str | None,
        attempts: int,
        elapsed: float,
        last_error: MQError | None,
        *,
        outcome_unknown: bool = False,
    ) -> None:
        self.topic = topic
        self.broker = broker
        self.attempts = attempts
        self.elapsed = elapsed
        self.last_error = last_error
        self.code: int | None = getattr(last_error, "code", None)
        self.retryable = last_error is None or last_error.retryable
        self.refresh_route = last_error is not None and last_error.refresh_route
        self.outcome_unknown = outcome_unknown or (
            last_error is not None and last_error.outcome_unknown
        )
        super().__init__()
        self.args = (self._text(),)  # `OSError` takes none where `__new__` is ours
        self.__cause__ = last_error

    def _text(self) -> str:
        if self.attempts == 0:
            tries = f"not sent within {self.elapsed:.3f} s"
        else:
            times = "1 try" if self.attempts == 1 else f"{self.attempts} tries"
            tries = f"not acknowledged after {times} in {self.elapsed:.3f} s"
        if self.broker:
            tries += f", last by broker {self.broker!r}"
        cause = f": {self.last_error}" if self.last_error else ""
        return f"message to topic {self.topic!r} {tries}{cause}; {self._advice()}"

    def _advice(self) -> str:
        if self.outcome_unknown:
            return "the message may be stored: resend it only if consumers are idempotent"
        if self.retryable:
            return "the message was not stored and can be resent"
        return "the message was not stored, and resending it unchanged will fail again"


class SendTimedOut(SendFailed, TimeoutError):
    """A send that failed because its time was over, before or after its last try."""


class SendDisconnected(SendFailed, ConnectionError):
    """A send whose last try found no connection to the broker, or lost it."""


def _kind_of(last_error: MQError | None) -> Any:
    if last_error is None or isinstance(last_error, TimeoutError):
        return SendTimedOut
    return SendDisconnected if isinstance(last_error, ConnectionError) else SendFailed
