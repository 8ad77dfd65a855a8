"""STICKY as a strategy: what `strategy_by_name` returns and options hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pocketmq.balance.allocation import Average, Strategy, check_input, may_own
from pocketmq.balance.sticky.assignment import Topics, assign, minimum_moves
from pocketmq.balance.sticky.mixed import assign_mixed, divide
from pocketmq.model import MessageQueue

_Owners = Mapping[MessageQueue, str | None]


class Sticky(msgspec.Struct, frozen=True):
    """All topics' queues, evenly, with the fewest moves since the assignment before.

    `mixed` is the strategy that foreign members of the group use; they keep the shares it gives
    them, and ours divide the rest. A `GroupStrategy`.
    """

    mixed: Strategy = Average()

    @property
    def name(self) -> str:
        """The name in options, logs and the command line; Java has no such strategy."""
        return "STICKY"

    def assign(
        self,
        topics: Topics,
        members: Collection[str],
        previous: _Owners,
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue, foreign members' included.

        With foreign members absent queues do not count: a foreign member divides what is there, so
        its share changes as soon as a broker is away. Raises `AllocationInputInvalid` where the
        strategy of the foreign members does.
        """
        if not foreign:
            return assign(topics, members, previous, absent)
        return assign_mixed(topics, members, foreign, previous, strategy=self.mixed, group=group)

    def minimum_moves(
        self,
        topics: Topics,
        members: Collection[str],
        previous: _Owners,
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> int:
        """Return how many queues `assign` moves; a queue's first owner is not a move.

        A queue that a foreign member gets from another one counts: its share leaves no choice.
        """
        if not foreign:
            return minimum_moves(topics, members, previous, absent)
        division = divide(topics, members, foreign, strategy=self.mixed, group=group)
        forced = sum(
            previous.get(queue) not in {None, owner} for queue, owner in division.foreign.items()
        )
        return forced + minimum_moves(division.rest, members, previous)

    def allocate(
        self,
        group: str,  # noqa: ARG002  (one signature for all strategies)
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
    ) -> list[MessageQueue]:
        """Return one member's queues, as if none of them had an owner."""
        if not may_own(member, queues, members):
            return []
        owners = _first_owners(queues, members)
        return [queue for queue in queues if owners[queue] == member]

    def allocate_all(
        self,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        group: str = "",  # noqa: ARG002
    ) -> list[str | None]:
        """Return every queue's owner, as if none of them had an owner."""
        check_input(queues, members)
        owners = _first_owners(queues, members)
        return [owners.get(queue) for queue in queues]


def _first_owners(
    queues: Iterable[MessageQueue], members: Iterable[str]
) -> dict[MessageQueue, str]:
    topics: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        topics.setdefault(queue.topic, []).append(queue)
    # An empty id cannot ask for its share, so it gets none.
    return assign(topics, [member for member in members if member], {})
