"""What a strategy is that works over all topics of a group and takes their owners into account."""

from collections.abc import Collection, Mapping
from typing import Protocol, TypeGuard

from pocketmq.balance.allocation.strategy import Strategy
from pocketmq.model import MessageQueue


class GroupStrategy(Strategy, Protocol):
    """A rule that splits the queues of all topics, given who owned them up to now.

    Its members must agree on more than the sorted lists: their knowledge of `previous` differs
    while queues are on their way, and the answer must be the same all the same. What it has of
    `Strategy` splits one topic as if nobody had owned any queue of it.
    """

    def assign(
        self,
        topics: Mapping[str, Collection[MessageQueue]],
        members: Collection[str],
        previous: Mapping[MessageQueue, str | None],
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue that has one.

        `previous` holds the owners up to now, as far as known. `foreign` are members beside
        `members` that use a Java strategy; their shares are in the result. `absent` are queues of a
        broker that is away and may soon be back: they count, but are not in the result.
        """
        ...

    def minimum_moves(
        self,
        topics: Mapping[str, Collection[MessageQueue]],
        members: Collection[str],
        previous: Mapping[MessageQueue, str | None],
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> int:
        """Return the number of queues that must get another owner, as few as balance allows."""
        ...


def is_group_strategy(strategy: Strategy) -> TypeGuard[GroupStrategy]:
    """Return whether a strategy works over all topics.

    `isinstance` with a protocol looks up every method: it would take longer than Average does.
    """
    return hasattr(strategy, "assign")
