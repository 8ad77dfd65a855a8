"""STICKY as a strategy: what `strategy_by_name` returns and options hold.

Foreign members of a group take what Java's strategy gives them, ours divide the rest. A foreign
member computes its share from the members' ids alone. Whatever it takes must be left to it, and
whatever it leaves must be taken: our members are the exact complement. Which members are
foreign is for the caller to say, and all of ours must say the same.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pocketmq.balance.allocation import Average, AverageByCircle, ConsistentHash, MachineRoom
from pocketmq.balance.allocation.strategy import Strategy, check_input, may_own
from pocketmq.balance.sticky.assignment import Topics, assign, minimum_moves
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted

_Owners = Mapping[MessageQueue, str | None]

_AVERAGE = Average()
# Strategies that never give a queue to two members. Of the others each member must be asked alone,
# since `allocate_all` shows one owner only, which may be one of ours.
_WITHOUT_OVERLAP = (Average, AverageByCircle, ConsistentHash, MachineRoom)


class Division(msgspec.Struct, frozen=True):
    """The queues of a mixed group: the foreign members' with their owners, and the rest by topic.

    `rest` is what `assign` and `minimum_moves` take for our members.
    """

    foreign: dict[MessageQueue, str]
    rest: dict[str, list[MessageQueue]]


def assign_mixed(
    topics: Topics,
    ours: Collection[str],
    foreign: Collection[str],
    previous: _Owners,
    *,
    strategy: Strategy = _AVERAGE,
    group: str = "",
) -> dict[MessageQueue, str]:
    """Return the owner of every queue in a group with foreign members.

    Foreign members own exactly what `strategy` gives them. Queues that it gives to ours or to no
    member are divided among ours by `assign`. There are no absent queues here: foreign
    members divide what is there, so their shares change as soon as a broker is away.
    """
    division = divide(topics, ours, foreign, strategy=strategy, group=group)
    return division.foreign | assign(division.rest, ours, previous)


def divide(
    topics: Topics,
    ours: Collection[str],
    foreign: Collection[str],
    *,
    strategy: Strategy = _AVERAGE,
    group: str = "",
) -> Division:
    """Return which queues the foreign members own, and which are left to ours.

    Ids that the broker lists repeatedly shall be given repeatedly: Java counts each. Raises
    `AllocationInputInvalid` where the strategy does.
    """
    members = java_sorted((*ours, *foreign))
    strangers = set(foreign)
    taken: dict[MessageQueue, str] = {}
    rest: dict[str, list[MessageQueue]] = {}
    for topic, queues in topics.items():
        ordered = sort_queues(set(queues))
        if ordered and strangers:
            taken |= _shares(strategy, group, ordered, members, strangers)
        rest[topic] = [queue for queue in ordered if queue not in taken]
    return Division(taken, rest)


def _shares(
    strategy: Strategy,
    group: str,
    queues: Sequence[MessageQueue],
    members: Sequence[str],
    foreign: set[str],
) -> dict[MessageQueue, str]:
    if isinstance(strategy, _WITHOUT_OVERLAP):
        owners = zip(queues, strategy.allocate_all(queues, members, group), strict=True)
        return {queue: owner for queue, owner in owners if owner in foreign}
    existing = set(queues)
    shares: dict[MessageQueue, str] = {}
    for member in java_sorted(foreign):
        for queue in strategy.allocate(group, member, queues, members):
            if queue in existing:  # CONFIG names queues whether they exist or not
                shares.setdefault(queue, member)
    return shares


class Sticky(msgspec.Struct, frozen=True):
    """All topics' queues, evenly, with the fewest moves since the assignment before.

    `mixed` is the strategy that foreign members of the group use; they keep the shares it gives
    them, and ours divide the rest. A `GroupStrategy`.
    """

    mixed: Strategy = _AVERAGE

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
