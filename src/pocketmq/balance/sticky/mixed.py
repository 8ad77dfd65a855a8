"""Groups with foreign members: they take what Java's strategy gives them, ours divide the rest.

A foreign member computes its share from the members' ids alone. Whatever it takes must be left to
it, and whatever it leaves must be taken: our members are the exact complement. Which members are
foreign is for the caller to say, and all of ours must say the same.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from pocketmq.balance import allocation
from pocketmq.balance.sticky.assignment import Topics, assign
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted

_AVERAGE = allocation.Average()
# Strategies that never give a queue to two members. Of the others each member must be asked alone,
# since `allocate_all` shows one owner only, which may be one of ours.
_WITHOUT_OVERLAP = (
    allocation.Average,
    allocation.AverageByCircle,
    allocation.ConsistentHash,
    allocation.MachineRoom,
)


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
    previous: Mapping[MessageQueue, str | None],
    *,
    strategy: allocation.Strategy = _AVERAGE,
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
    strategy: allocation.Strategy = _AVERAGE,
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
    strategy: allocation.Strategy,
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
