"""Answers of many servers, and the servers that did not answer.

The figures of a server that did not answer are unknown: never counted as 0, never silently left
out.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from pocketmq.errors import MQError
from pocketmq.model import MASTER_ID

T = TypeVar("T")
U = TypeVar("U")


class ServerPlace(msgspec.Struct, frozen=True, gc=False):
    """A server process: a broker, or a name server without a cluster."""

    cluster: str
    broker: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it accepts messages."""
        return self.broker_id == MASTER_ID


class Missing(msgspec.Struct, frozen=True):
    """A server that did not answer, or refused, and its error."""

    place: ServerPlace
    error: MQError

    def __str__(self) -> str:
        return f"{self.place.broker} at {self.place.address}: {self.error}"


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """The answer of one server."""

    place: ServerPlace
    value: T


class Gathered(msgspec.Struct, Generic[T], frozen=True):
    """The answers of all servers asked; `missing` are those without one."""

    answers: tuple[Answer[T], ...]
    missing: tuple[Missing, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every server has answered."""
        return not self.missing

    def __iter__(self) -> Iterator[Answer[T]]:
        return iter(self.answers)

    def values(self) -> list[T]:
        """Return the answers without their servers."""
        return [answer.value for answer in self.answers]

    def some(self) -> "Gathered[T]":
        """Return itself; raise the first error if no server answered."""
        if not self.answers and self.missing:
            raise self.missing[0].error
        return self

    def all(self) -> list[T]:
        """Return every answer; raise the first error if any is missing."""
        if self.missing:
            raise self.missing[0].error
        return self.values()

    def map(self, change: Callable[[T], U]) -> "Gathered[U]":
        """Return the same with converted values."""
        answers = tuple(Answer(each.place, change(each.value)) for each in self.answers)
        return Gathered(answers, self.missing)

    def without(self, unwanted: Callable[[MQError], bool]) -> "Gathered[T]":
        """Return the same without errors that are an answer, such as an unknown name."""
        return Gathered(self.answers, _others(self.missing, unwanted))


def _others(missing: Iterable[Missing], unwanted: Callable[[MQError], bool]) -> tuple[Missing, ...]:
    return tuple(each for each in missing if not unwanted(each.error))
