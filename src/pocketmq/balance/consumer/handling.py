"""What concurrent and orderly handling have in common: handler results, batches, hook words."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from pocketmq.balance.consumer.offset_runs import CachedMessage

CONSUME_TIMEOUT = 15 * 60.0
RESUBMIT_AFTER = 5.0
"""When handlers take no more work, or a message could not be sent back."""


class ConsumeReturnType(Enum):
    """How a handler call ended, in the words of Java's consume hooks and message traces."""

    SUCCESS = "SUCCESS"
    TIME_OUT = "TIME_OUT"
    EXCEPTION = "EXCEPTION"
    RETURNNULL = "RETURNNULL"
    FAILED = "FAILED"


class RetriedMessage(CachedMessage, Protocol):
    """A message with its count of failures."""

    @property
    def reconsume_times(self) -> int:
        """How often it was handed to the group before."""
        ...


T = TypeVar("T")


def return_type(
    *, answered: bool, raised: bool, failed: bool, elapsed: float, timeout: float
) -> ConsumeReturnType:
    """Return how a handler call ended; a late result is a timeout, whatever it is."""
    if not answered:
        return ConsumeReturnType.EXCEPTION if raised else ConsumeReturnType.RETURNNULL
    if elapsed >= timeout:
        return ConsumeReturnType.TIME_OUT
    return ConsumeReturnType.FAILED if failed else ConsumeReturnType.SUCCESS


def batches(messages: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Split pulled messages into batches, one for each handler call."""
    if len(messages) <= size:
        yield messages
        return
    for start in range(0, len(messages), size):
        yield messages[start : start + size]
