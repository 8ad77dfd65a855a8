"""What moved between two pictures of a group, and how little would have had to."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from pocketmq.balance.what_if import fewest_moves


class Named(Protocol):
    """A queue's name, in whichever form the evidence has it."""

    @property
    def topic(self) -> str:
        """The queue's topic."""
        ...


Q = TypeVar("Q", bound=Named)

Known = Mapping[Q, tuple[str, ...]]
"""The last known owners of queues; nobody is `()`, a queue that is missing is not known."""


def moves_between(
    before: Known[Q], after: Known[Q], members: Iterable[str]
) -> tuple[list[tuple[Q, str | None, str | None]], int]:
    """Return the queues that changed hands, from whom to whom, and how few had to.

    Only queues known in both pictures can have moved. Of those of `after` that members who are
    gone held last, nobody knows the owner: they do not count at all.
    """
    pairs: dict[str, tuple[list[str | None], list[str | None]]] = {}
    moves = []
    staying = set(members)
    for queue, owners in after.items():
        here = tuple([member for member in owners if member in staying])
        if owners and not here:
            continue
        old, new = pairs.setdefault(queue.topic, ([], []))
        earlier = before.get(queue)
        previous, owner = _hands(earlier, here)
        new.append(owner)
        if earlier is None:  # it was not there, or nobody knew
            continue
        old.append(previous)
        if previous != owner:
            moves.append((queue, previous, owner))
    return moves, sum(fewest_moves(old, new, staying) for old, new in pairs.values())


def _hands(before: tuple[str, ...] | None, now: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Tell from whom to whom a queue went; whoever held it both times has kept it."""
    if before is None:
        return None, now[0] if now else None
    for member in now:
        if member in before:
            return member, member
    return before[0] if before else None, now[0] if now else None
