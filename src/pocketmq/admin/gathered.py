"""Answers of many servers: those that came, and by name those that did not.

What a server did not say is unknown. It is never counted as 0 and never left out in silence.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from pocketmq.errors import MQError
from pocketmq.model.route import MASTER_ID

T = TypeVar("T")
U = TypeVar("U")


class ServerPlace(msgspec.Struct, frozen=True, gc=False):
    """One broker process."""

    cluster: str
    broker: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        return self.broker_id == MASTER_ID


class Missing(msgspec.Struct, frozen=True):
    """A server that did not answer, or refused; `error` says why."""

    place: ServerPlace
    error: MQError

    def __str__(self) -> str:
        return f"{self.place.broker} at {self.place.address}: {self.error}"


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """What one server said."""

    place: ServerPlace
    value: T


class Gathered(msgspec.Struct, Generic[T], frozen=True):
    """What all servers asked have said; `missing` are those whose part is unknown."""

    answers: tuple[Answer[T], ...]
    missing: tuple[Missing, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every server has answered."""
        return not self.missing

    def __iter__(self) -> Iterator[Answer[T]]:
        return iter(self.answers)

    def values(self) -> list[T]:
        """Give what was said, without who said it."""
        return [answer.value for answer in self.answers]

    def some(self) -> "Gathered[T]":
        """Give the same, or raise the first error if nobody answered at all."""
        if not self.answers and self.missing:
            raise self.missing[0].error
        return self

    def all(self) -> list[T]:
        """Give every answer; raises the first error if any is missing."""
        if self.missing:
            raise self.missing[0].error
        return self.values()

    def map(self, change: Callable[[T], U]) -> "Gathered[U]":
        """Give the same with other values."""
        answers = tuple(Answer(each.place, change(each.value)) for each in self.answers)
        return Gathered(answers, self.missing)

    def without(self, unwanted: Callable[[MQError], bool]) -> "Gathered[T]":
        """Give the same without the errors that are an answer, such as that a name is unknown."""
        return Gathered(self.answers, _others(self.missing, unwanted))


def _others(missing: Iterable[Missing], unwanted: Callable[[MQError], bool]) -> tuple[Missing, ...]:
    return tuple(each for each in missing if not unwanted(each.error))
