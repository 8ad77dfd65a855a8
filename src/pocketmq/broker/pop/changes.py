"""What changes as messages are popped and settled: the entries of the journal, and their format.

Each says what happened, so that it can be done again: `journal` keeps them, `recovery` reads them.
"""

from typing import TypeAlias

import msgspec

from pocketmq.broker.pop.in_flight import OrderedPop


class MessagesPopped(msgspec.Struct, tag="p", array_like=True, gc=False):
    """Messages were popped; the next pop continues at `following`."""

    topic: str
    group: str
    queue_id: int
    first: int
    following: int
    pop_time_ms: int
    until_ms: int
    offsets: list[int] | None = None
    """None for all from `first` to `following`."""

    def all_offsets(self) -> list[int] | range:
        """Return the offsets taken."""
        return range(self.first, self.following) if self.offsets is None else self.offsets


class MessagesSettled(msgspec.Struct, tag="a", array_like=True, gc=False):
    """Messages of one pop were acknowledged, or copied to a retry topic."""

    topic: str
    group: str
    queue_id: int
    pop_time_ms: int
    offsets: list[int]
    copies: list[int] = []
    """Where the copies of those offsets lie in the log; empty if they were acknowledged."""


class VisibilityChanged(msgspec.Struct, tag="c", array_like=True, gc=False):
    """A message is hidden until another time."""

    topic: str
    group: str
    queue_id: int
    offset: int
    old_pop_time_ms: int
    pop_time_ms: int
    until_ms: int


class QueueLocked(msgspec.Struct, tag="o", array_like=True, gc=False):
    """The state of a queue that is popped in order, and what is committed of it."""

    topic: str
    group: str
    queue_id: int
    committed: int
    pop: OrderedPop


class QueueCleared(msgspec.Struct, tag="r", array_like=True, gc=False):
    """The group's offset in a queue was reset: what it had in flight does not count any more."""

    topic: str
    group: str
    queue_id: int
    target: int


class PopsForgotten(msgspec.Struct, tag="g", array_like=True, gc=False):
    """A topic or a group was deleted."""

    topic: str | None
    group: str | None


Entry: TypeAlias = (
    MessagesPopped
    | MessagesSettled
    | VisibilityChanged
    | QueueLocked
    | QueueCleared
    | PopsForgotten
)
